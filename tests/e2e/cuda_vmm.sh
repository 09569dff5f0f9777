# samples/vmm.c: physical memory, addresses and mappings; the driver is linked with, not looked up.
. "$ROOT/tests/cuda/lib.sh"
MIB=1048576
for vmm in $(builds_of vmm); do
    echo "$vmm"
    record_ok "$vmm"
    same_ledger run.out
    equal "mapped" "8|8|$((64 * MIB))" \
        "$(sql "SELECT alloc_count || '|' || free_count || '|' || peak_active_bytes FROM v_total
        WHERE device = 'cuda:0' AND kind = 'vmm'")"
    # nine pieces were created, eight of them mapped; the reserved addresses are no memory
    equal "reserved" $((72 * MIB)) "$(column cuda:0 all peak_reserved_bytes)"
    equal "at the end" "0|0" \
        "$(sql "SELECT active_bytes || '|' || reserved_bytes FROM v_timeline WHERE device = 'cuda:0'
        ORDER BY time_ns DESC LIMIT 1")"
    equal "the line" 8 \
        "$(value "SELECT sum(alloc_count) FROM v_line
        WHERE device = 'cuda:0' AND kind = 'vmm' AND line = $(line_of samples/vmm.c 'cuMemMap(at')")"
    same_behaviour "$vmm"
done
