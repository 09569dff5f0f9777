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
# a name is said as it can be shown; a file of somebody else's that nobody else may read is not judged
strange=$(printf 'a\nb\033[31m.db')
"$MEMPROF" run -o "$strange" -- true 2>err
equal "a strange name: lines" 1 "$(wc -l <err)"
contains "a strange name" err 'a\x0ab\x1b[31m.db'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    mkdir theirs && chmod 777 theirs . && "$MEMPROF" run -q -o theirs/out.db -- true && chmod 600 theirs/out.db
    chmod 755 "$PWD/.." # the test's own
    code=0
    setpriv --reuid=65534 --clear-groups "$MEMPROF" run -o theirs/out.db -- true 2>err || code=$?
    equal "theirs: status" 2 $code
    contains "theirs" err 'theirs/out.db: exists and cannot be read (Permission denied)'
fi
FOO=bar "$MEMPROF" run -q -o 'x-%h-%q{FOO}-%%.db' -- true 2>err || { cat err; fail "patterns"; }
ls -1 x-* >names
contains "patterns" names "x-$(uname -n)-bar-%.db"

# What is no recording is left alone, and the program not started; what was killed early is a recording.
refused() { # path
    cp "$1" "$1.copy"
    code=0
    "$MEMPROF" run -o "$1" -- sh -c 'echo ran >ran' 2>err || code=$?
    equal "$1: status" 2 $code
    contains "$1" err 'no recording of memprof'
    cmp "$1" "$1.copy" || fail "$1 was changed"
    [ ! -e ran ] || fail "$1: the program ran"
}
echo 'To be, or not to be' >thesis.txt
refused thesis.txt
sqlite3 letters.db 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'
refused letters.db
mkdir early && cd early
"$MEMPROF" run -q -- sleep 20 &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -s out.db ] && break; sleep 0.05; done
kill -KILL $!
wait $! 2>/dev/null || true
"$MEMPROF" run -q -- true || fail 'a killed recording is not taken for one'
[ -e out.db.old ] || fail 'a killed recording was not kept'
cd ..

# A start that fails leaves all that was there; where a program was to run, what is there is not read as its recording.
mkdir failed && cd failed
"$MEMPROF" run -q -- "$SAMPLES/net" >/dev/null
"$MEMPROF" run -q -- "$SAMPLES/leak" 2>/dev/null
cp out.db newer; cp out.db.old older
unchanged() {
    cmp out.db newer || fail "$1: out.db changed"
    cmp out.db.old older || fail "$1: out.db.old changed"
    equal "$1: files" 4 "$(ls -A | wc -l)"
}
moved() {
    cmp out.db.old newer || fail "$1: out.db changed"
    cmp out.db.old~ older || fail "$1: out.db.old changed"
    equal "$1: files" 4 "$(ls -A | wc -l)"
    code=0
    "$MEMPROF" report >../report 2>&1 || code=$?
    equal "$1: report, status" 1 $code
    contains "$1: report" ../report "the last run recorded nothing; 'memprof report out.db.old' shows the one before"
}
back() { mv out.db.old out.db; mv out.db.old~ out.db.old; }
"$MEMPROF" run --depth=0 -- true 2>/dev/null || true
unchanged 'a bad option'
"$MEMPROF" run -o /nonexistent/out.db -- true 2>/dev/null || true
unchanged 'another place'
printf '#!/nonexistent\n' >../odd && chmod +x ../odd
for program in ./nonexistent ../odd ../thesis.txt; do
    "$MEMPROF" run -- $program 2>/dev/null || true
    moved "$program"
    "$MEMPROF" run -- $program 2>/dev/null || true
    moved "$program, again"
    back
done
"$MEMPROF" run -- ./nonexistent 2>/dev/null || true
"$MEMPROF" run -- ../odd 2>/dev/null || true
moved 'one that is not there, then one that cannot start'
# as after two runs without a mistake between them
"$MEMPROF" run -q -- true
cmp out.db.old newer || fail "out.db.old is not the recording before"
[ ! -e out.db.old~ ] || fail "out.db.old~ was left"
cd ..

# Ten at once with one name: every program runs, every one has its recording.
mkdir many && cd many
for i in 1 2 3 4 5 6 7 8 9 10; do
    "$MEMPROF" run -q --no-symbols -- sh -c ": >there.$i
        while [ \$(ls there.* | wc -l) -lt 10 ]; do sleep 0.05; done; exit $i" 2>err.$i &
    eval "run_$i=$!"
done
for i in 1 2 3 4 5 6 7 8 9 10; do
    code=0
    eval "wait \$run_$i" || code=$?
    equal "run $i of ten" $i $code
done
equal 'recordings of ten' 10 "$(ls out.db out.*.db | wc -l)"
for file in out.db out.*.db; do
    "$MEMPROF" info "$file" >info || fail "$file cannot be read"
done
equal 'told of another name' 9 \
    "$(cat err.* | grep -c 'is being written by another memprof; recording into out\.[1-9]\.db')"
equal 'moved away' 0 "$(find . -name '*.old*' | wc -l)"
cd ..
