# samples/templates: inlined template functions are functions of their own.
record_ok "$SAMPLES/templates"
ring() {
    sql "SELECT sum(alloc_count), sum(alloc_bytes) FROM v_function
        WHERE kind = 'heap' AND inclusive = 0 AND function LIKE 'Ring<$1>::push%'"
}
equal "Ring<int>::push" "10|4092" "$(ring int)"
equal "Ring<double>::push" "10|8184" "$(ring double)"
equal "pushes, inlined" 1 \
    "$(value "SELECT count(*) > 0 FROM v_stack WHERE function LIKE 'Ring<int>::push%' AND is_inline = 1")"
equal "make_names, with callees" "1001|73000" "$(by_function make_names 1 | cut -d'|' -f1-2)"
equal "Tree::insert, with callees, recursion once" "127|3048" \
    "$(sql "SELECT alloc_count, alloc_bytes FROM v_function
    WHERE kind = 'heap' AND inclusive = 1 AND function LIKE 'Tree::insert(std::unique_ptr%'")"
equal "Tree::insert that calls it" "127|3048" \
    "$(sql "SELECT alloc_count, alloc_bytes FROM v_function
    WHERE kind = 'heap' AND inclusive = 1 AND function LIKE 'Tree::insert(long%'")"
equal "end" 72704 "$(total end_active_bytes)" # libstdc++'s emergency pool for exceptions
