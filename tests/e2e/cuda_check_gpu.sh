# The script of `make check-gpu` itself: without a driver it says so and succeeds, unbuilt it fails, and on the
# simulated driver its rows of samples, failures and look-ups pass.
. "$ROOT/tests/cuda/lib.sh"
[ -x "$BUILD/gpu/probe" ] || skip "the programs of tests/gpu are not built"
mkdir -p build/gpu build/cuda
cp "$BUILD/gpu/probe" "$BUILD/gpu/procaddr" "$BUILD/gpu/yield" "$BUILD/gpu/used" build/gpu
export SIM_CUDA_STATE="$PWD/state" # for the stand-in of NVML
for file in memprof libmemprof.so; do ln -s "$BUILD/$file" build; done
ln -s "$SIM/plain" "$SIM/shared" build/cuda
check_gpu() { BUILD=$PWD/build sh "$ROOT/tests/gpu/run.sh" >out 2>err; }

(unset LD_LIBRARY_PATH && check_gpu) || fail "without a driver"
"$BUILD/gpu/probe" >/dev/null 2>&1 || contains "without a driver" out 'check-gpu: skipped: no CUDA driver'
SIM_CUDA_DEVICES=0 check_gpu || fail "without a device"
contains "without a device" out 'check-gpu: skipped: the CUDA driver'

# deltas and cost need nvcc, static programs the real driver
export GPU_KINDS=plain GPU_YIELD_BYTES=16777216
check_gpu || { cat out err; fail "on the simulated driver"; }
equal "rows that passed" 9 "$(grep -c '^ok' out)"
contains "its own table" build/gpu-results.txt 'net, plain'
# a sample that hangs or dies is a row that failed
mkdir build/cuda/broken
printf '#!/bin/sh\nexec sleep 60\n' >build/cuda/broken/net
printf '#!/bin/sh\nexit 3\n' >build/cuda/broken/pools
chmod +x build/cuda/broken/*
GPU_KINDS=broken GPU_TIMEOUT=2 SIM_CUDA_CHECKPOINT=checkpoint=801 check_gpu &&
    fail "broken samples passed" || equal "status" 1 $?
equal "rows that failed" "net, broken pools, broken" \
    "$(sed -n 's/^FAIL  \([a-z]*, broken\) .*/\1/p' out | paste -sd' ')"

contains "GPUs that are not given back" out 'FAIL  yield and restore'
contains "and why" out 'operation not supported (801); it was unlocked and runs on'

rm build/gpu/probe
check_gpu && fail "unbuilt programs passed" || equal "status" 2 $?
contains "unbuilt" err "is not built: run 'make check-gpu'"
