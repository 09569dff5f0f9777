# Python threads that come and go, timers, deep recursion, a fork, and threads that allocate while the interpreter ends.
need python3
python=$(command -v python3)
set -- "$python" "$ROOT/tests/programs/python_threads.py"
equal "plain" "[3000] 7 True" "$("$@")"
record_ok "$@"
equal "output" "[3000] 7 True" "$(cat run.out)"
# 300 threads and the child, 30 rounds of 20 blocks of 633 to 662 bytes
equal "the workers' blocks" "$((301 * 30 * 20))|$((301 * 20 * 19425))" \
    "$(sql "SELECT alloc_count || '|' || alloc_bytes FROM v_function
    WHERE function = 'work' AND kind = 'heap' AND inclusive = 1")"
equal "each deep frame's block" 3009 \
    "$(value "SELECT sum(alloc_count) FROM site WHERE alloc_bytes = alloc_count * 9033")"
equal "stacks of the recursion that are cut" 1 \
    "$(value "SELECT count(*) > 0 FROM site s JOIN v_stack v USING(stack_id)
    WHERE alloc_count > 0 AND alloc_bytes = alloc_count * 9033 AND v.depth = 511 AND v.function = 'deep'")"
at_least "threads" 300 "$(value "SELECT count(*) FROM thread")"
equal "not understood" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'python_unknown'")"
