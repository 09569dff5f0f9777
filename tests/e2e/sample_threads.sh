# samples/threads
record_ok "$SAMPLES/threads"
equal "produce, self" "100000|25600000|100000" "$(by_function produce | cut -d'|' -f1-3)"
for n in 0 1; do
    equal "producer-$n" "50000|12800000" \
        "$(sql "SELECT alloc_count, alloc_bytes FROM v_thread WHERE thread = 'producer-$n' AND kind = 'heap'")"
    equal "consumer-$n" 0 \
        "$(value "SELECT sum(alloc_count) FROM v_thread WHERE thread = 'consumer-$n' AND kind = 'heap'")"
done
at_most "messages live at once" $((68 * 256)) \
    "$(value "SELECT sum(own_peak_bytes) FROM v_line WHERE kind = 'heap' AND function LIKE 'produce%'")"
equal "threads" 5 "$(value "SELECT count(*) FROM thread")"
