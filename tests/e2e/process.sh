# One process of several: what --process shows is what that process did, by arithmetic and by the events; and the
# processes together are the recording.
record "$PROGRAMS/tree" 3 1000
parent=$(value "SELECT min(pid) FROM process")
children=$(sql "SELECT pid FROM process WHERE pid <> $parent ORDER BY process_id")
equal "children" 3 "$(echo "$children" | wc -l)"

# column PID KIND COLUMN: of the totals
column() {
    "$MEMPROF" report out.db --process "$1" --json |
        python3 -c 'import json, sys; 
print([t for t in json.load(sys.stdin)["totals"] if t["kind"] == sys.argv[1]][0][sys.argv[2]])' "$2" "$3"
}
for pid in $children; do # 1000 blocks of 20 bytes, each freed before the next; the parent's are not theirs
    equal "allocations of $pid" 1000 "$(column "$pid" heap alloc_count)"
    equal "bytes of $pid" 20000 "$(column "$pid" heap alloc_bytes)"
    equal "temporaries of $pid" 1000 "$(column "$pid" heap temporary_count)"
    equal "peak of $pid" 20 "$(column "$pid" heap peak_active_bytes)"
    equal "live at the end of $pid" 0 "$(column "$pid" heap end_active_bytes)"
done
equal "peak of the parent" 18000 "$(column "$parent" heap peak_active_bytes)"
equal "live at the end of the parent" 0 "$(column "$parent" heap end_active_bytes)"

# every process's lines, self and with callees, against the events
for pid in $parent $children; do
    equal "events of $pid" \
        "$("$MEMPROF" sql out.db --csv \
        "SELECT count(*), coalesce(sum(size_bytes), 0) FROM v_event e JOIN process p ON p.process_id = e.process_id
        WHERE p.pid = $pid AND op IN ('alloc', 'realloc')" | sed 1d)" \
        "$("$MEMPROF" report out.db --process "$pid" --by line --csv |
        python3 -c 'import csv, sys; r = list(csv.DictReader(sys.stdin))
print(sum(int(x["alloc_count"]) for x in r), sum(int(x["alloc_bytes"]) for x in r), sep=",")')"
    "$MEMPROF" report out.db --process "$pid" --by function -i --csv | python3 -c 'import csv, sys
for x in csv.DictReader(sys.stdin):
    print(x["function"], x["alloc_count"], x["alloc_bytes"], x["free_count"], x["temporary_count"], x["lifetime_ns"],
          x["end_bytes"])'
done | grep -v '  events of' | python3 -c 'import sys, collections
sums = collections.defaultdict(lambda: [0] * 6)
for line in sys.stdin:
    name, *values = line.rsplit(" ", 6)
    sums[name] = [a + int(b) for a, b in zip(sums[name], values)]
for name in sorted(sums): print(name, *sums[name])' >together
"$MEMPROF" report out.db --by function -i --csv | python3 -c 'import csv, sys
keys = ("function", "alloc_count", "alloc_bytes", "free_count", "temporary_count", "lifetime_ns", "end_bytes")
for line in sorted(" ".join(x[k] for k in keys) for x in csv.DictReader(sys.stdin)): print(line)' >whole
sort together | cmp - whole || fail "the processes together are not the recording: $(sort together | diff - whole)"

# by process: the same numbers, and each one's own peak
"$MEMPROF" report out.db --by process --csv | python3 -c 'import csv, sys
for x in csv.DictReader(sys.stdin):
    print(x["pid"], x["alloc_count"], x["own_peak_bytes"])' | sort >by-process
{
    for pid in $children; do echo "$pid 1000 20"; done
    echo "$parent 1001 18000"
} | sort | cmp - by-process || fail "by process: $(cat by-process)"

# what is live at an instant, in one process
at=$(value "SELECT start_ns FROM process WHERE pid = $(echo "$children" | tail -n 1)")
equal "the parent's live bytes then" 18000 \
    "$("$MEMPROF" report out.db --process "$parent" --by device --at "${at}ns" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["rows"][0]["live_bytes"])')"

# without events only the totals by process are left
"$MEMPROF" run -q --aggregate -o totals.db -- "$PROGRAMS/tree" 2 10 || true
status=0; "$MEMPROF" report totals.db --process "$(sqlite3 totals.db 'SELECT max(pid) FROM process')" 2>err || status=$?
equal "status without events" 2 $status
contains "without events" err "'memprof report --by process' shows the totals"
equal "processes without events" 3 "$("$MEMPROF" report totals.db --by process --csv | sed 1d | wc -l)"
