# Snapshots of real runs: the database says what a plain unpickling says, and so does what is exported from it.
need python3
. "$ROOT/tests/report/torch.inc"
samples=${TORCH_SNAPSHOTS:-}
[ -d "$samples" ] || skip "TORCH_SNAPSHOTS names no directory with snapshots of real runs"
for file in "$samples"/*.pickle; do
    same "$(basename "$file")" "$file"
    "$MEMPROF" export --format torch-snapshot out.db -o back.pickle 2>/dev/null
    python3 "$ROOT/tests/torch/check.py" back.pickle || fail "$file: exported, it is no snapshot"
    python3 "$ROOT/tests/torch/expect.py" "$file" | sort >expected
    python3 "$ROOT/tests/torch/expect.py" back.pickle | sort >got
    cmp -s expected got || { diff expected got; fail "$file: not the same after import and export"; }
    python3 - "$file" back.pickle <<'EOF' || fail "$file: annotations, file names or what entries say differ"
import pickle, sys
class Plain(pickle.Unpickler):
    def find_class(self, *name): raise ValueError(name)
a, b = (Plain(open(f, 'rb')).load() for f in sys.argv[1:])
def notes(s): return sorted(map(str, ((x['name'], x['stage'], x['device'], x['time_us'])
                                      for x in s.get('external_annotations') or [])))
assert notes(a) == notes(b)
files = 0
for x, y in zip(a['device_traces'], b['device_traces']):
    assert len(x) == len(y), (len(x), len(y))
    for e, f in zip(x, y):
        assert [e.get(k) for k in ('action', 'compile_context', 'user_metadata')] == \
            [f.get(k) for k in ('action', 'compile_context', 'user_metadata')], (e, f)
        if e['action'] in ('alloc', 'segment_alloc'):
            assert [r['filename'] for r in e['frames']] == [r['filename'] for r in f['frames']]
            files += sum(not r['filename'] for r in e['frames'])
print('  frames without a file:', files)
EOF
    "$MEMPROF" report out.db >report.txt
    contains "$file: the report" report.txt 'Peak of cuda:0'
done
