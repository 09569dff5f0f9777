#!/bin/sh
# tests/bench/gate.sh [PROGRAM]...: is the working tree slower than a commit? Environment: BASE (the commit, HEAD),
# ROUNDS (9), PERCENT (of the inputs, 25), LIMIT (per cent that it may be slower, 5), BUILD.
#
# Builds BASE below $BUILD/bench/gate, runs each program by turns under both and compares, round by round: the
# program's own processor time, that of the collector and all that comes after it, the sum, and the wall time to the
# prompt. Prints for each the base's median, the median of the rounds' ratios and the interval in which the true median
# lies with 95 % confidence or more (order statistics of the sign test: nothing is assumed of how times are
# distributed). Fails, exit 1, where that whole interval is beyond the limit; what differs by less than the clock's 10
# ms does not count.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(realpath "${BUILD:-$root/build}")
rounds=${ROUNDS:-9} percent=${PERCENT:-25} limit=${LIMIT:-5}
[ "$rounds" -ge 6 ] || { echo "gate: ROUNDS=$rounds says nothing with 95 % confidence; at least 6" >&2; exit 2; }
. "$root/tests/bench/base.inc"
measure=$bench/measure
seconds() { # of $dir/err: the nth line of measure as "wall processor"
    sed -n 's/^measure: wall=\([0-9.]*\) user=\([0-9.]*\) sys=\([0-9.]*\) .*/\1 \2 \3/p' "$dir/err" |
        awk -v n="$1" 'NR == n { print $1, $2 + $3 }'
}
recorded() { # program, side, memprof, command...: a line of $dir/runs
    label="$1 $2" memprof=$3
    shift 3
    "$measure" "$memprof" run -q -o "$dir/gate.db" -- "$measure" "$@" >/dev/null 2>"$dir/err" </dev/null || {
        echo "gate: $label failed:" >&2
        tail -n 5 "$dir/err" >&2
        exit 1
    }
    rm -f "$dir"/gate*.db*
    echo "$label $(seconds 1) $(seconds 2)" >>"$dir/runs"
}
one_program() { # name
    name=$1 round=0
    eval "$(command_line "$name")"
    while [ $round -lt "$rounds" ]; do
        if [ $((round % 2)) = 0 ]; then
            recorded "$name" base "$tree/build/memprof" "$@"
            recorded "$name" new "$BUILD/memprof" "$@"
        else
            recorded "$name" new "$BUILD/memprof" "$@"
            recorded "$name" base "$tree/build/memprof" "$@"
        fi
        round=$((round + 1))
    done
}
# compare PROGRAM: a line for each time. A run's line: program, side, and of the program wall and processor seconds,
# then of all together.
compare() {
    awk -v program="$1" -v limit="$limit" '
        function sorted(a, n, i, j, t) {
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
        }
        function middle(a, n) { return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
        # the largest rank whose tail of the binomial distribution with p = 1/2 is at most 2.5 %
        function rank(n, tail, term, k) {
            term = 0.5 ^ n
            for (k = 0; tail + term <= 0.025; k++) { tail += term; term = term * (n - k) / (k + 1) }
            return k
        }
        function row(what, s, n, i, k, slow) {
            for (i = 1; i <= n; i++) {
                b[i] = s["base", i]
                d[i] = s["new", i] - b[i]
                r[i] = s["new", i] / (b[i] > 0.001 ? b[i] : 0.001)
            }
            sorted(r, n); sorted(b, n); sorted(d, n)
            k = rank(n)
            slow = r[k] > 1 + limit / 100 && middle(d, n) > 0.01
            printf "%-13s %-10s %8.3f s %7.3f  %5.3f..%5.3f%s\n", program, what, middle(b, n), middle(r, n), r[k],
                r[n + 1 - k], slow ? "  SLOWER" : ""
            if (slow) bad = 1
        }
        $1 == program {
            i = ++runs[$2]
            program_s[$2, i] = $4; rest_s[$2, i] = $6 - $4
            all_s[$2, i] = $6; wall_s[$2, i] = $5
        }
        END {
            n = runs["base"]
            row("program", program_s, n); row("collector", rest_s, n)
            row("both", all_s, n); row("wall", wall_s, n)
            exit bad
        }' "$dir/runs"
}

last='import-torch train'
has_torch || { last=git; echo "gate: without python3-torch git takes the place of 'import torch' and train" >&2; }
programs=${*:-micro16 gawk sqlite3 xmllint perl python3 cc1 $last}
: >"$dir/runs"
echo "# against $(git -C "$root" log -1 --format='%h %s' "$base")"
echo "# $rounds rounds, inputs at $percent %, load $(cut -d' ' -f1 /proc/loadavg)"
printf '%-13s %-10s %10s %7s  %s\n' program time base ratio '95 % confidence'
status=0
for program in $programs; do
    (one_program "$program") # what one exports (PYTHONMALLOC) is not the next one's
    compare "$program" || status=1
done
[ $status = 0 ] || echo "gate: slower than the base by more than $limit %" >&2
exit $status
