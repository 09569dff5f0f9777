# samples/net.cu: a caching allocator on one device and on two, told of through NVTX (nvcc's build) or memprof.h
# (plain).
. "$ROOT/tests/cuda/lib.sh"
SIM_CUDA_DEVICES=2
export SIM_CUDA_DEVICES
for net in $(builds_of net); do
    echo "$net"
    record_ok "$net"
    same_ledger run.out
    # from the program's text: 717 blocks, the peak in a validation pass
    equal "blocks" "717|106004480|3768320" \
        "$(sql "SELECT alloc_count || '|' || alloc_bytes || '|' || peak_active_bytes FROM v_total
        WHERE device = 'cuda:0' AND kind = 'sub'")"
    equal "reserved" 8388608 "$(column cuda:0 all peak_reserved_bytes)"
    equal "nothing on the other device" 0 "$(column cuda:1 all alloc_count)"
    equal "ranges" "backward|100 forward|104 step|100" \
        "$(sql "SELECT group_concat(name || '|' || n, ' ')
        FROM (SELECT name, count(*) n FROM mark WHERE is_range = 1 AND end_ns >= start_ns GROUP BY 1 ORDER BY 1)")"
    if command -v python3 >/dev/null; then
        at_least "numbers of each step on both" 2200 "$(python3 "$ROOT/tests/e2e/every.py" "$MEMPROF" out.db step)"
    fi
    # samples are 524,288 bytes up; of weights, 524,288 and 32,768; 4 results of validation come down
    equal "to the device" "3|$((524288 * 2 + 32768))" \
        "$(sql "SELECT sum(transfer_count) || '|' || sum(transfer_bytes) FROM v_transfer
        WHERE device = 'cuda:0' AND direction = 'HtoD'")"
    equal "to the host" "4|$((4 * 32768))" \
        "$(sql "SELECT sum(transfer_count) || '|' || sum(transfer_bytes) FROM v_transfer
        WHERE device = 'cuda:0' AND direction = 'DtoH'")"

    # all blocks come from one line of the pool, with nvcc of two: who called it is what counts
    "$MEMPROF" report out.db --device cuda:0 >report.txt
    contains "callers behind the pool" report.txt '   <- forward'

    "$MEMPROF" lines out.db --func forward --device cuda:0 >lines.txt
    contains "the header" lines.txt 'samples/net.cu'
    lacks "the other device" lines.txt 'cuda:1'
    # live when hidden of a validation was taken: 1,638,400 + 1,048,576; then mask as large, then out of 32,768; 8 MiB
    # reserved
    for row in 'hidden = pool_alloc|2.56M' 'mask = pool_alloc|3.56M' 'out = pool_alloc|3.59M'; do
        grep -F "a.${row%|*}" lines.txt >row.txt || fail "no line of ${row%|*}"
        contains "active peak" row.txt " ${row#*|} "
        contains "reserved peak" row.txt " 8.00M "
        contains "allocations" row.txt " 104 "
    done
    equal "no allocation elsewhere in forward" 3 "$(grep -c '8\.00M' lines.txt)"

    record_ok "$net" 2 10
    same_ledger run.out
    for device in 0 1; do
        equal "cuda:$device" "$((5 + 10 * 7))" "$(column "cuda:$device" sub alloc_count)"
        "$MEMPROF" lines out.db --func forward --device "cuda:$device" >"lines$device.txt"
        contains "lines of cuda:$device" "lines$device.txt" "cuda:$device"
    done
    equal "devices" "cuda:0 cuda:1" \
        "$(sql "SELECT group_concat(name, ' ') FROM (SELECT name FROM device WHERE name LIKE 'cuda:%' ORDER BY 1)")"
    same_behaviour "$net" 2 10
done
