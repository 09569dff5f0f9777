# Each hooked function of malloc's family, by its own counts and its number in the events.
record_ok "$PROGRAMS/hooks"
for f in malloc calloc realloc_null reallocarray memalign aligned_alloc valloc; do
    equal "$f" "10|1000|10|10|0|0" "$(by_function do_$f)"
done
equal "pvalloc, whole pages" "10|40960|10|10|0|0" "$(by_function do_pvalloc)"
equal "strdup" "10|1000|10|10|0|0" "$(by_function do_strdup 1)"
equal "posix_memalign" "10|1000|10|10|0|0" "$(by_function do_posix_memalign 1)"
equal "realloc to other sizes" "30|3500|30" "$(by_function do_realloc_sizes | cut -d'|' -f1-3)"
equal "realloc to 0" "10|1000|10" "$(by_function do_realloc_zero | cut -d'|' -f1-3)"
equal "malloc(0)" "10|0|10" "$(by_function do_zero | cut -d'|' -f1-3)"
equal "free(NULL)" "" "$(by_function do_nothing | tr -d '|')"
equal "totals" "150|150|54460|20" "$(sql "SELECT alloc_count, free_count, alloc_bytes, realloc_count FROM v_total WHERE kind = 'heap'")"
for f in calloc reallocarray memalign aligned_alloc valloc pvalloc posix_memalign; do
    equal "events of $f" 10 "$("$MEMPROF" sql --csv out.db "SELECT count(*) AS n FROM v_event WHERE op IN ('alloc', 'realloc') AND hook = '$f'" | tail -n 1)"
done
