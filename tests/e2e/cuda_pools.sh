# samples/pools.cu: allocated, active and reserved bytes of stream-ordered pools.
. "$ROOT/tests/cuda/lib.sh"
MIB=1048576
for pools in $(builds_of pools); do
    echo "$pools"
    record_ok "$pools"
    same_ledger run.out
    # 8 + 4 + 100 + 3 + 1 blocks; 16 MiB while 8 wait to be freed and 8 are taken
    equal "blocks" "116|$((16 * MIB))" \
        "$(sql "SELECT alloc_count || '|' || peak_active_bytes FROM v_total WHERE device = 'cuda:0' AND kind = 'pool'")"
    equal "most allocated" $((12 * MIB)) \
        "$(value "SELECT max(allocated_max_bytes) FROM timeline JOIN device USING(device_id) WHERE name = 'cuda:0'")"
    events cuda:0 | sums >sums.txt
    equal "at the peak half is allocated" "$((16 * MIB)) $((8 * MIB)) 0" "$(sort -n sums.txt | tail -1)"
    equal "reserved" $((16 * MIB)) "$(column cuda:0 all peak_reserved_bytes)"
    equal "nothing at the end" "0|0" \
        "$(sql "SELECT end_active_bytes || '|' || end_count FROM v_total WHERE device = 'cuda:0' AND kind = 'all'")"
    same_behaviour "$pools"
    # pools did not exist then
    driver 11080
    record_ok "$pools"
    same_ledger run.out
    driver 10020
    same_behaviour "$pools"
    contains "the old driver" run.err 'not supported'
    driver 13000
done

# The same source with each thread's own default stream: other entry points of runtime and driver.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ] &&
    "$nvcc" -std=c++17 -g -O1 -I"$ROOT/include" -cudart shared -default-stream per-thread -o per_thread \
    "$ROOT/samples/pools.cu"; then
    record_ok ./per_thread
    same_ledger run.out
    "$BUILD/programs/calls" "$BUILD/libmemprof.so" ./per_thread >calls.txt 2>&1
    equal "waits are seen" 1 "$(grep -c -m1 ' SYNC ' calls.txt)"
else
    echo "no nvcc: not with each thread's own default stream"
fi
