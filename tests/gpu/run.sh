#!/bin/sh
# tests/gpu/run.sh: what only a GPU can show. Unattended; prints a short table and writes it to $BUILD/gpu-results.txt.
# Environment: BUILD, NVCC, CUPTI_INCLUDE, CUPTI_LIB; GPU_KINDS (shared static): how the samples are linked with the
# runtime library; GPU_TIMEOUT: seconds that one program may take (300); GPU_YIELD_BYTES: what a process holds that
# gives its GPU back (256 MiB). Uses memprof itself to read databases: no other tool has to be installed.
# Exit status: 0 when nothing failed, or when there is no GPU (one line says so); 2 when it was not built.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 2
BUILD=$(realpath "${BUILD:-build}")
MEMPROF=$BUILD/memprof
SIM=$BUILD/cuda
GPU=$BUILD/gpu
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
kinds=${GPU_KINDS:-shared static}
results=$BUILD/gpu-results.txt
unset MEMPROF_SESSION
# memprof's own libraries, where this machine has none (make gpu-libs)
if ldd "$MEMPROF" | grep -q 'not found' && [ -d "$GPU/lib" ]; then
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$GPU/lib
    export LD_LIBRARY_PATH
fi
work=$BUILD/gpu-work
rm -rf "$work" && mkdir -p "$work" "$GPU"

for program in "$MEMPROF" "$GPU/probe" "$GPU/procaddr"; do
    [ -x "$program" ] || {
        echo "check-gpu: $program is not built: run 'make check-gpu', or 'make gpu-libs' for another machine" >&2
        exit 2
    }
done
device=$("$GPU/probe") || { echo "check-gpu: skipped: $device"; exit 0; }
passed=0 failed=0 skipped=0
: >"$results"
row() { # outcome name detail
    printf '%-4s  %-34s  %s\n' "$1" "$2" "$3" | tee -a "$results"
    case $1 in ok) passed=$((passed + 1)) ;; FAIL) failed=$((failed + 1)) ;; skip) skipped=$((skipped + 1)) ;; esac
}
note() { printf '%s\n' "$*" | tee -a "$results"; }
# rows of a query, columns separated by blanks
query() { "$MEMPROF" sql "$work/out.db" --csv "$1" | tr -d '\r' | sed 1d | tr ',' ' '; }
column() { query "SELECT $3 FROM v_total WHERE device = '$1' AND kind = '$2'"; }
# no run hangs the whole check
limited() { timeout -k 10 "${GPU_TIMEOUT:-300}" "$@"; }
record() { rm -f "$work/out.db"; limited "$MEMPROF" run -q -o "$work/out.db" -- "$@" >"$work/out" 2>"$work/err"; }
# the first difference between a sample's own ledger and the recording; nothing when there is none
difference() {
    grep '^ledger ' "$work/out" | while read -r _ device kind allocs bytes frees freed peak; do
        case $kind in
        segment) have=$(column "$device" all peak_reserved_bytes) want=$peak ;;
        all) [ "$device" != host ] || continue ;;
        esac
        [ "$kind" = segment ] ||
            have=$(column "$device" "$kind" 'alloc_count, alloc_bytes, free_count, free_bytes, peak_active_bytes') \
            want="$allocs $bytes $frees $freed $peak"
        [ "$have" = "$want" ] || { echo "$device $kind: the program says $want, memprof $have"; break; }
    done
}

note "memprof on $device, $(uname -sr), $(date -u +%Y-%m-%dT%H:%M:%SZ)"

for kind in $kinds; do
    for sample in net pools vmm oom fragment; do
        program=$SIM/$kind/$sample
        [ -x "$program" ] || { [ "$sample" = vmm ] || row skip "$sample, $kind" "not built: $NVCC"; continue; }
        record "$program" || { row FAIL "$sample, $kind" "status $?: $(head -1 "$work/err")"; continue; }
        d=$(difference)
        n=$(grep -c '^ledger ' "$work/out")
        if [ "$n" = 0 ]; then row FAIL "$sample, $kind" "no ledger"
        elif [ -n "$d" ]; then row FAIL "$sample, $kind" "$d"
        else row ok "$sample, $kind" \
            "equals the program's ledger: $(query "SELECT sum(alloc_count) FROM v_total
            WHERE device LIKE 'cuda:%' AND kind <> 'all'") allocations"; fi
    done
    if [ -x "$SIM/$kind/oom" ]; then
        record "$SIM/$kind/oom" || true # its status has a row above
        n=$(query 'SELECT count(*) FROM oom WHERE device_free_bytes < size_bytes AND device_total_bytes > 0')
        if [ "$n" = 2 ]; then row ok "out of memory, $kind" "2 events with the device's figures"
        else row FAIL "out of memory, $kind" "${n:-none} of 2 events with the device's figures"; fi
    fi
    program=$GPU/deltas-$kind
    if [ ! -x "$program" ]; then
        row skip "cudaMemGetInfo deltas, $kind" "not built: $NVCC"
    elif record "$program"; then
        want=$(awk '/^delta/ { print $2 }' "$work/out" | sort -n | xargs)
        fell=$(awk '/^delta/ { print $3 }' "$work/out" | sort -n | xargs)
        have=$(query "SELECT size_bytes FROM v_event WHERE device = 'cuda:0' AND op = 'alloc' AND kind = 'device'
            ORDER BY 1" | xargs)
        if [ "$have" = "$want" ] && [ "$fell" = "$want" ]; then row ok "cudaMemGetInfo deltas, $kind" "$fell"
        else row FAIL "cudaMemGetInfo deltas, $kind" "asked $want, free memory fell by $fell, recorded $have"; fi
        want=$(awk '/^pool/ { print $2 }' "$work/out")
        have=$(column cuda:0 pool peak_reserved_bytes)
        if [ "$have" = "$want" ]; then row ok "a pool's reserved bytes, $kind" "$have"
        else row FAIL "a pool's reserved bytes, $kind" "the driver says $want at most, memprof $have"; fi
    else
        row FAIL "cudaMemGetInfo deltas, $kind" "$program did not run: $(head -1 "$work/err" 2>/dev/null)"
    fi
done

for how in plain profiled; do
    if [ $how = plain ]; then limited "$GPU/procaddr" >"$work/out" 2>"$work/err"; else record "$GPU/procaddr"; fi
    said=$(tail -1 "$work/out")
    case $said in
    rows*" differ 0") row ok "cuGetProcAddress as dlsym, $how" "$said" ;;
    *) row FAIL "cuGetProcAddress as dlsym, $how" "${said:-nothing said}; $(grep -m1 differs "$work/out")" ;;
    esac
done

# a process gives its GPU back and gets it again: what it holds, and what NVML says meanwhile
yield_bytes=${GPU_YIELD_BYTES:-268435456}
order() { # WORD NUMBER: and waits for the answer
    answers=$(grep -c '^done' "$work/out")
    echo "$1 $2" >&5
    waited=0
    while [ "$(grep -c '^done' "$work/out")" = "$answers" ] && [ $waited -lt "${GPU_TIMEOUT:-300}" ]; do
        sleep 0.2 && waited=$((waited + 1))
    done
}
yield_row() {
    rm -f "$work/orders" "$work/out.db" "$work/out" && mkfifo "$work/orders"
    limited "$MEMPROF" run -q -o "$work/out.db" -- "$GPU/yield" <"$work/orders" >"$work/out" 2>"$work/err" &
    exec 5>"$work/orders"
    order take $yield_bytes
    order sum 0
    pid=$(sed -n 's/^pid //p' "$work/out")
    before=$("$GPU/used")
    if limited "$MEMPROF" yield "$pid" >"$work/yield" 2>&1; then
        during=$("$GPU/used")
        limited "$MEMPROF" restore "$pid" >"$work/restore" 2>&1 || kill "$pid"
        after=$("$GPU/used")
        order sum 0
        echo 'quit 0' >&5
    else
        during= after=
        kill "$pid"
    fi
    exec 5>&-
    wait $!
    sums=$(grep -c '^sum' "$work/out") kinds_of_sums=$(grep '^sum' "$work/out" | sort -u | wc -l)
}
if [ ! -x "$GPU/yield" ] || ! "$GPU/used" >/dev/null; then
    row skip "yield and restore" "not built, or no NVML"
else
    yield_row
    if grep -q 'has no process checkpoints' "$work/yield"; then
        row skip "yield and restore" "$(head -1 "$work/yield")"
    elif [ -z "$during" ]; then
        row FAIL "yield and restore" "$(head -1 "$work/yield")"
    elif [ "$sums $kinds_of_sums" = "2 1" ] && [ $((before - during)) -ge $yield_bytes ] &&
        [ $((after - during)) -ge $yield_bytes ]; then
        row ok "yield and restore" "used $before, $during while given back, $after; $(head -1 "$work/yield")"
    else
        row FAIL "yield and restore" "used $before, then $during, then $after; $sums checksums, $kinds_of_sums kinds"
    fi
fi

# what a pair of calls costs more, of 5 runs each in turn the median
for kind in $kinds; do
    program=$GPU/cost-$kind
    [ -x "$program" ] || continue
    rm -f "$work/cost".*
    for _ in 1 2 3 4 5; do
        limited "$program" >>"$work/cost.plain" 2>/dev/null
        limited "$MEMPROF" run -q -o "$work/cost.db" -- "$program" >>"$work/cost.profiled" 2>/dev/null
        rm -f "$work/cost.db"
    done
    for pair in cudaMalloc+cudaFree cudaMallocAsync+cudaFreeAsync; do
        median() { grep -F "$pair " "$1" | awk '{ print $2 }' | sort -n | sed -n 3p; }
        plain=$(median "$work/cost.plain") profiled=$(median "$work/cost.profiled")
        if [ -n "$plain" ] && [ -n "$profiled" ]; then
            row ok "$pair, $kind" "$plain ns, under memprof $profiled ns: $((profiled - plain)) ns more"
        else row FAIL "$pair, $kind" "did not run"; fi
    done
done

if [ -x "$GPU/cupti" ]; then
    if limited "$GPU/cupti" >"$work/plain" 2>&1; then
        if record "$GPU/cupti" && cmp -s "$work/plain" "$work/out"; then row ok "a CUPTI user" "$(cat "$work/out")"
        else row FAIL "a CUPTI user" "alone: $(cat "$work/plain"); under memprof: $(cat "$work/out")"; fi
    else
        row skip "a CUPTI user" "does not run alone: $(head -1 "$work/plain")"
    fi
else
    row skip "a CUPTI user" "not built: no cupti.h"
fi

python=${PYTHON:-python3}
if "$python" -c 'import torch' 2>/dev/null; then
    if limited "$python" tests/gpu/torch_profiler.py >"$work/plain" 2>/dev/null; then
        if record "$python" tests/gpu/torch_profiler.py && cmp -s "$work/plain" "$work/out"; then
            row ok "torch.profiler" "$(tail -1 "$work/out")"
        else row FAIL "torch.profiler" "under memprof: $(tail -1 "$work/out") $(tail -1 "$work/err")"; fi
    else
        row skip "torch.profiler" "does not run alone: $(tail -1 "$work/plain")"
    fi
else
    row skip "torch.profiler" "no PyTorch for $python"
fi

# PyTorch's allocator counts what memprof records of it, with each of its backends, and the figures inside agree
torch_row() { # NAME CONFIGURATION KIND-OF-BLOCKS
    PYTORCH_CUDA_ALLOC_CONF=$2
    export PYTORCH_CUDA_ALLOC_CONF
    rm -f "$work/out.db"
    limited "$MEMPROF" run -q --python-module -o "$work/out.db" -- "$python" tests/gpu/torch_ledger.py \
        >"$work/out" 2>"$work/err" || { row FAIL "torch, $1" "status $?: $(tail -1 "$work/err")"; return; }
    want=$(sed -n 's/^blocks //p' "$work/out") # a backend that does not count says 0
    reserved=$(sed -n 's/^reserved //p' "$work/out")
    case $want in
    0*) have="0 0 0 0 $(column cuda:0 "$3" peak_active_bytes)" ;;
    *) have=$(column cuda:0 "$3" 'alloc_count, alloc_bytes, free_count, free_bytes, peak_active_bytes') ;;
    esac
    # segments are allocations of the driver as what libraries take beside them is, which stays to the end
    case $3 in
    sub) have_reserved=$(query "SELECT a.peak_reserved_bytes - d.peak_active_bytes FROM v_total a, v_total d
        WHERE a.device = 'cuda:0' AND a.kind = 'all' AND d.device = 'cuda:0' AND d.kind = 'device'") ;;
    *) have_reserved=$(column cuda:0 "$3" peak_reserved_bytes) ;;
    esac
    figures=$(sed -n 's/^figures //p' "$work/out")
    if [ "$have" != "$want" ]; then row FAIL "torch, $1" "blocks: PyTorch says $want, memprof $have"
    elif [ "$have_reserved" != "$reserved" ]; then
        row FAIL "torch, $1" "reserved: PyTorch says $reserved, memprof $have_reserved"
    elif [ "${figures#* }" != 1 ]; then row FAIL "torch, $1" "figures inside the program: $figures"
    else row ok "torch, $1" "blocks $have, reserved $reserved, figures $figures"; fi
}
if "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    torch_row "native" "backend:native" sub
    torch_row "expandable segments" "expandable_segments:True" sub
    torch_row "cudaMallocAsync" "backend:cudaMallocAsync" pool
else
    row skip "torch, its allocator" "no PyTorch with a GPU for $python"
fi

note "$passed passed, $failed failed, $skipped skipped; results in $results"
[ $failed = 0 ]
