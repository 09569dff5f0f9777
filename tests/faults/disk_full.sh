# A full disk: the program runs on with its own status, memprof says one line, what was committed can be read.
[ "$(id -u)" = 0 ] || skip "mounting a small tmpfs needs root"
mkdir small
mount -t tmpfs -o size=600k none small 2>/dev/null || skip "mount is not permitted here"
trap 'umount small' EXIT
status=0
"$MEMPROF" run -o small/out.db -- "$PROGRAMS/stress" 1 3000000 7 >out 2>err || status=$?
"$PROGRAMS/stress" 1 3000000 7 >expected
cmp out expected || fail "the program's output changed"
contains "message" err "small/out.db"
grep -q -i -e 'full' -e 'space' err || { cat err; fail "the message does not say that the disk is full"; }
at_most "lines" 2 "$(wc -l <err)"
equal "the program's status" 0 "$status"
code=0
"$MEMPROF" info small/out.db >info 2>&1 || code=$?
at_most "memprof info on what is left" 1 $code
if [ $code = 0 ]; then grep -q -i partial info || { cat info; fail "info does not say partial"; }; fi

# One without room for even the first pages: it is the disk that is named.
umount small
mount -t tmpfs -o size=300k none small
"$MEMPROF" run -o small/out.db -- "$PROGRAMS/stress" 1 1000 7 >out 2>err || fail "tiny: the program's status"
contains "tiny: message" err "disk"
lacks "tiny: message" err "did not start"

# One that somebody fills in the first 0.2 seconds: what came before is kept, and what the reserve has room for.
umount small
mount -t tmpfs -o size=16m none small
status=0
"$MEMPROF" run -o small/out.db -- "$PROGRAMS/fills_disk" small/other >out 2>err || status=$?
equal "early: the program's status" 5 "$status"
at_most "early: lines" 2 "$(wc -l <err)"
if grep -q "disk full" err; then
    echo "  early: it said that the disk was full"
else # all of it fitted into the reserve
    equal "early: all events" 1510 "$(DB=small/out.db value "SELECT sum(alloc_count) FROM site s JOIN site_line
        USING(site_id) JOIN line l USING(line_id) JOIN function f USING(function_id) WHERE f.name = 'work'")"
fi
at_least "early: events before it" 1000 "$(DB=small/out.db value "SELECT value FROM meta WHERE key = 'event_count'")"
at_least "early: allocations before it" 1000 \
    "$(DB=small/out.db value "SELECT sum(alloc_count) FROM site WHERE kind = 'heap'")"
"$MEMPROF" report small/out.db >report.txt || fail "early: no report"
contains "early: report" report.txt fills_disk.c
