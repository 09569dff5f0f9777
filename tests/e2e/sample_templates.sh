# samples/templates: inlined template functions are functions of their own.
record_ok "$SAMPLES/templates"
ring() { sql "SELECT sum(alloc_count), sum(alloc_bytes) FROM v_function WHERE kind = 'heap' AND inclusive = 0 AND function LIKE 'Ring<$1>::push%'"; }
equal "Ring<int>::push" "10|4092" "$(ring int)"
equal "Ring<double>::push" "10|8184" "$(ring double)"
equal "pushes, inlined" 1 "$(value "SELECT count(*) > 0 FROM v_stack WHERE function LIKE 'Ring<int>::push%' AND is_inline = 1")"
equal "make_names, with callees" "1001|73000" "$(by_function make_names 1 | cut -d'|' -f1-2)"
equal "Tree::insert, with callees" "127|3048" "$(by_function insert 1 | cut -d'|' -f1-2)"
equal "end" 72704 "$(total end_active_bytes)" # libstdc++'s emergency pool for exceptions
