# The walls between the rooms of docs/design.md: who may include what. A row of tests/static/rooms.txt is a room and an
# extended regular expression of the paths that it may include besides its own files. Headers of the project are
# included by relative path, in quotes.
work=$PWD
cd "$ROOT"
rooms=tests/static/rooms.txt
find cli common formats include profiler report samples -name '*.[ch]' -o -name '*.def' -o -name '*.inc' | sort \
    >"$work/files"
# of a .def the includes are made where it is included: its room's rule holds for both
xargs grep -E '^[[:space:]]*#[[:space:]]*include[[:space:]]*("|<\.)' <"$work/files" |
    sed -E 's/^([^:]*):[^"<]*["<]([^">]*)[">].*/\1 \2/' >"$work/includes"
# a header by a macro could be any
if xargs grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+[A-Za-z_]' <"$work/files"; then
    fail "an include that names no file"
fi
awk '
    function clean(path,   n, i, part, out, kept) { # "a/b/../c" is "a/c"
        n = split(path, part, "/")
        kept = 0
        for (i = 1; i <= n; i++)
            if (part[i] == ".." && kept && out[kept] != "..") kept--
            else if (part[i] != ".") out[++kept] = part[i]
        path = out[1]
        for (i = 2; i <= kept; i++) path = path "/" out[i]
        return path
    }
    function room(path) { # its folder, but for headers that are rooms of their own
        if (path in allowed) return path
        sub("/[^/]*$", "", path)
        return path
    }
    FILENAME == ARGV[1] { if ($1 !~ /^#/ && NF) allowed[$1] = NF > 1 ? $2 : "^$"; next }
    FILENAME == ARGV[2] {
        there[$1] = 1
        if ($1 ~ /\.[ch]$/ && !(room($1) in allowed)) { print $1 " is in no room of tests/static/rooms.txt"; bad = 1 }
        next
    }
    {
        directory = $1
        sub("/[^/]*$", "", directory)
        target = clean(directory "/" $2)
        from = room($1)
        if (!(from in allowed)) allowed[from] = "^$"
        if (!(target in there)) { print $1 " includes " target ", which is not there"; bad = 1 }
        else if (room(target) != from && target !~ "^(" allowed[from] ")") {
            print $1 " includes " target "; " from " may include " \
                (allowed[from] == "^$" ? "itself alone" : allowed[from])
            bad = 1
        }
    }
    END { exit bad }
' "$rooms" "$work/files" "$work/includes" || fail "layers"
# a room says what it is for
for room in $(awk '!/^#/ && $1 !~ /\.h$/ { print $1 }' "$rooms"); do
    [ -f "$room/README.md" ] || [ "$room" = include ] || [ "$room" = samples ] || fail "$room has no README.md"
done
# the library inside the program: no stdio, no locale, none of its own allocation by malloc
if grep -rnE '#include <(stdio|locale|wchar|iconv|sqlite3|zstd)' profiler/preload; then
    fail "preload includes what it must not use"
fi
