# SIGKILL of the collector: what was live at the last commit is what the recovered file shows as live at the end.
rest() { # the program goes on: it is ended here
    for pid in $(DB=$1 sql "SELECT pid FROM process WHERE end_ns IS NULL AND pid > 0"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
}
# killed SECONDS COMMAND...: records it and kills the collector so long after the first events are in the file; or, as
# "ready", after the program said something and that was written; or, as "packed", when packed rows have newer ones
# beside them. Recovers the file
killed() {
    after=$1
    shift
    rm -f out.db out.db-* run.out
    : >run.out
    "$MEMPROF" run -q $RUN_OPTIONS -o out.db -- "$@" >run.out 2>run.err &
    runner=$!
    for i in $(seq 300); do
        case $after in
        ready) [ ! -s run.out ] || break ;;
        packed) [ "$(sqlite3 -readonly out.db "SELECT max(part) > 0 FROM packed" 2>/dev/null)" != 1 ] || break ;;
        *) [ -z "$(sqlite3 -readonly out.db "SELECT 1 FROM event_chunk LIMIT 1" 2>/dev/null)" ] || break ;;
        esac
        sleep 0.1
    done
    [ "$i" -lt 300 ] || fail "$* did not begin"
    case $after in ready) after=2 ;; packed) after=0 ;; esac
    sleep "$after"
    kill -KILL $runner
    wait $runner 2>/dev/null || true
    rest out.db
    "$MEMPROF" report out.db >report 2>report.err || { cat report.err; fail "report of $*"; }
    contains "the reason" report "the collector was killed"
    lacks "the end" report "not known"
}
# The file's own events, added up by site, against what it says was live at the end; sums, and the key frames of the
# end and of the peaks
is_born="op IN ('alloc', 'realloc')"
is_dead="op IN ('free', 'to_segment')"
bytes="coalesce(sum(size_bytes) FILTER (WHERE $is_born), 0) -
    coalesce(sum(size_bytes) FILTER (WHERE $is_dead OR op = 'cut'), 0)"
count="count(*) FILTER (WHERE $is_born) - count(*) FILTER (WHERE $is_dead)"
agrees() {
    at_least "events" "${LEAST:-100}" "$(sites "SELECT count(*) FROM v_event")"
    balance
    equal "sites that differ from their events" 0 "$(sites "SELECT count(*) FROM site s
        LEFT JOIN (SELECT site_id, $bytes AS bytes, $count AS count FROM v_event GROUP BY site_id) l USING(site_id)
        LEFT JOIN site_teardown x USING(site_id)
        WHERE coalesce(l.bytes, 0) <> s.end_bytes - coalesce(x.freed_bytes, 0)
        OR coalesce(l.count, 0) <> s.end_count - coalesce(x.freed_count, 0)")"
    for device in $(sql "SELECT name FROM device"); do
        torn=$(sites "SELECT sum(freed_bytes) FROM site_teardown JOIN site USING(site_id) JOIN device USING(device_id)
            WHERE name = '$device'")
        equal "$device: live at the end" "$(sites "SELECT $bytes FROM v_event WHERE device = '$device'")" \
            "$(value "SELECT end_active_bytes - $torn FROM v_total WHERE device = '$device' AND kind = 'all'")"
    done
    [ "${1:-}" = tearing ] || equal "threads against totals" 0 "$(value "SELECT count(*) FROM total t JOIN
        (SELECT device_id, kind, sum(end_bytes) AS b, sum(end_count) AS c FROM account WHERE scope = 'thread'
        GROUP BY 1, 2) a USING(device_id, kind) WHERE b <> end_active_bytes OR c <> end_count")"
    equal "key frames of the end" 1 "$(value "SELECT count(*) FROM keyframe WHERE reason = 'end'")"
    equal "key frames of peaks" "$(value "SELECT count(*) FROM total WHERE kind = 'all' AND peak_active_bytes > 0")" \
        "$(value "SELECT count(*) FROM keyframe WHERE reason = 'peak'")"
    # the peak's key frame and events from the beginning say the same
    "$MEMPROF" report --at peak --by line --csv -n 0 out.db >peak.key
    cp out.db other.db
    sqlite3 other.db "DELETE FROM keyframe WHERE reason IN ('peak', 'end')"
    "$MEMPROF" report --at peak --by line --csv -n 0 other.db >peak.events
    cmp peak.key peak.events || { diff peak.key peak.events | head; fail "the peak's key frame"; }
    at_least "lines at the peak" 2 "$(wc -l <peak.key)"
}

# --- a program that stops allocating: its own arithmetic
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

# --- at any moment
LEAST=1
for after in 0 0.3; do
    killed $after "$PROGRAMS/busy" 30
    agrees
done
killed ready "$PROGRAMS/cut_maps" 3 20000 wait
agrees
equal "parts" 3 "$(sql "PRAGMA user_version")"
killed 0.4 "$PROGRAMS/fork_load" 100000
agrees
if command -v python3 >/dev/null; then # an interpreter that took itself down before, and one that does
    keeps="x = [bytearray(5000) for i in range(1000)]"
    killed 2 sh -c "python3 -c '$keeps'; '$PROGRAMS/busy' 30"
    at_least "bytes that the teardown freed" 5000000 "$(sites "SELECT sum(freed_bytes) FROM site_teardown")"
    agrees
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
killed packed "$PROGRAMS/many_stacks" 100000000
equal "packed" "site stack" "$(sql "SELECT DISTINCT table_name FROM packed ORDER BY 1" | xargs)"
equal "parts" 0 "$(value "SELECT max(part) FROM packed WHERE table_name = 'site'")"
agrees
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
