# mmap, mmap64, sbrk, brk, partial and spanning munmap, mremap, PROT_NONE reserves: kind map.
record_ok "$PROGRAMS/maps"
page=4096
equal "peak of maps" $((100 * page)) \
    "$(value "SELECT max(own_peak_bytes) FROM v_line WHERE kind = 'map' AND function LIKE 'map%'")"
equal "end of maps" $((7 * page)) "$(total end_active_bytes map)"
equal "the leak" $((7 * page)) \
    "$(value "SELECT sum(end_bytes) FROM v_line_total WHERE kind = 'map' AND function LIKE 'keep%'")"
equal "left of work" 0 "$(value "SELECT sum(end_bytes) FROM v_line_total WHERE kind = 'map' AND function LIKE 'work%'")"
equal "work: a map that loses its middle is one" "4|$((190 * page))|4|$((190 * page))" \
    "$(sql "SELECT alloc_count || '|' || alloc_bytes || '|' || free_count || '|' || free_bytes FROM v_function
    WHERE kind = 'map' AND inclusive = 1 AND function LIKE 'work%'")"
equal "sbrk and brk" "2|$((5 * page))|2|0" "$(by_function breaks 0 map | cut -d'|' -f1-3,5)"
for hook in mmap mmap64 mremap mprotect sbrk brk; do
    at_least "events of $hook" 1 \
        "$("$MEMPROF" sql --csv out.db \
        "SELECT count(*) AS n FROM v_event WHERE op IN ('alloc', 'realloc') AND kind = 'map' AND hook = '$hook'" |
        tail -n 1)"
done
