# A program with a damaged heap, which lives as long as nobody walks its free chunks: --no-heap-sample leaves them
# alone.
code=0
"$PROGRAMS/damaged" || code=$?
[ $code = 4 ] || skip "the C library notices by itself (status $code)"
RUN_OPTIONS=--no-heap-sample
record "$PROGRAMS/damaged"
equal "status" 4 $status
sound
equal "events" "18|18" "$(sql "SELECT alloc_count, free_count FROM v_total WHERE kind = 'heap'")"
equal "samples" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'heap_sample'")"
equal "reserved bytes of the heap" 0 "$(value "SELECT max(peak_reserved_bytes) FROM v_total WHERE kind = 'heap'")"
"$MEMPROF" report out.db >report
"$MEMPROF" info out.db | grep -q -- --no-heap-sample || fail "info does not tell the option"
# asked, the C library ends it
RUN_OPTIONS=
record "$PROGRAMS/damaged"
[ $status != 4 ] || echo "  this C library's mallinfo2 did not mind"
