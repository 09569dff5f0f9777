# Where the database goes: an older one is kept, patterns are replaced, what cannot be written is said before the
# program starts.
"$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>/dev/null
cp out.db first
"$MEMPROF" run -q -o out.db -- "$SAMPLES/net" >/dev/null
cmp out.db.old first || fail "the older file was not kept as it was"
equal "new" 216 "$(total alloc_count)"
"$MEMPROF" run -q -- "$SAMPLES/net" >/dev/null
equal "default name" 216 "$(DB=out.db total alloc_count)"

unwritable() { # path, text
    code=0
    "$MEMPROF" run -o "$1" -- sh -c 'echo ran >ran; exit 9' 2>err || code=$?
    equal "$1: status" 1 $code
    contains "$1" err "$2"
    equal "$1: lines" 1 "$(wc -l <err)"
    [ ! -e ran ] || fail "$1: the program ran"
}
echo file >file
unwritable file/out.db file/out.db
unwritable /nonexistent/out.db /nonexistent/out.db
unwritable /proc/out.db /proc/out.db
if [ "$(id -u)" != 0 ]; then
    mkdir closed && chmod 555 closed
    unwritable closed/out.db closed/out.db
fi
FOO=bar "$MEMPROF" run -q -o 'x-%h-%q{FOO}-%%.db' -- true 2>err || { cat err; fail "patterns"; }
ls -1 x-* >names
contains "patterns" names "x-$(uname -n)-bar-%.db"
