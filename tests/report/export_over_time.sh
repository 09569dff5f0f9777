# Exports of what happened over time: massif through ms_print, heaptrack through heaptrack_print, trace events as JSON;
# their totals against v_total, of which they are none.
. "$ROOT/tests/report/export.inc"
need ms_print heaptrack_print

# what memprof says, as heaptrack does: 963.07K
thousands() {
    awk -v b="$1" 'BEGIN { split("B K M G", u, " "); i = 1; for (; b >= 1000 && i < 4; i++) b /= 1000
        printf i == 1 ? "%d%s" : "%.2f%s", b, u[i] }'
}
heap() { DB=$1 value "SELECT $2 FROM v_total WHERE device = 'host' AND kind = 'heap'"; }
torn() { DB=$1 value "SELECT sum(freed_bytes) FROM site_teardown JOIN site USING(site_id) WHERE kind = 'heap'"; }

massif() { # NAME DEVICE
    "$MEMPROF" export --format massif "$1.db" --device "$2" -o out.massif 2>err || { cat err; fail "massif: $1"; }
    ms_print out.massif >print || fail "ms_print: $1"
    at_most "$1 $2: snapshots" 100 "$(grep -c '^snapshot=' out.massif)"
    equal "$1 $2: trees" 1 "$(grep -c '^heap_tree=peak' out.massif)"
    equal "$1 $2: the peak" "$(held "$1.db" "$2" peak_active_bytes)" \
        "$(sed -n 's/^[0-9.]*% (\([0-9,]*\)B) (heap allocation functions).*/\1/p' print | tr -d ,)"
    equal "$1 $2: the end" "$(held "$1.db" "$2" end_active_bytes)" \
        "$(sed -n 's/^mem_heap_B=//p' out.massif | tail -n 1)"
    equal "$1 $2: nothing is higher" "$(held "$1.db" "$2" peak_active_bytes)" \
        "$(sed -n 's/^mem_heap_B=//p' out.massif | sort -n | tail -n 1)"
    python3 - out.massif <<END || fail "$1 $2: lines of the tree"
import re, sys
lines = [re.match(r"( *)n(\d+): (\d+) (.*)", l) for l in open(sys.argv[1], errors="replace")]
lines = [(len(m[1]), int(m[2]), int(m[3]), m[4]) for m in lines if m]
def node(i):  # the line after its children
    depth, count, held, _ = lines[i]
    at, total = i + 1, 0
    for _ in range(count):
        assert lines[at][0] == depth + 1, lines[at]
        total += lines[at][2]
        at = node(at)
    assert count == 0 or total == held, (lines[i], total)
    return at
assert node(0) == len(lines)
END
}

heaptrack() { # NAME
    "$MEMPROF" export --format heaptrack "$1.db" -o out.zst 2>err || { cat err; fail "heaptrack: $1"; }
    heaptrack_print -f out.zst >print 2>print.err || fail "heaptrack_print: $1"
    lacks "$1: heaptrack_print" print.err 'failed to parse'
    equal "$1: calls" "$(heap "$1.db" alloc_count)" \
        "$(sed -n 's/^calls to allocation functions: \([0-9]*\).*/\1/p' print)"
    equal "$1: peak" "$(thousands "$(heap "$1.db" peak_active_bytes)")" \
        "$(sed -n 's/^peak heap memory consumption: //p' print)"
    # to the byte, by the reader of our own
    "$MEMPROF" import -q out.zst -o back.db
    for what in alloc_bytes free_bytes peak_active_count; do
        equal "$1: $what, and back" "$(heap "$1.db" $what)" "$(heap back.db $what)"
    done
    equal "$1: peak, to the byte" "$(heap "$1.db" peak_active_bytes)" "$(heap back.db peak_active_bytes)"
    # of Python what was live when it took itself down counts as leaked; heaptrack sees that it is freed
    equal "$1: leaks" "$(($(heap "$1.db" end_active_bytes) - $(torn "$1.db")))" "$(heap back.db end_active_bytes)"
}

trace() { # NAME
    "$MEMPROF" export --format chrome-trace "$1.db" -o out.json 2>err || { cat err; fail "chrome-trace: $1"; }
    at_most "$1: bytes of the trace" 50000000 "$(wc -c <out.json)"
    python3 - out.json >counters <<END || fail "$1: the trace is no JSON"
import json, sys
trace = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in trace if e["name"] == "process_name"}
most = {}
last = {}
for e in trace:
    assert e["ph"] in "MCXi", e
    if e["ph"] == "C":
        key = names[e["pid"]].replace("memory of ", ""), e["name"]
        assert e["ts"] >= last.get(key, 0), e
        last[key] = e["ts"]
        most[key] = max(most.get(key, 0), e["args"]["bytes"])
for (device, name), n in sorted(most.items()):
    print(device, name, n)
END
    for device in $(devices_of "$1.db"); do
        equal "$1 $device: active" "$(held "$1.db" "$device" peak_active_bytes)" \
            "$(sed -n "s/^$device active //p" counters)"
        equal "$1 $device: reserved" "$(held "$1.db" "$device" peak_reserved_bytes)" \
            "$(sed -n "s/^$device reserved //p" counters)"
    done
}

for name in $(recordings); do
    [ -f "$name.db" ] || continue
    for device in $(devices_of "$name.db"); do massif "$name" "$device"; done
    heaptrack "$name"
    trace "$name"
done

# who held the peak of net.c: its sizes are in its text
"$MEMPROF" export --format massif c.db -o out.massif 2>/dev/null
ms_print out.massif >print
contains 'an allocating line' print 'pool_alloc ('
contains 'its caller' print 'forward ('

# ranges, marks and failures by name
sqlite3 c.db "INSERT INTO mark(process_id, thread_id, name, start_ns, end_ns, is_range) SELECT process_id, thread_id,
        'step \"1\"', 1500, 4750, 1 FROM thread LIMIT 1;
    INSERT INTO mark(process_id, name, start_ns, is_range) SELECT process_id, 'here', 2001, 0 FROM thread LIMIT 1;
    INSERT INTO oom(time_ns, device_id, kind, size_bytes, active_bytes) VALUES(3000, 0, 'heap', 1048576, 7)"
"$MEMPROF" export --format chrome-trace c.db -o out.json 2>/dev/null
python3 - out.json >events <<'END'
import json, sys
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e["name"] in ('step "1"', "here") or "memory:" in e["name"]:
        print(e["ph"], e["name"], e["ts"], e.get("dur"))
END
equal 'ranges, marks, failures' 'X step "1" 1.5 3.25
i here 2.001 None
i out of memory: 1.00 MiB of host 3.0 None' "$(cat events)"
"$MEMPROF" export --format chrome-trace c.db --from 3us --to 5us -o out.json 2>/dev/null
lacks 'a window' out.json '"here"'
contains 'a window' out.json 'step'

# several processes: one is named
record_ok sh -c '/bin/true; sort /etc/passwd >sorted; exit 0' >/dev/null
for format in massif heaptrack; do
    bad 2 'several processes allocated, and this format holds one; name it with' export --format $format out.db
done
pid=$(value "SELECT pid FROM process WHERE exe LIKE '%/sort'")
"$MEMPROF" report --process "$pid" --json out.db >report.json
ours=$(python3 -c '
import json
for t in json.load(open("report.json"))["totals"]:
    if t["kind"] == "heap":
        print(t["alloc_count"], t["peak_active_bytes"], t["end_active_bytes"])' 2>/dev/null) || ours=
"$MEMPROF" export --format massif --process "$pid" out.db -o out.massif 2>/dev/null
ms_print out.massif >print || fail 'ms_print of one process of several'
"$MEMPROF" export --format heaptrack --process "$pid" out.db -o out.zst 2>/dev/null
"$MEMPROF" import -q out.zst -o back.db
theirs="$(heap back.db alloc_count) $(heap back.db peak_active_bytes) $(heap back.db end_active_bytes)"
equal 'one process of several' "$ours" "$theirs"

# hostile names
"$MEMPROF" run -q -o net.db -- "$SAMPLES/net" >/dev/null
hostile hostile.db
massif hostile host
heaptrack hostile
trace hostile
lacks 'control characters' print "$(printf '\033')"

# without events, heaptrack's file cannot be made; the others need the timeline alone
"$MEMPROF" run -q --aggregate -o aggregate.db -- "$SAMPLES/net" >/dev/null
bad 2 "heaptrack's files are made of all events" export --format heaptrack aggregate.db
bad 2 'leave out --skip' export --format heaptrack --skip pool_alloc c.db
massif aggregate host
trace aggregate
sqlite3 aggregate.db "DELETE FROM timeline WHERE level > 0"
massif aggregate host
at_least 'snapshots of a timeline with one level' 50 "$(grep -c '^snapshot=' out.massif)"
