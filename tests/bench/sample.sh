#!/bin/sh
# tests/bench/sample.sh: how often the true values lie within the errors that a sampled recording states. Environment:
# RUNS (1000), SAMPLE (4K), BUILD. Runs build/programs/thinned with as many seeds; its ledger is the truth. Of each
# figure (allocations, bytes, blocks and bytes at the end, by function) at least 93 of 100 runs must be within: where
# 95 of 100 are, 1,000 runs are so in 998 cases of 1,000. What is recorded whole must be exact in all of them.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(realpath "${BUILD:-$root/build}")
runs=${RUNS:-1000} sample=${SAMPLE:-4K}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$BUILD/programs/thinned" sample >truth
seed=0
while [ "$seed" -lt "$runs" ]; do
    seed=$((seed + 1))
    "$BUILD/memprof" run -q -o s.db --sample "$sample" --sample-seed $seed -- \
        "$BUILD/programs/thinned" sample >/dev/null
    "$BUILD/memprof" report s.db --by function --top 0 --csv |
        python3 "$root/tests/bench/sample_within.py" truth >>within
done
awk -v runs="$runs" '
    { n[$1 " " $2] += $3; if ($4 > 0) spread[$1 " " $2] = 1; sum[$1 " " $2] += $5; true_value[$1 " " $2] = $6 }
    END {
        for (k in n) {
            need = spread[k] ? runs * 0.93 : runs
            printf "%-22s within in %d of %d runs; mean of the estimates is %+.2f %% off\n", k, n[k], runs,
                100 * (sum[k] / runs / true_value[k] - 1)
            bad += n[k] < need
        }
        exit bad > 0
    }' within >result || failed=1
sort result
exit ${failed:-0}
