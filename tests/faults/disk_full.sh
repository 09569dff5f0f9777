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
mount -t tmpfs -o size=370k none small
"$MEMPROF" run -o small/out.db -- "$PROGRAMS/stress" 1 1000 7 >out 2>err || fail "tiny: the program's status"
contains "tiny: message" err "disk"
lacks "tiny: message" err "did not start"
dd if=/dev/zero of=small/other bs=4096 2>/dev/null || true # to the last byte
status=0
"$MEMPROF" run -o small/out.db -- sh -c 'echo ran; exit 7' >out 2>err || status=$?
equal "no room at all: the program" "ran 7" "$(cat out) $status"
equal "no room at all: message" "memprof: small/out.db: disk full; free some space or choose another place with -o;
running it without recording" "$(sed "s|$PWD/||; s/; running/;\nrunning/" err)"

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

# In the middle: what is kept tells what was live at its last commit, whether the file can be finished in its place or
# in a private copy alone.
. "$ROOT/tests/faults/collector_end.inc"
umount small
mount -t tmpfs -o size=3m none small
status=0
"$MEMPROF" run -o small/out.db -- "$PROGRAMS/outgrows" 3000000 >out 2>err || status=$?
equal "middle: the program's status" 6 "$status"
contains "middle: message" err "disk full"
in_copy() { "$MEMPROF" sql --csv small/out.db "$1" 2>copy.err | tail -n 1 | tr -d '\r'; }
dd if=/dev/zero of=small/rest bs=4096 2>/dev/null || true
equal "middle: kept, in a copy" "1000,1000,100000" "$(in_copy "SELECT a.alloc_count, a.end_count, a.end_bytes
    FROM account a JOIN function f ON f.function_id = a.key_id
    WHERE a.scope = 'function' AND a.inclusive = 0 AND a.kind = 'heap' AND f.plain_name = 'keep'")"
equal "middle: balance, in a copy" 0 "$(in_copy "SELECT count(*) FROM total
    WHERE alloc_count - free_count <> end_count OR alloc_bytes - free_bytes <> end_active_bytes")"
lacks "middle: why it is a copy" copy.err savepoint
cp small/out.db* .
"$MEMPROF" report out.db >report.txt 2>report.err || fail "middle: no report"
contains "middle: why" report.txt "partial recording: storing stopped early"
equal "middle: kept" "1000|100000|0|0|1000|100000" "$(by_function keep)"
agrees
"$MEMPROF" leaks out.db >leaks.txt
contains "middle: leaks" leaks.txt outgrows.c
"$MEMPROF" report --at 1ns out.db >/dev/null || fail "middle: an instant of it"

# In the first second of a program that fills it at once: something of it is kept, or there is no file of it and the
# older one is set aside whole.
umount small
for size in 1m 1000k 500k; do
    mount -t tmpfs -o size=$size none small
    rm -f older.db
    if [ $size = 1000k ]; then
        "$MEMPROF" run -q -o small/out.db -- "$PROGRAMS/ending" _exit || true
        cp small/out.db older.db
    fi
    "$MEMPROF" run -o small/out.db -- "$PROGRAMS/stress" 1 3000000 7 >out 2>err || fail "at once, $size: its status"
    cmp out expected || fail "at once, $size: the program's output changed"
    cp small/out.db* . 2>/dev/null || true
    umount small
    if [ -e out.db ]; then
        echo "  at once, $size: kept"
        "$MEMPROF" report out.db >/dev/null 2>&1 || fail "at once, $size: no report"
        equal "at once, $size: processes" 1 "$(value "SELECT count(*) FROM process")"
        at_least "at once, $size: events" 1 "$(value "SELECT value FROM meta WHERE key = 'event_count'")"
    else
        [ $size != 1m ] || { cat err; fail "at once: nothing of 1 MiB is kept"; }
        equal "at once, $size: lines" 1 "$(wc -l <err)"
        contains "at once, $size: message" err "nothing was recorded"
        [ ! -e older.db ] || cmp older.db out.db.old || fail "at once, $size: the older recording"
    fi
    rm -f out.db*
done
# Room for the first pages, but not for what SQLite keeps beside them, or just for that: the program runs, and an older
# recording stays.
"$MEMPROF" run -q -o older.db -- "$PROGRAMS/ending" _exit || true
for room in 4 8 16 32 36 40; do
    mount -t tmpfs -o size=4m none small
    cp older.db small/out.db
    dd if=/dev/zero of=small/room bs=1k count=$room 2>/dev/null
    dd if=/dev/zero of=small/fill bs=4096 2>/dev/null || true
    rm small/room
    "$MEMPROF" run -o small/out.db -- "$PROGRAMS/stress" 1 3000000 7 >out 2>err ||
        { cat err; fail "room for $room KiB: its status"; }
    cmp out expected || fail "room for $room KiB: the program's output changed"
    equal "room for $room KiB: lines" 1 "$(wc -l <err)"
    contains "room for $room KiB: message" err "disk full; free some space"
    cmp older.db small/out.db.old || fail "room for $room KiB: the older recording"
    umount small
done
rm older.db
mount -t tmpfs -o size=340k none small
