# SIGKILL of the collector of a program that stopped allocating: what is live in the recovered file is what the program
# has, by its own arithmetic, and what the file's events say.
. "$ROOT/tests/faults/collector_end.inc"

live() { by_function "$1" 0 "${2:-heap}" | cut -d'|' -f5-6; }
for RUN_OPTIONS in "" --aggregate; do
    killed ready "$PROGRAMS/held"
    equal "small" "2000|$((2000 * 24))" "$(live small)"
    equal "grown" "9|45000" "$(live grown)"
    equal "mapped" "2|$((6 * 65536))" "$(live mapped map)"
    equal "in_child, of one that ended and one that did not" "119|11900" "$(live in_child)"
    equal "report's line" "11.62 KiB,119" "$("$MEMPROF" report --by line --csv out.db |
        python3 -c "import csv, sys
for row in csv.DictReader(sys.stdin):
    if row['function'].startswith('in_child'): print('%.2f KiB' % (int(row['end_bytes']) / 1024), row['end_count'],
        sep=',')")"
    "$MEMPROF" leaks out.db >leaks
    for function in small grown mapped in_child; do contains "leaks" leaks $function; done
    "$MEMPROF" report --at end --by function --csv out.db >at_end
    equal "--at end" 48000 "$(python3 -c "import csv, sys
print([row for row in csv.DictReader(open('at_end')) if row['function'].startswith('small')][0]['at_peak_bytes'])")"
    [ -n "$RUN_OPTIONS" ] || agrees
done
RUN_OPTIONS=

LEAST=1
killed ready "$PROGRAMS/cut_maps" 3 20000 wait
agrees
equal "parts" 3 "$(sql "PRAGMA user_version")"
if command -v python3 >/dev/null; then # an interpreter that takes itself down
    keeps="x = [bytearray(5000) for i in range(1000)]"
    killed ready python3 -c "import os, time
class Slow:
    def __del__(self):
        os.write(1, b'ready')
        time.sleep(30)
slow = Slow()
$keeps"
    at_least "live where the teardown began" 5000000 "$(total end_active_bytes)"
    agrees tearing
fi
killed ready "$PROGRAMS/many_stacks" 60000 wait
IFS='|' read -r _ _ held_count held_bytes <run.out
equal "many stacks: what the program counted" "$held_count,$held_bytes" \
    "$("$MEMPROF" sql --csv out.db "SELECT sum(end_count), sum(end_bytes) FROM site
    WHERE alloc_bytes / alloc_count BETWEEN 16 AND 415" | tail -n 1 | tr -d '\r')"
if [ -e "$BUILD/cuda/13000/libcuda.so.1" ]; then
    export LD_LIBRARY_PATH="$BUILD/cuda/13000:$BUILD/cuda" SIM_CUDA_DEVICES=2
    for mode in memory pools; do
        killed ready "$BUILD/cuda/programs/random" 2 3000 $mode wait
        equal "devices" 3 "$(value "SELECT count(*) FROM device")"
        agrees
    done
    unset LD_LIBRARY_PATH
fi
