# A program that cannot be recorded runs all the same, and an older recording is not left to be taken for its own.
printf 'int main(void) { return 6; }\n' >six.c
"$CC" -static -o static six.c 2>/dev/null || skip "$CC cannot link statically"
"$MEMPROF" run -q -- "$SAMPLES/net" >/dev/null
cp out.db recording

again() { cp recording out.db; rm -f out.db.old; }
moved() { # what
    cmp out.db.old recording || fail "$1: the older recording is not in out.db.old"
    [ ! -e out.db ] || fail "$1: there is an out.db"
    equal "$1: files" "out.db.old" "$(echo out.db*)"
    code=0
    "$MEMPROF" report >report 2>&1 || code=$?
    equal "$1: report, status" 1 $code
    contains "$1: report" report "the last run recorded nothing; 'memprof report out.db.old' shows the one before"
}
limit() { # options of ulimit; none: no limit
    [ -z "$1" ] || ulimit "${1% *}" "${1#* }"
}
unrecorded() { # what, program, limit of the shell
    again
    code=0
    (limit "$3" && "$MEMPROF" run -- "$2") 2>&1 | cat >err
    equal "$1: lines" 1 "$(wc -l <err)"
    contains "$1" err "running it without recording"
    (limit "$3" && "$MEMPROF" run -- "$2") 2>/dev/null || code=$?
    equal "$1: status" 6 $code
    moved "$1"
}
unrecorded "static" ./static ''
"$CC" -o plain six.c
unrecorded "32 MB of address space" ./plain '-v 32000'
unrecorded "no file may grow" ./plain '-f 0'
unrecorded "1 MB of data" ./plain '-d 1000'
unrecorded "8 MB of data" ./plain '-d 8000'
# A stack too small for us is none for the program either, but for one that needs no more.
for most in 32 48; do
    again
    code=0
    (limit "-s $most" && "$MEMPROF" run -q -- ./plain) >err 2>&1 || code=$?
    equal "$most KB of stack: status" 6 $code
    sound
    (limit "-s $most" && "$MEMPROF" report --by stack) >report 2>&1 || { cat report; fail "report in $most KB"; }
done
# How many descriptors a recording needs depends on those that the shell hands down: few are never enough, enough
# make a recording, and between them it is one or the other.
descriptors() { # how many may be open
    again
    code=0
    (limit "-n $1" && "$MEMPROF" run -- ./plain) >err 2>&1 || code=$?
    equal "$1 descriptors: status" 6 $code
    equal "$1 descriptors: lines" 1 "$(wc -l <err)"
    if grep -q "written to out.db" err; then
        sound
    else
        contains "$1 descriptors" err "running it without recording"
        moved "$1 descriptors"
    fi
}
unrecorded "10 descriptors" ./plain '-n 10'
for most in 11 12 13 14 15 16 18 20; do descriptors $most; done
descriptors 64
contains "64 descriptors" err "written to out.db"
if "$CC" -fsanitize=address -o asan six.c 2>/dev/null; then unrecorded "AddressSanitizer" ./asan ''; fi

# Where nothing is there, the report says as ever that nothing is.
rm -f out.db.old
"$MEMPROF" report 2>err && fail "a report of nothing"
contains "nothing there" err "'memprof run PROGRAM' makes one"

# In 3 GB of address space a recording is whole.
"$MEMPROF" run -q -o free.db -- "$PROGRAMS/threads_many" >/dev/null
(limit '-v 3000000' && "$MEMPROF" run -q -- "$PROGRAMS/threads_many" >/dev/null)
sound
equal "allocations" "$(DB=free.db total alloc_count)" "$(total alloc_count)"
