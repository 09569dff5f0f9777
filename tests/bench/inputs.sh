#!/bin/sh
# tests/bench/inputs.sh DIR PERCENT: makes the inputs of the real programs, the same bytes every time; 100 percent is
# what docs/performance.md measures. Prints nothing. Each program is run by DIR/run-NAME (one exec, so that the shell is
# not measured).
set -eu
dir=$1 percent=$2
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
[ -f "$dir/made-$percent" ] && exit 0
exec 9>"$dir/lock"
flock 9 # several tests begin at once, and one of them makes the inputs
[ -f "$dir/made-$percent" ] && exit 0
rm -f "$dir"/made-*
lines() { echo $(($1 * percent / 100)); }
command_file() { # name: the command line on stdin
    { echo '#!/bin/sh'; cat; } >"$dir/run-$1.tmp"
    chmod +x "$dir/run-$1.tmp"
    mv "$dir/run-$1.tmp" "$dir/run-$1"
}

# gawk: counts words, splits and joins fields
awk -v n="$(lines 220000)" \
    'BEGIN { for (i = 1; i <= n; i++) { s = i; for (k = 0; k < 8; k++) { s = (s * 1103515245 + 12345) % 2147483648;
    printf "word%d ", s % 5000 } print "" } }' >"$dir/words.txt"
cat >"$dir/words.awk" <<'TEXT'
{
    for (i = 1; i <= NF; i++) {
        count[$i]++
        pair[$i "-" substr($i, 5, 2)] = toupper($i) NR % 7
    }
    line[NR % 1000] = $0
}
END { for (w in count) total += count[w]; print total, length(pair), length(line) }
TEXT
command_file gawk <<TEXT
exec gawk -f '$dir/words.awk' '$dir/words.txt'
TEXT

# sqlite3: rows and an index
cat >"$dir/rows.sql" <<TEXT
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, value REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $(lines 1000000))
INSERT INTO t SELECT i, 'name' || (i * 7919 % 1000003), i * 0.5 FROM n;
CREATE INDEX by_name ON t(name);
SELECT count(*), sum(length(name)) FROM t WHERE name > 'name5';
TEXT
command_file sqlite3 <<TEXT
exec sqlite3 -init /dev/null :memory: '.read $dir/rows.sql'
TEXT

# xmllint: a document tree of 26 MB
awk -v n="$(lines 200000)" \
    'BEGIN { print "<?xml version=\"1.0\"?>\n<list>";
    for (i = 1; i <= n; i++) {
        printf "  <item id=\"i%d\" kind=\"%d\"><name>item number %d</name>", i, i % 17, i
        printf "<price currency=\"EUR\">%d.%02d</price><note>some text &amp; more</note></item>\n", i % 100, i % 89
    }
    print "</list>" }' >"$dir/list.xml"
command_file xmllint <<TEXT
exec xmllint --noout '$dir/list.xml'
TEXT

# perl: hashes of lists, strings, a sort
cat >"$dir/hash.pl" <<TEXT
my (%h, @keys);
my \$s = 42;
for my \$i (1 .. $(lines 900000)) {
    \$s = (\$s * 1103515245 + 12345) % 2147483648;
    push @{\$h{"key" . \$s % 20000}}, "value \$i of " . length(\$i);
}
my \$bytes = 0;
for my \$k (sort keys %h) { my \$text = join ',', map { uc } @{\$h{\$k}}; \$bytes += length \$text; }
print scalar(keys %h), " \$bytes\n";
TEXT
command_file perl <<TEXT
export PERL_HASH_SEED=0
exec perl '$dir/hash.pl'
TEXT

# python3 with the C allocator: lists, dictionaries, strings, classes
# the program itself, not a version manager's script before it
python=$(python3 -c "import os, sys; print(os.path.realpath(sys.executable))" 2>/dev/null || echo python3)
cat >"$dir/objects.py" <<TEXT
class Node:
    def __init__(self, key, children):
        self.key, self.children = key, children
def build(depth, key):
    return Node(str(key), [build(depth - 1, key * 4 + i) for i in range(4)] if depth else [])
def total(node):
    return len(node.key) + sum(total(c) for c in node.children)
result = 0
for round in range($(lines 1400) // 100 + 1):
    result += total(build(8, 1))
    words = {}
    for i in range(60000):
        words.setdefault("w%d" % (i % 7000), []).append((i, i * 0.5))
    result += len(words)
print(result)
TEXT
command_file python3 <<TEXT
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
exec '$python' -S -E '$dir/objects.py'
TEXT
sed -i 's/-S -E/-S/' "$dir/run-python3"

# cc1: functions over structs and switches, among many declarations and tables
awk -v n="$(lines 240)" -v m="$(lines 7800)" 'BEGIN {
    for (i = 0; i < m; i++)
        printf "struct t%d { int a%d; struct t%d *next; };\nextern int h%d(struct t%d *, const int *);\n", i, i, i, i, i
    print "struct s { int a, b; double d; char *p; };\nextern int g(int, struct s *);"
    for (i = 0; i < n; i++) {
        printf "int f%d(struct s *s, int x)\n{\n    int y = x * %d + s->a;\n", i, i % 91 + 3
        printf "    for (int i = 0; i < %d; i++) {\n", i % 13 + 2
        printf "        switch ((y + i) %% 5) {\n        case 0: s->b += y ^ %d; break;\n", i
        printf "        case 1: s->d *= 1.%d; break;\n        case 2: y += g(i, s); break;\n", i
        printf "        default: y -= s->p[i]; break;\n        }\n    }\n"
        printf "    return y > %d ? %s : s->b;\n}\n\n", i, i ? "f" (i - 1) "(s, y - 1)" : "0"
    } }' >"$dir/functions.c"
compiler=$(${CC_BENCH:-gcc} -print-prog-name=cc1)
command_file cc1 <<TEXT
exec '$compiler' -quiet -O2 '$dir/functions.c' -o /dev/null
TEXT

# git: a history of a few hundred commits over files of a few hundred lines
rm -rf "$dir/history"
mkdir -p "$dir/history"
awk -v n="$(lines 3000)" 'BEGIN {
    for (c = 1; c <= n; c++) {
        printf "commit refs/heads/main\ncommitter A U Thor <author@example.com> %d +0000\ndata <<M\nChange %d\nM\n",
        1600000000 + c * 60, c
        f = c % 12
        printf "M 100644 inline dir%d/file%d.txt\ndata <<D\n", f % 3, f
        for (l = 1; l <= 300; l++) printf "line %d of %d: %d\n", l, f, (l * 7919 + ((l + c) % 37 ? 0 : c)) % 100003
        print "D\n"
    } }' >"$dir/history.stream"
(cd "$dir/history" && git init -q -b main . && git fast-import --quiet <"$dir/history.stream")
command_file git <<TEXT
exec git -C '$dir/history' -c core.pager=cat -c gc.auto=0 --no-pager log -p main
TEXT
touch "$dir/made-$percent"
