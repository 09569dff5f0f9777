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
equal "cfree, free_sized, free_aligned_sized" "30|3000|30|30|0|0" "$(by_function do_other_frees)"
equal "free(NULL)" "" "$(by_function do_nothing | tr -d '|')"
equal "totals" "180|180|57460|20" \
    "$(sql "SELECT alloc_count, free_count, alloc_bytes, realloc_count FROM v_total WHERE kind = 'heap'")"
for f in calloc reallocarray memalign aligned_alloc valloc pvalloc posix_memalign; do
    equal "events of $f" 10 \
        "$("$MEMPROF" sql --csv out.db \
        "SELECT count(*) AS n FROM v_event WHERE op IN ('alloc', 'realloc') AND hook = '$f'" | tail -n 1)"
done
for f in cfree free_sized free_aligned_sized; do
    equal "events of $f" 10 \
        "$("$MEMPROF" sql --csv out.db "SELECT count(*) AS n FROM v_event WHERE op = 'free' AND hook = '$f'" |
        tail -n 1)"
done

# Every form of operator new and delete: the line that allocates is the program's, not the C++ library's.
record_ok "$PROGRAMS/cxx_new"
for f in plain array nothrow array_nothrow aligned array_aligned aligned_nothrow array_aligned_nothrow; do
    equal "new, $f" "10|1280|10|10|0|0" "$(by_function new_$f)"
done
equal "functions that allocate" 8 \
    "$(value "SELECT count(DISTINCT function) FROM v_line
    WHERE kind = 'heap' AND file LIKE '%/cxx_new.cpp' AND alloc_count = 10")"
equal "lines in the C++ library" 0 \
    "$(value "SELECT count(*) FROM v_line WHERE kind = 'heap' AND function LIKE '%operator new%'")"
