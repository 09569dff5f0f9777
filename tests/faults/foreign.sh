# Double frees and frees of what is no block: counted, not fatal.
LD_PRELOAD=$PROGRAMS/lib_bump.so
export LD_PRELOAD
record "$PROGRAMS/foreign"
unset LD_PRELOAD
equal "status" 0 $status
equal "unmatched frees" 6 "$(value "SELECT sum(value) FROM counter WHERE name = 'unmatched_free'")"
equal "totals" "10|10|1000|0" "$(sql "SELECT alloc_count, free_count, alloc_bytes, end_active_bytes FROM v_total WHERE kind = 'heap'")"
"$MEMPROF" info out.db >info
grep -i -q 'free' info || { cat info; fail "info does not tell of them"; }
