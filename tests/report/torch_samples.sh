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
    "$MEMPROF" report out.db >report.txt
    contains "$file: the report" report.txt 'Peak of cuda:0'
done
