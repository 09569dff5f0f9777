# Odd requests: a value that is too long, pragmas as tables, suppressions without an end.
"$MEMPROF" run -q -o out.db -- true
for format in '' --csv --json; do
    code=0
    # shellcheck disable=SC2086
    "$MEMPROF" sql $format out.db 'SELECT zeroblob(2000000000)' >got 2>err || code=$?
    equal "too long a value $format: status" 1 $code
    contains "too long a value $format" err 'too big'
done
equal 'columns by pragma_table_info' "$(sql "SELECT count(*) FROM pragma_table_info('site')")" \
    "$("$MEMPROF" sql --csv out.db "SELECT count(*) FROM pragma_table_info('site')" | tail -n 1)"
"$MEMPROF" sql out.db "SELECT * FROM pragma_journal_mode('delete')" 2>err && fail 'a pragma that writes'
contains 'a pragma that writes' err 'not authorized'
code=0
timeout 20 "$MEMPROF" leaks out.db --suppressions /dev/zero >got 2>err || code=$?
equal '/dev/zero as suppressions: status' 2 $code
contains '/dev/zero as suppressions' err 'or one with a NUL'
