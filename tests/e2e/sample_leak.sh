# samples/leak
record_ok "$SAMPLES/leak"
equal "totals" "2001|1900|101|7296" \
    "$(sql "SELECT alloc_count, free_count, end_count, end_active_bytes FROM v_total WHERE kind = 'heap'")"
line=$(awk '/entry->name = malloc/ { print NR }' "$ROOT/samples/leak.c")
equal "the leak" "3200|100" \
    "$(sql "SELECT sum(end_bytes), sum(end_count) FROM v_leak WHERE function LIKE 'parse_line%' AND line = $line")"
equal "the defaults" "4096|1" \
    "$(sql "SELECT sum(end_bytes), sum(end_count) FROM v_leak WHERE function LIKE 'load_defaults%'")"
"$MEMPROF" leaks out.db >leaks.txt
contains "leaks" leaks.txt parse_line
contains "leaks" leaks.txt load_defaults
contains "leaks" leaks.txt leak.c:$line
echo 'leak:load_defaults' >suppressions
"$MEMPROF" leaks out.db --suppressions suppressions >suppressed.txt
contains "suppressed" suppressed.txt parse_line
grep -v -i suppress suppressed.txt >rest.txt || true
lacks "suppressed" rest.txt 'leak.c:21'
code=0
"$MEMPROF" leaks out.db --suppressions suppressions --error-exitcode 23 >/dev/null || code=$?
equal "exit status with leaks" 23 $code
echo 'leak:parse_line' >>suppressions
code=0
"$MEMPROF" leaks out.db --suppressions suppressions --error-exitcode 23 >/dev/null || code=$?
equal "exit status when all is suppressed" 0 $code
