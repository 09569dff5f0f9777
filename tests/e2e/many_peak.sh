# The most that several recordings held at one instant: by arithmetic, from all their events, and where less is known.
. "$ROOT/tests/lib.sh"
need python3

# meet BYTES MINE [OTHER]: waits for the file OTHER, holds BYTES, makes the file MINE; with a third one waits for that
cat >meet.c <<'END'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static void wait_for(const char *file) {
    for (int i = 0; i < 30000 && access(file, F_OK); i++)
        usleep(1000);
}
int main(int argc, char **argv) {
    if (*argv[2])
        wait_for(argv[2]);
    char *p = malloc(atoi(argv[1]));
    p[0] = 1;
    close(open(argv[3], O_CREAT | O_WRONLY, 0600));
    if (argc > 4)
        wait_for(argv[4]);
    free(p);
}
END
"$CC" -g -O0 -o meet meet.c
rec() { "$MEMPROF" run -q -o "$@" >/dev/null 2>run.err || { cat run.err; fail "recording $1"; }; }
# a holds 1,000,000 until b holds 500,000 beside it; c holds 800,000 when both are gone
rec a.db -- ./meet 1000000 '' a b &
rec b.db -- ./meet 500000 a b
wait
rec c.db -- ./meet 800000 '' c
"$MEMPROF" report ?.db --json >got.json
equal 'the common peak' '1500000|1500000|2300000|machine' "$(sqlite3 :memory: "SELECT
    j ->> '$.common_peak_least_bytes', j ->> '$.common_peak_most_bytes', j ->> '$.sum_of_peaks_bytes',
    j ->> '$.common_clock' FROM (SELECT CAST(readfile('got.json') AS TEXT) -> '$.devices[0]' j)")"
"$MEMPROF" report a.db b.db c.db >got
contains 'in words' got 'Common peak of host: 1.43 MiB at '
contains 'in words' got "by the machine's own clock"
"$MEMPROF" report a.db >got
lacks 'of one' got 'Common peak'

# others start at about the same time and go up and down
cat >work.py <<'END'
import random, sys
random.seed(int(sys.argv[1]))
held = []
for i in range(2000):
    held.append(bytearray(random.randrange(100000)))
    if len(held) > 50:
        del held[random.randrange(len(held))]
END
for i in 1 2 3; do rec "w$i.db" -- python3 work.py $i & done
wait
check() { python3 "$ROOT/tests/e2e/many_peak.py" "$@" || fail "common peak of $*"; }
check w?.db
check ?.db w?.db

# the wall clock, where the boot is not known; two machines
for i in 1 2 3; do
    cp w$i.db wall$i.db
    sqlite3 wall$i.db "DELETE FROM meta WHERE key = 'boot_id'"
    cp wall$i.db other$i.db
done
"$MEMPROF" report wall?.db --json >got.json
equal 'by the wall clock' 'wall|1' "$(sqlite3 :memory: "SELECT j ->> '$.common_clock',
    j ->> '$.common_peak_least_bytes' = j ->> '$.common_peak_most_bytes'
    FROM (SELECT CAST(readfile('got.json') AS TEXT) -> '$.devices[0]' j)")"
sqlite3 other2.db "UPDATE meta SET value = 'elsewhere' WHERE key = 'host'"
"$MEMPROF" report other?.db --json >got.json
equal 'of two machines' 'several machines|1|1|' "$(sqlite3 :memory: "SELECT j ->> '$.common_clock',
    j ->> '$.common_peak_least_bytes' = j ->> '$.most_peak_bytes',
    j ->> '$.common_peak_most_bytes' = j ->> '$.sum_of_peaks_bytes', j ->> '$.common_peak_ns'
    FROM (SELECT CAST(readfile('got.json') AS TEXT) -> '$.devices[0]' j)")"
"$MEMPROF" report other?.db >got
contains 'of two machines' got 'the highest peak and the sum of all'

# one of them has no events, and few buckets: bounds; its events are damaged: bounds, and it is named
cp w2.db none.db
sqlite3 none.db "DELETE FROM event_chunk; UPDATE meta SET value = 'none' WHERE key = 'events_kept';
    DELETE FROM timeline WHERE level < 9"
check w1.db none.db w3.db --bounds --truth w1.db w2.db w3.db
"$MEMPROF" report w1.db none.db w3.db >got
contains 'why' got '1 of them has no events'
cp w2.db bad.db
sqlite3 bad.db "UPDATE event_chunk SET data = substr(data, 1, 100); DELETE FROM timeline WHERE level < 9"
check w1.db bad.db w3.db --bounds --truth w1.db w2.db w3.db
"$MEMPROF" report w1.db bad.db w3.db >got
contains 'named' got '! bad.db: a part of the events is damaged'
