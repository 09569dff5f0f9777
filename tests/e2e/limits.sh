# Programs with little memory, few descriptors, another root and user.
code=0
"$MEMPROF" run -q -o out.db -- sh -c "ulimit -v 300000; '$SAMPLES/leak'" 2>err || code=$?
equal "a program with 300 MB of address space: its own status" 0 $code
(ulimit -v 300000 && "$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>err) || code=$?
equal "memprof itself with 300 MB of address space: status" 0 $code
code=0
(ulimit -n 16 && "$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>err) || code=$?
equal "16 descriptors" 0 $code
code=0
sum=$(md5sum <out.db)
for limit in 4 5; do
    (exec 2>err && ulimit -n $limit && exec "$MEMPROF" run -q -o out.db -- sh -c 'exit 7') || code=$?
    equal "$limit descriptors, and a recording there: its own status" 7 $code
    contains "$limit descriptors: it says so" err "running it without recording"
    equal "$limit descriptors: that recording" "$sum" "$(md5sum <out.db)"
done
code=0
(ulimit -f 4000 && "$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>err) || code=$?
equal "files of at most 2 MB: the program's own status" 0 $code
[ ! -s err ] || contains "it says why, and runs it" err "ulimit -f)?; running it without recording"
rm -f out.db*
(ulimit -f 20 && "$MEMPROF" run -q -o out.db -- true 2>err) # blocks of 512 bytes: SQLite makes two pages of its index
contains "files of at most 10 KB" err "running it without recording"
contains "why" err "memprof: out.db: a file may not grow beyond 10.00 KiB (ulimit -f); raise that limit; running it"
equal "what it leaves" "" "$(ls -d out.db* 2>/dev/null)"
# room for the file's first pages, and not for all that follows: a limit of blocks of 512 bytes that may be lifted
for limit in '900 450.00 KiB' '5000 2.44 MiB'; do
    rm -f out.db*
    code=0
    (ulimit -S -f "${limit%% *}" && "$MEMPROF" run -q -o out.db -- "$PROGRAMS/outgrows" 3000000 2>err) || code=$?
    equal "$limit: the program's own status" 6 $code
    contains "$limit: why" err "out.db: a file may not grow beyond ${limit#* } (ulimit -f); raise that limit; recording"
    "$MEMPROF" report out.db >report.txt
    contains "$limit: the report" report.txt "! partial recording: storing stopped early: "
    contains "$limit: why, in the report" report.txt "a file may not grow beyond ${limit#* } (ulimit -f)"
done
rm -f out.db*
"$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" || fail "a run after it"
[ "$(id -u)" = 0 ] || skip "chroot needs root"
record "$PROGRAMS/drop" "$PWD"
[ $status != 77 ] || skip "chroot is not permitted here"
equal "status" 0 $status
sound
equal "chroot, nobody" "300|9300|300" "$(by_function work | cut -d'|' -f1-3)"
