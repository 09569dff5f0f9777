# A million allocations from generators, coroutines, threads, comprehensions, decorators, metaclasses, executed code and
# recursion: the Python frames of each stack are what traceback.extract_stack() said in the same place.
need python3
python=$(command -v python3)
record_ok "$python" "$ROOT/tests/programs/python_stacks.py" "$PWD/places" 2400
at_least "code objects at an address that another had" 100 "$(sed -n 's/^code addresses reused: //p' run.out)"
versions=$(sed -n 's/^functions with a version: //p' run.out) # 3.11 alone
[ -z "$versions" ] || at_least "functions that the interpreter had given a version" 200 "$versions"
python3 "$ROOT/tests/programs/python_compare.py" out.db places || fail "stacks differ"
at_least "allocations compared" 1000000 \
    "$(python3 "$ROOT/tests/programs/python_compare.py" out.db places | sed 's/ .*//')"
equal "interpreters not understood" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'python_unknown'")"
# each evaluation's native frame made place for its Python frames
equal "evaluations left" 0 \
    "$(value "SELECT count(*) FROM frame JOIN function USING(function_id)
    WHERE plain_name LIKE '\_PyEval\_EvalFrameDefault%' ESCAPE '\'")"

# the same with the stack cut: what is left are the innermost frames
RUN_OPTIONS="--depth 5"
record_ok "$python" "$ROOT/tests/programs/python_stacks.py" "$PWD/places" 2
equal "deepest" 5 "$(value "SELECT max(depth) FROM stack")"
at_least "innermost frames of the program" 1 \
    "$(value "SELECT sum(alloc_count) FROM site s JOIN v_stack v USING(stack_id)
    WHERE v.function = 'here' AND v.language = 'python'")"
