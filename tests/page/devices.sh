# Pages of GPU programs: every part follows the one device that is selected; the layers of its memory; out-of-memory errors.
. "$ROOT/tests/page/page.inc"
. "$ROOT/tests/cuda/lib.sh"
export SIM_CUDA_STATE="$PWD/state" # what the stand-in for NVML reads
P=$SIM/plain
RUN_OPTIONS=--source

SIM_CUDA_DEVICES=2 record_ok "$P/net" 2 10
check_page net-gpu --devices --says "Layers"

rm -f state
record_ok "$P/oom"
at=$(value "SELECT time_ns FROM oom ORDER BY time_ns DESC LIMIT 1")
"$MEMPROF" report out.db --by line --device cuda:0 --at "${at}ns" --csv >at.csv || fail "report --at"
check_page oom --devices --failure at.csv --says "2 allocations failed; 1 was had when tried again" --says "More was asked for than the device has"

rm -f state
record_ok "$P/fragment"
check_page fragment --devices --says "segments are held at"

# without NVML
unset SIM_CUDA_STATE
mkdir plain
cp "$SIM/13000/libcuda.so.1" "$SIM"/libcudart.so.1* plain/
LD_LIBRARY_PATH=$PWD/plain record_ok "$P/pools"
equal "samples" 0 "$(value "SELECT count(*) FROM device_sample")"
check_page pools --devices --basic --says "not sampled: no NVML"

# what a stranger may have put into a file
synthetic 20000
sqlite3 out.db "UPDATE device SET name = '</script><img src=x onerror=window.owned=3>' WHERE device_id = 2;
    INSERT INTO device_sample VALUES(1, 1000, -5, 9223372036854775807, 7, 7, -9223372036854775807), (1, 20000000000, 8589934592, -1, 0, 0, 0);
    INSERT INTO transfer(stack_id, device_id, direction, transfer_count, transfer_bytes) VALUES(1, 1, '</script><b>', 3, -4), (99, 2, 'HtoD', 9223372036854775807, 9223372036854775807);
    INSERT INTO oom VALUES(2, -5, 2, '</script>', NULL, NULL, 9223372036854775807, -1, -2, -3, 77), (3, 23000000000, 2, 'sub', 1, 2, -1, 5, NULL, NULL, NULL), (4, 22000000000, 77, 'sub', 1, 2, 1, 5, NULL, NULL, 1)"
check_page hostile-gpu --hostile --basic --says "</script><img src=x onerror=window.owned=3>" --says "4 allocations failed"
