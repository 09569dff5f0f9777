# samples/cache
record_ok "$SAMPLES/cache"
equal "totals" "25008|25008|2541120|15000|7" \
    "$(sql "SELECT alloc_count, free_count, alloc_bytes, temporary_count, realloc_count FROM v_total
    WHERE kind = 'heap'")"
equal "peak" 1131136 "$(total peak_active_bytes)"
equal "remember, self" "5008|1261120|5008|0|0|0" "$(by_function remember)"
equal "answer, self" "20000|1280000|20000|15000|0|0" "$(by_function answer)"
# the size histogram: 64-byte requests are class 6, 200-byte answers class 7
equal "size class 6" "20000|1280000" \
    "$(sql "SELECT alloc_count, alloc_bytes FROM size_class WHERE kind = 'heap' AND log2_size = 6")"
equal "size class 7" "5000|1000000" \
    "$(sql "SELECT alloc_count, alloc_bytes FROM size_class WHERE kind = 'heap' AND log2_size = 7")"
equal "lifetimes" 25008 "$(value "SELECT sum(free_count) FROM lifetime_class WHERE kind = 'heap'")"
