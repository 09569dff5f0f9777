# Pages of GPU programs whose rows of segments do not tell all: what nobody gave back, a row that is missing, too many
# of them, a mapping that holds more. Without NVML.
. "$ROOT/tests/page/page.inc"
. "$ROOT/tests/cuda/lib.sh"
P=$SIM/plain
RUN_OPTIONS=--source

# two programs, one after the other, that give nothing back: what the first one held is gone with it
record_ok sh -c "'$PROGRAMS/cuda_layers' leave; '$PROGRAMS/cuda_layers' 'leave more'"
equal "reserved, at most, by one of them" $((20 << 20)) "$(column cuda:0 all peak_reserved_bytes)"
equal "not given back" $(((8 + 16) << 20)) \
    "$(value "SELECT sum(size_bytes) FROM segment WHERE device_id = 1 AND free_ns IS NULL")"
check_page leave --basic --devices --says "20.00 MiB"

# where rows of segments do not tell all, the timeline does: one is missing; there are as many as a kind of a device may
# have; a pool or a mapping holds more. With one too many at the peak, but no new peak, they would be believed else.
record_ok "$P/fragment"
cp out.db fragment.db
equal "reserved at the peak, and at most" "$((64 << 20))|$((80 << 20))" \
    "$(sql "SELECT (SELECT sum(size_bytes) FROM segment
    WHERE device_id = 1 AND alloc_ns <= peak_active_ns AND free_ns > peak_active_ns) || '|' || peak_reserved_bytes
    FROM total WHERE device_id = 1 AND kind = 'all'")"
sqlite3 out.db "DELETE FROM segment WHERE segment_id = (SELECT min(segment_id) FROM segment WHERE device_id = 1)"
check_page missing --same-sites --basic --devices
more="INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, alloc_ns, free_ns) SELECT
        100000, 1, 'sub', 1, 4096, 1048576, 0, peak_active_ns + 1 FROM total WHERE device_id = 1 AND kind = 'all'"
cp fragment.db out.db
sqlite3 out.db "$more; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 65535)
    INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, alloc_ns, free_ns) SELECT
        100000 + x, 1, 'sub', 1, 8192, 16, 0, 0 FROM n"
check_page full --same-sites --basic --devices
cp fragment.db out.db
sqlite3 out.db \
    "$more; UPDATE total SET kind = 'vmm', alloc_count = 0, alloc_bytes = 0, free_count = 0, peak_reserved_bytes =
        1048576 WHERE device_id = 1 AND kind = 'device'"
check_page mapped --same-sites --basic --devices

# what a stranger may have put into a file
synthetic 20000
sqlite3 out.db "UPDATE device SET name = '</script><img src=x onerror=window.owned=3>' WHERE device_id = 2;
    INSERT INTO device_sample VALUES(1, 1000, -5, 9223372036854775807, 7, 7, -9223372036854775807), (1, 20000000000,
        8589934592, -1, 0, 0, 0);
    INSERT INTO transfer(stack_id, device_id, direction, transfer_count, transfer_bytes) VALUES(1, 1,
        '</script><b>', 3, -4), (99, 2, 'HtoD', 9223372036854775807, 9223372036854775807);
    INSERT INTO oom VALUES(2, -5, 2, '</script>', NULL, NULL, 9223372036854775807, -1, -2, -3, 77), (3, 23000000000,
        2, 'sub', 1, 2, -1, 5, NULL, NULL, NULL), (4, 22000000000, 77, 'sub', 1, 2, 1, 5, NULL, NULL, 1)"
check_page hostile-gpu --hostile --basic --says "</script><img src=x onerror=window.owned=3>" --says \
    "4 allocations failed"
