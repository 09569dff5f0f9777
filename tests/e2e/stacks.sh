# Small stacks, alternate signal stacks, deep recursion, contexts of their own; longjmp and exceptions.
record_ok "$PROGRAMS/stacks"
for size in 1001 1002 1003 1004; do
    equal "leaf of $size" 1 "$(value "SELECT sum(alloc_count) FROM site WHERE alloc_bytes = $size AND alloc_count = 1")"
done
equal "cut at" 512 "$(value "SELECT max(depth) FROM stack")"
equal "said to be cut" 1 "$(value "SELECT sum(value) FROM counter WHERE name = 'stack_cut'")"
equal "through the signal frame" 1 \
    "$(value "SELECT count(DISTINCT s.stack_id) FROM site s JOIN v_stack v USING(stack_id)
    WHERE s.alloc_bytes = 1002 AND v.function = 'main'")"
RUN_OPTIONS="--depth 8"
record_ok "$PROGRAMS/stacks"
equal "--depth 8" 8 "$(value "SELECT max(depth) FROM stack")"
RUN_OPTIONS=
record_ok "$PROGRAMS/jumps"
for size in 122 123; do
    line=$(awk "/malloc.$size/ { print NR }" "$ROOT/tests/programs/jumps.cpp")
    equal "the block before a jump or throw" "1000|${size}000|1000" \
        "$(sql "SELECT alloc_count, alloc_bytes, free_count FROM v_line
        WHERE kind = 'heap' AND file LIKE '%jumps.cpp' AND line = $line")"
done
equal "new that fails" 1000 "$(value "SELECT count(*) FROM oom")"
