# What is exported for PyTorch is a snapshot that its readers accept (check.py goes through it as they do), and says
# what the recording says: of imported snapshots, the same as the original; of programs, the same totals when it is
# imported again.
. "$ROOT/tests/report/setup.inc"
need python3
export_it() { "$MEMPROF" export --format torch-snapshot "$@" 2>export.err || { cat export.err; fail "export $*"; }; }
check() { python3 "$ROOT/tests/torch/check.py" "$1" >check.out 2>&1 || { cat check.out; fail "$1 is no snapshot"; }; }
# back WHAT SNAPSHOT [LINES TO LEAVE OUT]
back() {
    "$MEMPROF" import -q "$2" -o out.db
    export_it out.db -o back.pickle
    check back.pickle
    python3 "$ROOT/tests/torch/expect.py" "$2" | grep -v '^host' >expected
    python3 "$ROOT/tests/torch/expect.py" back.pickle >got
    cmp -s expected got || { diff expected got; fail "$1: not the same after import and export"; }
    echo "  $1"
}
for shape in plain devices oom expandable pending annotations pools ring host all empty; do
    python3 "$ROOT/tests/torch/make_snapshot.py" $shape s.pickle --events 1000
    back $shape s.pickle
done
# frames, streams, pools, annotations, and the host where it is asked for
cat >same.py <<'EOF'
import pickle, sys
a, b = (pickle.load(open(f, 'rb')) for f in sys.argv[1:])
def frames(e): return [(f['name'], f['filename'], f['line']) for f in e['frames']]
for x, y in zip(a['device_traces'], b['device_traces']):
    assert len(x) == len(y)
    for e, f in zip(x, y):
        for key in ('action', 'size', 'stream', 'time_us'):
            assert e[key] == f[key], (e, f)
        for key in ('compile_context', 'user_metadata'):
            assert e.get(key) == f.get(key), (e, f)
        assert e.get('addr') == f.get('addr') and e.get('device_free') == f.get('device_free')
        if e['action'] in ('alloc', 'segment_alloc', 'segment_map', 'oom'):
            assert frames(e) == frames(f), (e, f)
def key(s):
    names = 'device', 'address', 'total_size', 'stream', 'segment_type', 'segment_pool_id', 'is_expandable'
    return {k: v for k, v in s.items() if k in names}
assert sorted(map(str, map(key, a['segments']))) == sorted(map(str, map(key, b['segments'])))
def when(s):
    return sorted((x['name'], x['stage'], x['device'], x['time_us']) for x in s.get('external_annotations') or [])
assert when(a) == when(b)
for name, value in a['allocator_settings'].items():
    value = str(value).replace("'", '') if isinstance(value, dict) else value
    assert b['allocator_settings'][name] == value and type(b['allocator_settings'][name]) is type(value), name
# going back over a free, viewers show its frames as the block's: who allocated it, and that it says that
where = {}
for e in b['device_traces'][0]:
    if e['action'] == 'alloc':
        where[e['addr']] = frames(e)
    elif e['action'] == 'free_completed' and where.get(e['addr']):
        assert frames(e)[0][0].startswith('(where blocks are freed is not recorded')
        assert frames(e)[1:] == where[e['addr']], e
EOF
python3 "$ROOT/tests/torch/make_snapshot.py" all s.pickle
"$MEMPROF" import -q s.pickle -o out.db
export_it out.db -o back.pickle
python3 same.py s.pickle back.pickle || fail 'entries, segments or annotations differ'
# the same of a snapshot whose entries say different things, and frames that have no file
cat >texts.py <<'EOF'
import pickle
frames = [[{'name': 'aten::empty', 'filename': '', 'line': 0}, {'name': 'f', 'filename': 'a.py', 'line': 3}],
          [{'name': 'at::empty(long)', 'filename': '??', 'line': 0}], []]
said = [{}, {'compile_context': 'N/A', 'user_metadata': ''}, {'compile_context': '[0/0]', 'user_metadata': 'step 1'},
        {'compile_context': '[0/0]', 'user_metadata': 'step 1'}, {'user_metadata': 'step 2'}, {'compile_context': ''}]
trace = [{'action': 'segment_alloc', 'addr': 1 << 30, 'size': 2 << 20, 'stream': 0, 'time_us': 1000, 'frames': []}]
for i, words in enumerate(said):
    trace.append({'action': 'alloc', 'addr': (1 << 30) + 512 * i, 'size': 512, 'stream': 0, 'time_us': 1010 + 10 * i,
                  'frames': frames[i % 3], **words})
    if i == 3:
        trace.append({'action': 'user_defined', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': 1045, 'frames': [],
                      'compile_context': 'N/A', 'user_metadata': 'between'})
trace.append({'action': 'snapshot', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': 1200, 'frames': []})
blocks = [{'address': (1 << 30) + 512 * i, 'size': 512, 'requested_size': 512, 'state': 'active_allocated',
           'frames': frames[i % 3]} for i in range(6)]
blocks.append({'address': (1 << 30) + 3072, 'size': (2 << 20) - 3072, 'requested_size': 0, 'state': 'inactive',
               'frames': []})
segment = {'device': 0, 'address': 1 << 30, 'total_size': 2 << 20, 'stream': 0, 'segment_type': 'small',
           'segment_pool_id': (0, 0), 'is_expandable': False, 'allocated_size': 3072, 'active_size': 3072,
           'requested_size': 3072, 'frames': [], 'blocks': blocks}
notes = [{'stage': 'END', 'name': 'early', 'device': 0, 'time_us': 1001},
         {'stage': 'START', 'name': 'late', 'device': 0, 'time_us': 1050}]
pickle.dump({'segments': [segment], 'device_traces': [trace], 'external_annotations': notes,
             'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF': ''}}, open('texts.pickle', 'wb'))
EOF
python3 texts.py
"$MEMPROF" import -q texts.pickle -o texts.db
export_it texts.db -o back.pickle
check back.pickle
python3 same.py texts.pickle back.pickle || fail 'texts of entries, marks, or empty file names differ'
export_it out.db --device host -o back.pickle
check back.pickle
python3 "$ROOT/tests/torch/expect.py" s.pickle | sed -n 's/^host|//p' | grep -v 'peak ns' >expected
python3 "$ROOT/tests/torch/expect.py" back.pickle | sed -n 's/^cuda:0|//p' | grep -v 'peak ns' >got
cmp -s expected got || { diff expected got; fail 'host memory'; }

# programs
totals() {
    sqlite3 -readonly "$1" \
        "SELECT alloc_count, alloc_bytes, free_count, free_bytes, peak_active_bytes, end_active_bytes, end_count
        FROM v_total WHERE kind = 'all' AND device = '$2'"
}
for sample in net leak cache; do
    "$MEMPROF" run -q -o run.db -- "$SAMPLES/$sample" >/dev/null
    export_it run.db
    check run.pickle
    "$MEMPROF" import -q run.pickle -o out.db
    equal "$sample: totals" "$(totals run.db host)" "$(totals out.db cuda:0)"
    lines="SELECT sum(alloc_bytes) FROM v_line WHERE file LIKE '%/$sample.c' GROUP BY line ORDER BY line"
    equal "$sample: bytes by line" "$(sqlite3 -readonly run.db "$lines")" "$(sqlite3 -readonly out.db "$lines")"
done
# a device with blocks that are segments themselves, and with a pool
export_it net.db --device cuda:0 -o gpu.pickle
check gpu.pickle
# segments of an allocator come and go as they did, whole or as parts, for the viewer's timeline of segments
if [ -e "$BUILD/cuda/13000/libcuda.so.1" ]; then
    for how in plain expandable; do
        LD_LIBRARY_PATH=$BUILD/cuda/13000:$BUILD/cuda SIM_CUDA_DEVICES=2 "$MEMPROF" run -q -o gpu.db -- \
            "$BUILD/torch/3/caching" $how >out
        export_it gpu.db
        check gpu.pickle
        contains "$how: who is left out" export.err 'host is not in it, with '
        python3 - gpu.pickle $how out <<'EOF' || fail "$how: segments"
import pickle, sys
s = pickle.load(open(sys.argv[1], 'rb'))
whole = sys.argv[2] == 'plain'
counted = {l.split('|')[0]: list(map(int, l.split('|')[1:])) for l in open(sys.argv[3]) if l.startswith('cuda')}
for number, trace in enumerate(s['device_traces']):
    actions = {e['action'] for e in trace}
    assert ('segment_alloc' in actions, 'segment_map' in actions) == (whole, not whole), actions
    blocks, peak, end, reserved = counted['cuda:%d' % number]
    assert sum(e['action'] == 'alloc' for e in trace) == blocks
    assert sum(e['size'] for e in trace if e['action'] in ('segment_alloc', 'segment_map')) >= reserved
    segments = [x for x in s['segments'] if x['device'] == number]
    assert all(x['is_expandable'] != whole for x in segments) and sum(x['active_size'] for x in segments) == end
EOF
    done
    LD_LIBRARY_PATH=$BUILD/cuda/13000:$BUILD/cuda SIM_CUDA_DEVICES=2 "$MEMPROF" run -q -o gpu.db -- \
        "$BUILD/cuda/plain/net" 2 10 >out
    export_it gpu.db
    check gpu.pickle
    equal 'net.cu: the segment of each device goes' '2' \
        "$(python3 -c "import pickle
print(sum(e['action'] == 'segment_free' for t in pickle.load(open('gpu.pickle', 'rb'))['device_traces'] for e in t))")"
    echo '  segments of GPUs'
else
    echo '  the simulated driver is not built: segments of GPUs were not tested'
fi
# what the options leave out: all before the last events, whose state remains; small blocks
"$MEMPROF" run -q -o run.db -- "$SAMPLES/net" >/dev/null
export_it run.db
export_it run.db --max-events 100 -o last.pickle
check last.pickle
contains 'the last events' export.err ' events before the last ones are not in it (--max-events)'
export_it run.db --min-size 4096 -o large.pickle
check large.pickle
contains 'large blocks' export.err ' allocations of small blocks are not in it (--min-size)'
python3 - <<'EOF' || fail 'the options'
import pickle
everything, last, large = (pickle.load(open(f, 'rb'))['device_traces'][0]
                           for f in ('run.pickle', 'last.pickle', 'large.pickle'))
def plain(trace): return [(e['action'], e['addr'], e['size'], e['time_us']) for e in trace]
assert 100 <= len(last) <= 200 and plain(everything)[-len(last):] == plain(last)
assert plain(large) == [e for e in plain(everything) if e[2] >= 4096]
EOF
# only what is kept can be in it
"$MEMPROF" run -q --max-events 5000 -o part.db -- "$SAMPLES/threads" >/dev/null
export_it part.db
check part.pickle
contains 'a part of the events' export.err 'kept its last events only'
"$MEMPROF" run -q --aggregate -o none.db -- "$SAMPLES/leak" >/dev/null
status=0
"$MEMPROF" export --format torch-snapshot none.db 2>err || status=$?
equal 'without events: status' 2 $status
contains 'without events' err 'a snapshot is made of events, and this has none'
[ ! -e none.pickle ] || fail 'a file in spite of the error'
# to standard output, and in place of an older file
export_it run.db -o - >stdout.pickle
cmp stdout.pickle run.pickle || fail 'standard output'
export_it run.db
cmp stdout.pickle run.pickle || fail 'a second time'
[ "$(find . -name 'run.pickle*' | wc -l)" = 1 ] || fail 'temporary files are left'

"$MEMPROF" export --format help >formats || fail '--format help'
contains "the list of formats" formats "torch-snapshot   a memory snapshot for PyTorch's viewer"

# mistakes
for arguments in 'run.db' '--format torch-snapshot --max-events 0 run.db' \
    '--format torch-snapshot --min-size x run.db' '--format torch run.db' '--format pprov run.db' \
    '--format torch-snapshot --device cuda:7 run.db' '--format torch-snapshot a b'; do
    status=0
    # shellcheck disable=SC2086
    "$MEMPROF" export $arguments >out 2>err || status=$?
    equal "export $arguments: status" 2 $status
    equal "export $arguments: lines" 1 "$(wc -l <err)"
done
status=0
"$MEMPROF" export --format torch-snapshot run.db -o nowhere/x.pickle 2>err || status=$?
equal 'a place that is not there: status' 1 $status
contains 'a place that is not there' err 'nowhere/x.pickle: No such file or directory; choose another place with -o'

# PyTorch's own code, where it is installed
viz=/usr/lib/python3/dist-packages/torch/cuda/_memory_viz.py
[ -f $viz ] || { echo "  no $viz: that was not tested"; exit 0; }
export_it run.db
python3 - "$viz" run.pickle <<'EOF' || fail '_memory_viz.py'
import importlib.util, pickle, sys
spec = importlib.util.spec_from_file_location('viz', sys.argv[1])
viz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viz)
s = pickle.load(open(sys.argv[2], 'rb'))
stats = viz.stats(s['segments'])  # asserts that blocks fill their segments
assert stats['segments'] == len(s['segments'])
lines = viz.memory(s['segments'], format_flamegraph=lambda text: text).splitlines()
assert lines and all(line.rsplit(' ', 1)[1].isdigit() for line in lines)
EOF
echo '  _memory_viz.py'
