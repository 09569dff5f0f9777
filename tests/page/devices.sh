# Pages of GPU programs: every part follows the one device that is selected; the layers of its memory; out-of-memory
# errors.
. "$ROOT/tests/page/page.inc"
. "$ROOT/tests/cuda/lib.sh"
export SIM_CUDA_STATE="$PWD/state" # what the stand-in for NVML reads
P=$SIM/plain
RUN_OPTIONS=--source

SIM_CUDA_DEVICES=2 record_ok "$P/net" 2 10
check_page net-gpu --hands --devices --addresses --pictures --says "Layers"

rm -f state
record_ok "$P/oom"
at=$(value "SELECT time_ns FROM oom ORDER BY time_ns DESC LIMIT 1")
"$MEMPROF" report out.db --by line --device cuda:0 --at "${at}ns" --csv >at.csv || fail "report --at"
check_page oom --hands --basic --devices --failure at.csv --says \
    "2 allocations failed; 1 was had when tried again" --says "More was asked for than the device has"

rm -f state
record_ok "$P/fragment"
check_page fragment --basic --devices --says "segments are held at"

# without NVML
unset SIM_CUDA_STATE
mkdir plain
cp "$SIM/13000/libcuda.so.1" "$SIM"/libcudart.so.1* plain/
LD_LIBRARY_PATH=$PWD/plain record_ok "$P/pools"
equal "samples" 0 "$(value "SELECT count(*) FROM device_sample")"
check_page pools --devices --basic --says "not sampled: no NVML"
