# Allocations that fail: errno as ever, a row in oom, nothing in the counts.
record_ok "$PROGRAMS/oom"
equal "failed" 5 "$(value "SELECT count(*) FROM oom")"
equal "asked for at least once" 1 "$(value "SELECT count(*) > 0 FROM oom WHERE size_bytes = 9223372036854775807")"
equal "counts" "12|12|10026" "$(sql "SELECT alloc_count, free_count, alloc_bytes FROM v_total WHERE kind = 'heap'")"
equal "where" 5 "$(value "SELECT count(*) FROM oom o JOIN v_stack s USING(stack_id) WHERE s.function LIKE 'fails%'")"
