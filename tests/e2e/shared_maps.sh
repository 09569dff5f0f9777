# Shared memory of a memfd, shm_open, shmat and /dev/zero is memory of kind map; files on a disk are not.
kind=$(stat -f -c %T "$PROGRAMS/shared_maps")
[ "$kind" != tmpfs ] || skip "the tests' programs lie in memory"
truncate -s 1M "$BUILD/shared_maps.file"
record_ok "$PROGRAMS/shared_maps" "$BUILD/shared_maps.file"
rm "$BUILD/shared_maps.file"
page=4096
ends() { value "SELECT sum(end_bytes) FROM v_function WHERE kind = 'map' AND inclusive = 1 AND function = '$1'"; }
equal "a memfd" $((10 * page)) "$(ends of_memfd)"
equal "shm_open, less what was unmapped" $((15 * page)) "$(ends of_shm)"
equal "shmat, twice, and shmdt" "2|$((14 * page))|1|$((7 * page))" \
    "$(sql "SELECT alloc_count || '|' || alloc_bytes || '|' || free_count || '|' || free_bytes FROM v_function
    WHERE kind = 'map' AND inclusive = 1 AND function = 'of_segment'")"
equal "/dev/zero" $((3 * page)) "$(ends of_zero)"
equal "a file, and a private copy" "0|0" "$(ends of_file)|$(ends copied)"
equal "all of them" "4|$((35 * page))" "$(sql "SELECT (alloc_count - free_count) || '|' || end_active_bytes FROM v_total
    WHERE kind = 'map'")"
equal "the lines are the program's" 0 \
    "$(value "SELECT count(*) FROM v_line WHERE kind = 'map' AND file NOT LIKE '%/shared_maps.c'")"
for hook in shmat mmap; do
    at_least "events of $hook" 1 "$("$MEMPROF" sql --csv out.db \
        "SELECT count(*) AS n FROM v_event WHERE op = 'alloc' AND kind = 'map' AND hook = '$hook'" | tail -n 1)"
done
