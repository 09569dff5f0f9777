#!/bin/sh
# tests/bench/run.sh [PROGRAM]...: each program plain, under `memprof run` and under Debian's heaptrack, interleaved,
# RUNS times (5), everything on. Prints medians side by side, and writes the table to $BUILD/bench/results.txt and every
# single run to $BUILD/bench/runs.txt.
#
# added     wall seconds above the plain program's, from the command to the shell prompt
# ratio     heaptrack's added wall time over memprof's
# slow      memprof's wall time over the plain program's
# cpu       user and system seconds of all processes, above the plain program's
# rss       peak of the program itself, MiB
# B/event   bytes of the finished file per event (an allocation or a free)
# report    seconds to the first report: `memprof report`, `heaptrack_print`
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(realpath "${BUILD:-$root/build}")
runs=${RUNS:-5}
dir=$BUILD/bench
memprof=$BUILD/memprof
measure=$dir/measure
inputs=$dir/inputs
have_heaptrack=1
command -v heaptrack >/dev/null || {
    have_heaptrack=0
    echo "heaptrack is not installed (make deps-bench): measuring memprof alone" >&2
}
sh "$root/tests/bench/inputs.sh" "$inputs" "${PERCENT:-100}"

all="micro16 micro8 threads2 threads4 micro40 keep gawk sqlite3 xmllint perl python3 torch cc1 git"
command_line() { # sets "$@" by eval
    case $1 in
    micro16) echo "set -- '$dir/micro' 1 5000000 16 200" ;;
    micro8) echo "set -- '$dir/micro' 1 5000000 8 1" ;;
    threads2) echo "set -- '$dir/micro' 2 5000000 16 200" ;;
    threads4) echo "set -- '$dir/micro' 4 5000000 16 200" ;;
    micro40) echo "set -- '$dir/micro' 1 5000000 40 200" ;;
    keep) echo "set -- '$dir/keep' 2000000" ;;
    torch) echo "set -- /usr/bin/python3 '$root/samples/train.py' --steps 20" ;;
    *) sed '1d; s/^exec /set -- /' "$inputs/run-$1" ;;
    esac
}
median() {
    sort -n | awk '{ v[NR] = $1 } END { print NR ? (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2) : 0 }'
}
field() { # program, tool, name: the median of that field over the runs
    awk -v p="$1" -v t="$2" -v f="$3" \
        '$1 == p && $2 == t { for (i = 3; i <= NF; i++) if (index($i, f "=") == 1) print substr($i, length(f) + 2) }' \
        "$dir/runs.txt" | median
}
one() { # program, tool, command...: a timed run
    label="$1 $2"
    shift 2
    "$measure" "$@" >/dev/null 2>"$dir/err" </dev/null || {
        echo "bench: $label failed:" >&2
        tail -n 5 "$dir/err" >&2
        exit 1
    }
    echo "$label $(sed -n 's/^measure: //p' "$dir/err" | tail -n 1) $extra" >>"$dir/runs.txt"
}
peak_rss() { # KiB of the program itself in an untimed run: $1 is its file's name
    rm -f "$dir/hwm"
    name=$1
    shift
    HWM_OUT="$dir/hwm" LD_PRELOAD="$dir/libhwm.so" "$@" >/dev/null 2>&1 </dev/null || true
    awk -v name="$name" '$1 == name { print $2 }' "$dir/hwm" 2>/dev/null | sort -n | tail -n 1
}
clean() { rm -f "$dir"/m.db* "$dir"/h.*; }

: >"$dir/runs.txt"
{
    echo "# $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo |
        head -n 1), $(nproc) cores; $(uname -sr); $(. /etc/os-release && echo "$PRETTY_NAME"); medians of $runs runs"
    printf '%-9s %8s %7s | %7s %7s %6s %5s | %6s %6s | %6s %6s %6s | %5s %5s | %6s %6s\n' program events plain added \
        heaptr ratio slow cpu heaptr rss plain heaptr B/ev heapt report heaptr
} | tee "$dir/results.txt"
for program in ${*:-$all}; do
    (
        if [ "$program" = torch ] && ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
            echo "torch: skipped, Debian's python3-torch is not installed"
            exit 0
        fi
        eval "$(command_line "$program")"
        extra=
        "$@" >/dev/null 2>&1 </dev/null # once, for the page cache
        for run in $(seq "$runs"); do
            extra=
            one "$program" plain "$@"
            clean
            one "$program" memprof "$memprof" run -q -o "$dir/m.db" -- "$@"
            "$measure" "$memprof" report "$dir/m.db" >/dev/null 2>"$dir/err"
            sed -n 's/^measure: /'"$program"' report /p' "$dir/err" >>"$dir/runs.txt"
            [ "$have_heaptrack" = 1 ] || continue
            one "$program" heaptrack heaptrack -o "$dir/h" "$@"
            if [ "$run" = 1 ]; then
                "$measure" heaptrack_print "$dir"/h.* >/dev/null 2>"$dir/err"
                sed -n 's/^measure: /'"$program"' print /p' "$dir/err" >>"$dir/runs.txt"
            fi
            echo "$program sizes memprof_bytes=$(wc -c <"$dir/m.db") heaptrack_bytes=$(cat "$dir"/h.* |
                wc -c)" >>"$dir/runs.txt"
        done
        clean
        "$memprof" run -q -o "$dir/m.db" -- "$@" >/dev/null 2>&1 </dev/null
        events=$("$memprof" sql --csv "$dir/m.db" \
            "SELECT alloc_count + free_count FROM v_total WHERE device = 'host' AND kind = 'all'" | tail -n 1 |
            tr -d '\r')
        [ "$have_heaptrack" = 1 ] ||
            echo "$program sizes memprof_bytes=$(wc -c <"$dir/m.db") heaptrack_bytes=0" >>"$dir/runs.txt"
        clean
        name=$(basename "$(realpath "$(command -v "$1")")")
        rss_plain=$(peak_rss "$name" "$@")
        rss_memprof=$(peak_rss "$name" "$memprof" run -q -o "$dir/m.db" -- "$@")
        rss_heaptrack=0
        [ "$have_heaptrack" = 0 ] || rss_heaptrack=$(peak_rss "$name" heaptrack -o "$dir/h" "$@")
        clean
        awk -v name="$program" -v events="$events" -v plain="$(field "$program" plain wall)" \
            -v m="$(field "$program" memprof wall)" -v h="$(field "$program" heaptrack wall)" \
            -v cp="$(awk -v p="$program" '$1 == p && $2 == "plain"' "$dir/runs.txt" |
            sed 's/.*user=\([0-9.]*\) sys=\([0-9.]*\).*/\1 \2/' | awk '{ print $1 + $2 }' | median)" \
            -v cm="$(awk -v p="$program" '$1 == p && $2 == "memprof"' "$dir/runs.txt" |
            sed 's/.*user=\([0-9.]*\) sys=\([0-9.]*\).*/\1 \2/' | awk '{ print $1 + $2 }' | median)" \
            -v ch="$(awk -v p="$program" '$1 == p && $2 == "heaptrack"' "$dir/runs.txt" |
            sed 's/.*user=\([0-9.]*\) sys=\([0-9.]*\).*/\1 \2/' | awk '{ print $1 + $2 }' | median)" \
            -v rp="$rss_plain" -v rm="$rss_memprof" -v rh="$rss_heaptrack" \
            -v bm="$(field "$program" sizes memprof_bytes)" -v bh="$(field "$program" sizes heaptrack_bytes)" \
            -v tm="$(field "$program" report wall)" -v th="$(field "$program" print wall)" 'BEGIN {
            am = m - plain; ah = h ? h - plain : 0
            printf "%-9s %8d %7.3f | %7.3f %7.3f %6.2f %5.2f | ",
                name, events, plain, am, ah, (am > 0 ? ah / am : 0), m / plain
            printf "%6.2f %6.2f | %6.1f %6.1f %6.1f | ", cm - cp, (h ? ch - cp : 0), rm / 1024, rp / 1024, rh / 1024
            printf "%5.2f %5.2f | %6.3f %6.2f\n", bm / events, bh / events, tm, th }'
    ) | tee -a "$dir/results.txt"
done
