# samples/oom.cu: failed allocations with the device's figures and who held the rest.
. "$ROOT/tests/cuda/lib.sh"
MIB=1048576
for oom in $(builds_of oom); do
    echo "$oom"
    record_ok "$oom"
    same_ledger run.out
    # 1024 MiB, 16 of the context's own and, where the runtime loads a module, its 2; 15 blocks of 64 fit
    equal "first failure" "$((64 * MIB))|$((15 * 64 * MIB))|$((48 * MIB))|$((1024 * MIB))" \
        "$(sql "SELECT size_bytes || '|' || active_bytes || '|' || device_free_bytes || '|' || device_total_bytes
        FROM oom JOIN device USING(device_id) WHERE name = 'cuda:0' ORDER BY time_ns LIMIT 1")"
    equal "second failure" "$((2048 * MIB))|$((14 * 64 * MIB))|$((112 * MIB))" \
        "$(sql "SELECT size_bytes || '|' || active_bytes || '|' || device_free_bytes FROM oom
        ORDER BY time_ns DESC LIMIT 1")"
    equal "failures" 2 "$(value "SELECT count(*) FROM oom")"
    equal "where" hold \
        "$(sql "SELECT DISTINCT substr(s.function, 1, 4) FROM oom JOIN v_stack s USING(stack_id)
        WHERE s.file LIKE '%oom.cu' AND s.function LIKE 'hold%'")"
    equal "retried" 1 "$(value "SELECT value FROM counter WHERE name = 'alloc_retry_count'")"
    equal "held by" "15|$((15 * 64 * MIB))" \
        "$(sql "SELECT at_peak_count || '|' || at_peak_bytes FROM v_line
        WHERE device = 'cuda:0' AND kind = 'device' AND line = $(line_of samples/oom.cu 'cudaMalloc(&memory')")"
    same_behaviour "$oom"
    # a device of another size, and allocations that fail without need
    SIM_CUDA_BYTES=$((160 * MIB)) same_behaviour "$oom"
    equal "a small device" $((160 * MIB)) "$(value "SELECT max(device_total_bytes) FROM oom")"
    SIM_CUDA_FAIL_EVERY=5 same_behaviour "$oom"
    same_ledger run.out
    at_least "failures by injection" 2 "$(value "SELECT count(*) FROM oom")"
done
