# Imported snapshots at their ends: what is live at the last instant, what no report may count, and what makes no sense.
need python3
cat >make.py <<'EOF'
import pickle
T = 1700000000000000
def entry(action, address, size, us):
    return {'action': action, 'addr': address, 'size': size, 'stream': 0, 'time_us': T + us, 'frames': []}
def block(address, size, state='active_allocated'):
    return {'address': address, 'size': size, 'requested_size': size, 'state': state, 'frames': []}
def segment(blocks):
    size = sum(b['size'] for b in blocks)
    return {'device': 0, 'address': 4096, 'total_size': size, 'allocated_size': size, 'active_size': size,
            'requested_size': size, 'stream': 0, 'segment_type': 'large', 'segment_pool_id': (0, 0),
            'is_expandable': False, 'blocks': blocks}
def write(name, segments, trace, rest=b''):
    with open(name, 'wb') as f:
        snapshot = {'device_traces': [trace]}
        if segments is not None:
            snapshot['segments'] = segments
        pickle.dump(snapshot, f, 4)
        f.write(rest)
blocks = [block(4096, 1000), block(5096, 2000), block(7096, 3000, 'active_pending_free'), block(10096, 500, 'inactive')]
write('instant.pickle', [segment(blocks)], [entry('alloc', 4096, 1000, 0)])
write('span.pickle', [segment(blocks)], [entry('alloc', 4096, 1000, 0), entry('alloc', 5096, 2000, 700)])
# four from before, the last of them freed first, and one after a request
old = [entry('free_completed', 4096 + 512 * i, 512, i) for i in (3, 0, 2)]
old += [entry('free_requested', 4608, 512, 4), entry('free_completed', 4608, 512, 5)]
write('before.pickle', [segment([block(4096, 2048, 'inactive')])], old)
# the newest address waits for its free when the history begins
write('waits.pickle', [segment([block(4096, 2048, 'inactive')])], [entry('free_completed', 4608, 512, 0)])
pair = [entry('alloc', 4096, 512, 6), entry('free_completed', 4096, 512, 7)]
write('temporary.pickle', [segment([block(4096, 2048, 'inactive')])], old + pair)
# no sizes: -5, 2**63, 2**60, 2**48 and a text; an oom may ask for 2**55
bad = [entry('alloc', 4096 + 512 * i, s, i) for i, s in enumerate((-5, 2**63, 2**60, 2**48, 'x', 512))]
write('sizes.pickle', None, bad + [entry('oom', 0, 2**55, 9)])
# 32768 times 2**48 - 1 fit below 2**63, and no more do
write('sums.pickle', None, [entry('alloc', 4096 + 512 * i, 2**48 - 1, i) for i in range(32770)])
write('empty.pickle', [], [])
write('rest.pickle', [segment(blocks)], [entry('alloc', 4096, 1000, 0)], b'x' * 1234567)
EOF
python3 make.py

import() { "$MEMPROF" import "$1.pickle" -o out.db 2>err || { cat err; fail "$1: import"; }; }
last() { value "SELECT $1 FROM v_timeline WHERE device = 'cuda:0' ORDER BY time_ns DESC LIMIT 1"; }
for name in instant span; do
    import $name
    equal "$name: the timeline ends with active" 6000 "$(last active_bytes)"
    equal "$name: with allocated" 3000 "$(last allocated_bytes)"
    equal "$name: with reserved" 6500 "$(last reserved_bytes)"
    equal "$name: live at the end" '6000|3' \
        "$(sql "SELECT end_active_bytes, end_count FROM v_total WHERE kind = 'all' AND device = 'cuda:0'")"
    end=$(value "SELECT value FROM meta WHERE key = 'duration_ns'")
    "$MEMPROF" report out.db --at "${end}ns" >at
    lacks "$name: at $end ns" at 'Nothing.'
    contains "$name: at $end ns" at '(before the history)'
    events=$(value "SELECT value FROM meta WHERE key = 'event_count'")
    contains "$name: events, import" err " $events events of 1 device"
    "$MEMPROF" report out.db >report
    contains "$name: events, report" report " $events events"
    "$MEMPROF" info out.db >info
    contains "$name: events, info" info " $events recorded"
    equal "$name: events, by themselves" "$events" \
        "$("$MEMPROF" sql --csv out.db "SELECT count(*) FROM v_event WHERE op <> 'end'" | tail -n 1)"
done
equal 'span: duration' 700000 "$end"

import before
equal 'before: allocations and frees' '4|4' \
    "$(sql "SELECT alloc_count, free_count FROM v_total WHERE kind = 'all' AND device = 'cuda:0'")"
equal 'before: none is temporary' 0 "$(value "SELECT sum(temporary_count) FROM site")"
import waits
equal 'before, and waiting: nor is that' '1|0' "$(sql "SELECT sum(free_count), sum(temporary_count) FROM site")"
import temporary
equal 'a pair in the history is' 1 "$(value "SELECT sum(temporary_count) FROM site")"

import sizes
contains 'sizes' err '5 sizes that make no sense'
equal 'sizes: what is left' 512 \
    "$(value "SELECT end_active_bytes FROM v_total WHERE kind = 'all' AND device = 'cuda:0'")"
equal 'sizes: the oom' "$((1 << 55))" "$(value 'SELECT size_bytes FROM oom')"
sql "SELECT value FROM meta WHERE key = 'import_note'" >note
contains 'sizes: in the database' note '5 sizes that make no sense'
import sums
contains 'sums' err '2 sizes that make no sense'
equal 'sums: what is left' "$(((1 << 63) - 1 - 32767))" \
    "$(value "SELECT end_active_bytes FROM v_total WHERE kind = 'all' AND device = 'cuda:0'")"
import empty
contains 'empty' err 'memprof: the snapshot is empty: it has neither a history nor segments'
import rest
contains 'rest' err "1,234,567 bytes after the snapshot's end, not read"
import instant
lacks 'a sound one' err 'make no sense'
lacks 'a sound one' err 'after the snapshot'
lacks 'a sound one' err 'is empty'
