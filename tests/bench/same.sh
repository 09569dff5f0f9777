#!/bin/sh
# tests/bench/same.sh [PROGRAM]...: do recordings by the working tree say what those by a commit say? Environment: BASE
# (the commit, HEAD), PERCENT (of the inputs, 25), BUILD.
#
# Builds BASE below $BUILD/bench/gate and records each program twice under it and once under the tree, with a fixed
# layout of addresses and Python's hashes. Each build then reads its own recordings: totals, the accounts by line and by
# function, the own peaks of lines, the stacks with the statistics of their sites, and the events in their order. A part
# in which the two recordings of BASE differ (threads) says nothing, and that is printed. A program that hashes
# addresses (cc1) does something else where one build maps more in it than the other. Fails, exit 1, where a part of
# the tree's is another one than BASE's; what differs is kept beside the builds, PROGRAM.PART.diff.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(realpath "${BUILD:-$root/build}")
percent=${PERCENT:-25}
. "$root/tests/bench/base.inc"
work=$dir/same
mkdir -p "$work"
export PYTHONHASHSEED=0
# Programs copy their environment, and it moves their stacks: both builds have paths of one length.
build_of() { # NAME BUILD
    rm -rf "${work:?}/$1"
    mkdir -p "$work/$1"
    cp -rL "$2"/memprof "$2"/*.so "$work/$1/"
    [ ! -d "$2/python" ] || cp -rL "$2/python" "$work/$1/" # an older one keeps its Python inside
}
build_of base "$tree/build"
build_of tree "$BUILD"

part() { # name, memprof, recording: that part as sorted text, the events as a checksum
    counts='alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes'
    case $1 in
    totals) query="SELECT device, kind, $counts, realloc_count, peak_active_bytes, peak_active_count,
        end_active_bytes, end_count FROM v_total" ;;
    lines) query="SELECT device, kind, function, file, line, $counts, at_peak_bytes, end_bytes FROM v_line" ;;
    functions) query="SELECT device, kind, inclusive, function, $counts, at_peak_bytes FROM v_function" ;;
    own-peaks) query="SELECT device, kind, function, file, line, own_peak_bytes FROM v_line" ;;
    stacks) python3 "$root/tests/bench/same_sites.py" "$2" "$3"; return ;;
    events) "$2" sql --csv "$3" "SELECT op, size_bytes FROM v_event" | sha256sum; return ;;
    esac
    "$2" sql --csv "$3" "$query" | LC_ALL=C sort
}
PARTS='totals lines functions own-peaks stacks events'
recorded() { # side, memprof, command...
    side=$1 memprof=$2
    shift 2
    setarch -R "$memprof" run -q -o "$work/$side.db" -- "$@" >/dev/null 2>"$work/err" </dev/null || {
        echo "same: $side failed:" >&2
        tail -n 5 "$work/err" >&2
        exit 1
    }
    for p in $PARTS; do
        part "$p" "$memprof" "$work/$side.db" >"$work/$side.$p"
    done
    rm -f "$work/$side.db"*
}
one_program() { # name; 1 where a part differs
    name=$1 differs=0
    eval "$(command_line "$name")"
    recorded base1 "$work/base/memprof" "$@"
    recorded base2 "$work/base/memprof" "$@"
    recorded tree1 "$work/tree/memprof" "$@"
    for p in $PARTS; do
        rows=$(wc -l <"$work/base1.$p")
        [ "$p" = events ] && rows=
        if cmp -s "$work/base1.$p" "$work/tree1.$p"; then
            verdict='the same'
        elif ! cmp -s "$work/base1.$p" "$work/base2.$p"; then
            verdict='differs between two recordings by the base, too'
        else
            verdict=DIFFERENT differs=1
        fi
        printf '%-13s %-10s %8s  %s\n' "$name" "$p" "$rows" "$verdict"
        rm -f "$work/$name.$p.diff"
        [ "$verdict" != DIFFERENT ] || diff "$work/base1.$p" "$work/tree1.$p" >"$work/$name.$p.diff" ||
            head -n 6 "$work/$name.$p.diff"
    done
    return $differs
}

last=import-torch
has_torch || { last=; echo "same: without python3-torch 'import torch' is left out" >&2; }
echo "# against $(git -C "$root" log -1 --format='%h %s' "$base"); inputs at $percent %"
printf '%-13s %-10s %8s\n' program part rows
status=0
# shellcheck disable=SC2086 # a list of words
for program in ${*:-micro16 gawk sqlite3 xmllint perl python3 cc1 git $last}; do
    (one_program "$program") || status=1 # what one exports (PYTHONMALLOC) is not the next one's
done
[ $status = 0 ] || echo "same: recordings by the tree differ from the base's" >&2
exit $status
