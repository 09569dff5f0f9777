# Windows of a run (--from, --to, --during) against a replay of v_event, against the whole run, and split in parts.
need python3

check() { # WHAT WINDOWS
    compared=$(python3 "$ROOT/tests/e2e/window.py" "$MEMPROF" out.db "$2") || fail "$1: $compared"
    at_least "numbers compared of $1" 100 "$compared"
    for options in "--json" "--by line --json" "--by function -i --json" "--by thread" "--by size" "--csv" ""; do
        # shellcheck disable=SC2086
        "$MEMPROF" report out.db $options >whole || fail "report $options"
        # shellcheck disable=SC2086
        "$MEMPROF" report out.db $options --from 0 --to end >window || fail "report $options --to end"
        cmp whole window || fail "$1: the whole run as a window is another report ($options)"
    done
}

record_ok "$SAMPLES/net"
check net 5
cp out.db net.db
record_ok "$PROGRAMS/tree" 3 300 # processes
check processes 4
record "$PROGRAMS/maps" # parts of maps
check maps 4
record "$SAMPLES/threads"
check threads 2
# Of a file without sums by thread (an older version's), or with damaged ones, the events tell the same.
part=$(sqlite3 out.db "SELECT printf('--from %dns --to %dns', (first_ns + last_ns) / 2, (SELECT max(last_ns) FROM
    event_chunk)) FROM event_chunk WHERE chunk_id = 2")
for change in "DROP TABLE chunk_sum" "UPDATE chunk_sum SET data = zeroblob(40)" "DELETE FROM chunk_sum"; do
    cp out.db old.db && sqlite3 old.db "$change"
    for by in thread process; do
        # shellcheck disable=SC2086
        "$MEMPROF" report out.db --by "$by" $part >sums
        # shellcheck disable=SC2086
        "$MEMPROF" report old.db --by "$by" $part | cmp - sums || fail "$change: by $by"
    done
done
at_least "allocations of half a run" 10000 "$(awk 'NR > 3 { gsub(",", ""); print $5 }' sums | sort -n | tail -n 1)"
# an interpreter that is taken down
record_ok python3 -S -c 'import json; [json.dumps([str(i)] * 50) for i in range(50)]'
check python 3

# Cut at 12 instants, the numbers add up to those of the run (test_window.c: at 100).
python3 - "$MEMPROF" >sums <<'END' || fail "windows do not add up: $(cat sums)"
import json, random, subprocess, sys
def totals(*options):
    out = subprocess.run([sys.argv[1], "report", "net.db", "--by", "line", "--top", "0", "--json", *options],
                         check=True, capture_output=True, text=True).stdout
    sums = {}
    for row in json.loads(out)["rows"]:
        for stat in ("alloc_count", "alloc_bytes", "free_count", "free_bytes", "temporary_count"):
            sums[row["key_id"], stat] = row[stat]
    return sums
random.seed(3)
info = subprocess.run([sys.argv[1], "info", "net.db", "--json"], capture_output=True, text=True).stdout
end = json.loads(info)["duration_ns"]
cuts = sorted(random.sample(range(1, end), 12))
sums = {}
for a, b in zip([None] + cuts, cuts + [None]):
    options = (["--from", "%dns" % a] if a is not None else []) + (["--to", "%dns" % b] if b else [])
    for key, value in totals(*options).items():
        sums[key] = sums.get(key, 0) + value
whole = totals()
wrong = [(k, sums.get(k, 0), whole.get(k, 0)) for k in sums.keys() | whole.keys() if sums.get(k, 0) != whole.get(k, 0)]
print(wrong or len(whole))
sys.exit(bool(wrong))
END
at_least "statistics that add up" 30 "$(cat sums)"

equal "sizes of a window without events" \
    "Nothing in this part of the run: without --process, --from, --to and --during it is the whole." \
    "$("$MEMPROF" report net.db --by size --from 1ns --to 2ns | tail -n 1)"

# Ranges: the second step of samples/net, and all of them.
"$MEMPROF" report net.db --during 'step#2' --json >step
python3 - <<'END' || fail "the second step: $(cat step)"
import json
w = json.load(open("step"))
assert w["window"]["name"] == "step" and w["window"]["nth"] == 2 and w["window"]["of"] == 100, w["window"]
t = [x for x in w["totals"] if x["kind"] == "all"][0]
assert t["start_bytes"] + t["alloc_bytes"] - t["free_bytes"] == t["end_active_bytes"], t
assert t["peak_active_bytes"] >= max(t["start_bytes"], t["end_active_bytes"]), t
END
sum() { # OPTION...: of the allocations, and the number of events
    "$MEMPROF" report net.db --by device --json "$@" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["rows"][0]["alloc_count"])'
}
each=$("$MEMPROF" sql net.db --csv "SELECT count(*) FROM v_event e JOIN mark m ON e.time_ns >= m.start_ns
    AND e.time_ns < m.end_ns WHERE op IN ('alloc', 'realloc')" | tail -n 1 | tr -d '\r')
equal "allocations of all steps" "$each" "$(sum --during 'step#all')"
equal "the same as a pattern" "$each" "$(sum --during 's?ep#all')"
bad 2 "no range of that name; this recording has: step (100)" report net.db --during stp
bad 2 "there are 100 of that name" report net.db --during 'step#101'
bad 2 "expected NAME, NAME#1 or NAME#all" lines net.db --during 'step#x'
bad 2 "the run ended at" leaks net.db --from 100s
bad 2 "is not before" report net.db --from mark:step#9 --to mark:step#2
bad 2 "leave out --from and --to" report net.db --from 20ms --during step
bad 2 "choose one" report net.db --from 20ms --at 10ms
bad 2 "this recording has no ranges" report out.db --during step

# --at mark:NAME: where the second step begins, there is what the first one left
at=$(sqlite3 net.db "SELECT start_ns FROM mark ORDER BY start_ns LIMIT 1 OFFSET 1")
"$MEMPROF" report net.db --at 'mark:step#2' >mark
"$MEMPROF" report net.db --at "${at}ns" | cmp - mark || fail "--at mark:step#2"
bad 2 "no mark of that name" report net.db --at mark:x

# Times of day: the run began at 14:03:10 UTC (date -ud 2026-11-23T14:03:10Z +%s).
cp net.db clock.db
sqlite3 clock.db "UPDATE meta SET value = '1795442590000000000' WHERE key = 'start_unix_ns'"
same() { # OPTIONS OTHERS: of the same window, or instant
    # shellcheck disable=SC2086
    TZ=EST5 "$MEMPROF" $1 >clock && TZ=EST5 "$MEMPROF" $2 | cmp - clock || fail "$1 is not $2"
}
same "report clock.db --by line --from 20ms --to 40ms" \
    "report clock.db --by line --from 09:03:10.02 --to 2026-11-23T14:03:10.04Z"
same "leaks clock.db --at 30ms" "leaks clock.db --at 9:03:10.030"
same "report clock.db --at 30ms" "report clock.db --at 2026-11-23T15:03:10.03+01:00"
same "report clock.db --by line --to 40ms" "report clock.db --by line --from 9:03:10 --to 09:03:10.04"
bad 2 "the run was from" report clock.db --from 2026-11-23T14:03:09Z
bad 2 "the run was from" report clock.db --at 14:03:08Z
bad 2 "there was no such time" report clock.db --from 2026-02-30T00:00:00
bad 2 "expected a local time such as" report clock.db --from 25:00
bad 2 "expected a local time such as" leaks clock.db --at 99999999999999999999999:00
for start in 0 -9223372036854775808 9223372036854775807 x; do
    sqlite3 clock.db "UPDATE meta SET value = '$start' WHERE key = 'start_unix_ns'"
    bad 2 "14:03" report clock.db --from 14:03
done

# Ranges of marks.c: one that nests, one that is never closed; a mark is no range.
record_ok "$PROGRAMS/marks"
cp out.db marks.db
count() { "$MEMPROF" report marks.db --by device --during "$1" --json |
    python3 -c 'import json, sys; r = json.load(sys.stdin)["rows"]; print(r[0]["alloc_count"] if r else 0)'; }
equal "allocations in outer, with those of inner" 2 "$(count outer)"
equal "allocations in inner" 1 "$(count inner)"
bad 2 "is an instant, no range" report marks.db --during middle
"$MEMPROF" report marks.db --during open --json >open
equal "the open range ends with the process" "$(sqlite3 marks.db "SELECT max(end_ns) FROM process")" \
    "$(python3 -c 'import json; print(json.load(open("open"))["window"]["to_ns"])')"

# Leaks of a window: what is allocated in it and live at its end; of the first half of the run.
"$MEMPROF" leaks net.db --from 0 --to "${at}ns" --all --json >left
"$MEMPROF" report net.db --by device --at "$((at - 1))ns" --json >live
python3 -c 'import json
left, live = json.load(open("left")), json.load(open("live"))["rows"][0]
assert (left["end_bytes"], left["end_count"]) == (live["live_bytes"], live["live_count"]), (left["end_bytes"], live)' ||
    fail "what the first part leaves is not what was live then"
equal "leaks of a range without allocations" "Nothing was live at the end of the window, and allocated in it." \
    "$("$MEMPROF" leaks marks.db --during open --all | tail -n 1)"

# Recordings without events: only stored instants, and it is said.
"$MEMPROF" run -q --aggregate -o totals.db -- "$SAMPLES/net" >/dev/null
"$MEMPROF" report totals.db --by line --from 10ms --to end >out
contains "a window without events" out "! not all events of the window are kept"
"$MEMPROF" report totals.db --by line --from 10ms --to end --json | python3 -c 'import json, sys
w = json.load(sys.stdin)
assert w["window"]["is_counted"] == 0, w["window"]
assert all(r["alloc_count"] is None for r in w["rows"]), w' || fail "what is not known is shown"
bad 2 "only its events tell" leaks totals.db --from 10ms
bad 2 "needs all events" report totals.db --by thread --from 10ms

# The next commands are of the window; an error names the option that was given.
"$MEMPROF" report marks.db --during open >out
contains "the next command" out "memprof leaks marks.db --during open"
"$MEMPROF" report marks.db --to mark:nobody 2>err && fail "a mark that is not there"
contains "whose mark it was" err "--to mark:nobody"
