# A daemon: its parent's ring is free when the daemon takes its own, and may be the same one. What the parent told there
# of Python's stacks nobody knows of the daemon.
need python3
python=$(python3 -c 'import sys; print(sys.executable)')
own="own AS (SELECT stack_id, alloc_count FROM site WHERE alloc_count > 0 AND alloc_bytes = 70000 * alloc_count)"
for _ in 1 2 3; do # that it is the same ring is likely
    record_ok "$python" "$ROOT/tests/programs/python_daemon.py" "$PROGRAMS/lib_daemon.so"
    equal "blocks of parent and daemon, by their frames of Python" "take middle outer serve <module>|21" \
        "$(value "WITH $own, stacks AS (SELECT stack_id, group_concat(function, ' ') AS names FROM
            (SELECT stack_id, function FROM own JOIN v_stack USING(stack_id) WHERE language = 'python'
            ORDER BY stack_id, depth) GROUP BY stack_id)
        SELECT names, sum(alloc_count) FROM own LEFT JOIN stacks USING(stack_id) GROUP BY names")"
done
