# The most that all held at one instant, as a merged file has it: that of all events, and bounds where some are missing.
. "$ROOT/tests/lib.sh"
need python3

merge() { "$MEMPROF" merge "$@" 2>merge.err || { cat merge.err; fail "merge $*"; }; }
# check ALL FILE... [OPTION...]
check() {
    all=$1
    shift
    python3 "$ROOT/tests/e2e/many_peak.py" --merged "$all" "$@" || fail "common peak of $all"
}
common() { sqlite3 -readonly "$1" 'SELECT least_bytes, most_bytes, time_ns FROM common_peak WHERE device_id = 0'; }

# turn OUT IN, and turn IN OUT other: in turns each holds 1,000,000 bytes and frees them, never both at once; at last
# the other one holds 300,000 beside them: 1,300,000 at most, where a bucket of a timeline has up to 2,000,000
cat >turn.c <<'END'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static void hold(int size) {
    char *volatile p = malloc(size);
    free(p);
}
int main(int argc, char **argv) {
    char c = 0;
    int is_other = argc > 3;
    int first = open(argv[1], is_other ? O_RDONLY : O_WRONLY), second = open(argv[2], is_other ? O_WRONLY : O_RDONLY);
    int in = is_other ? first : second, out = is_other ? second : first;
    for (int i = 0; i < 1000; i++) {
        if (is_other && read(in, &c, 1) != 1)
            return 1;
        hold(1000000);
        if (write(out, &c, 1) != 1 || (!is_other && read(in, &c, 1) != 1))
            return 1;
    }
    char *volatile p = is_other ? NULL : malloc(1000000);
    if (is_other && read(in, &c, 1) != 1)
        return 1;
    if (is_other)
        hold(300000);
    if (write(out, &c, 1) != 1 || (!is_other && read(in, &c, 1) != 1))
        return 1;
    free(p);
}
END
"$CC" -g -O0 -o turn turn.c
cat >work.py <<'END'
import random
held = []
for i in range(2000):
    held.append(bytearray(random.randrange(100000)))
    if len(held) > 50:
        del held[random.randrange(len(held))]
END
rank() {
    RANK=$1
    export RANK
    shift
    "$MEMPROF" run -q -o 'r%q{RANK}.db' -- "$@" >run.$RANK 2>&1 || { cat run.$RANK; fail "run $*"; }
}
mkfifo there back
rank 3 python3 work.py &
rank 1 ./turn there back &
rank 2 ./turn there back other &
wait
merge -o two.db r1.db r2.db
equal 'by arithmetic' '1300000|1300000' "$(common two.db | cut -d'|' -f1-2)"
check two.db r1.db r2.db
merge -o all.db r?.db
check all.db r?.db
"$MEMPROF" report r?.db --json >got.json
equal 'as of the files beside each other' "$(sqlite3 :memory: "SELECT j ->> '$.common_peak_least_bytes',
    j ->> '$.common_peak_most_bytes', j ->> '$.common_peak_ns'
    FROM (SELECT CAST(readfile('got.json') AS TEXT) -> '$.devices[0]' j)")" "$(common all.db)"
"$MEMPROF" report two.db >got
tr '\n' ' ' <got | grep -qE 'together +held +at +most: +host +1.24 +MiB +at +[0-9.]+ +m?s' ||
    { cat got; fail 'one number, with its instant'; }
merge -o other.db r3.db r1.db r2.db
equal 'in another order' "$(common all.db)" "$(common other.db)"

# by the wall clock of one host, where no boot is known
for i in 1 2; do
    cp r$i.db wall$i.db
    sqlite3 wall$i.db "DELETE FROM meta WHERE key = 'boot_id'"
done
merge -o wall.db wall?.db
"$MEMPROF" report wall?.db --json >got.json
equal 'by the wall clock' "$(sqlite3 :memory: "SELECT j ->> '$.common_peak_least_bytes',
    j ->> '$.common_peak_most_bytes', j ->> '$.common_peak_ns'
    FROM (SELECT CAST(readfile('got.json') AS TEXT) -> '$.devices[0]' j)")" "$(common wall.db)"

# one of them has no events, or damaged ones; one was merged before: bounds, in which the truth lies
cp r2.db none.db
sqlite3 none.db "DELETE FROM event_chunk; UPDATE meta SET value = 'none' WHERE key = 'events_kept'"
merge -o bounds.db r1.db none.db
check bounds.db r1.db none.db --bounds --truth r1.db r2.db
equal 'bounds' 1 "$(sqlite3 bounds.db 'SELECT least_bytes < most_bytes FROM common_peak')"
"$MEMPROF" report bounds.db >got
tr '\n' ' ' <got | grep -qE 'together +held +at +most: +host +between ' || { cat got; fail 'bounds in words'; }
cp r2.db bad.db
sqlite3 bad.db 'UPDATE event_chunk SET data = substr(data, 1, 100)'
merge -o bounds.db r1.db bad.db
check bounds.db r1.db bad.db --bounds --truth r1.db r2.db
merge -o 23.db r2.db r3.db
merge -o bounds.db r1.db 23.db
check bounds.db r1.db 23.db --bounds --truth r1.db r2.db r3.db

# a merged file beside others: its peak is a sum of peaks, which no instant need have had
"$MEMPROF" run -q -o small.db -- "$PROGRAMS/ranks" 0 >run.small 2>&1 || fail 'run ranks'
python3 "$ROOT/tests/e2e/many_peak.py" 23.db r1.db --bounds --as wall --truth r?.db || fail '23.db and r1.db'
python3 "$ROOT/tests/e2e/many_peak.py" two.db small.db --bounds --as wall --truth r1.db r2.db small.db ||
    fail 'two.db and small.db'
sqlite3 two.db "UPDATE meta SET value = 'elsewhere' WHERE key = 'host'"
"$MEMPROF" report two.db small.db --json >got.json
equal 'its part of what is known of several machines' 1300000 "$(sqlite3 :memory: "SELECT
    j ->> '$.common_peak_least_bytes' FROM (SELECT CAST(readfile('got.json') AS TEXT) -> '$.devices[0]' j)")"

# what is cut off may have held more: no number
cp r2.db cut.db
truncate -s $(($(stat -c %s r2.db) / 4096 * 3 / 4 * 4096)) cut.db
merge -o bounds.db r1.db cut.db
equal "one number beside a part" 0 \
    "$(sqlite3 bounds.db "SELECT count(*) FROM common_peak WHERE least_bytes = most_bytes")"
