# Threads that free and grow each other's blocks: the program's own counts, no unmatched free, no negative balance.
# alone: more threads than processors, to change places as they will by themselves
for threads in 1 2 4 16; do
    echo "$threads threads"
    record_ok "$PROGRAMS/stress" $threads $((1600000 / threads)) $threads
    equal "work" "$(cut -d' ' -f1,3 run.out)" \
        "$(sql "SELECT sum(alloc_count) || ' ' || sum(alloc_bytes) FROM v_line
        WHERE kind = 'heap' AND function LIKE 'work%'")"
    equal "frees of work's blocks" "$(cut -d' ' -f2 run.out)" "$(by_function work | cut -d'|' -f3)"
    equal "blocks taken over unseen" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'replaced_block'")"
done
