# The same stacks on every Python from 3.9 to 3.14 that a version manager has installed here.
root=${PYENV_ROOT:-$HOME/.pyenv}/versions
tested=0
for python in "$root"/3.9.*/bin/python3 "$root"/3.1[0-4].*/bin/python3; do
    [ -x "$python" ] || continue
    echo "  $("$python" --version)"
    record_ok "$python" "$ROOT/tests/programs/python_stacks.py" "$PWD/places" 20 >/dev/null
    python3 "$ROOT/tests/programs/python_compare.py" out.db places || fail "$python: stacks differ"
    equal "$python: not understood" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'python_unknown'")"
    equal "$python: evaluations left" 0 \
        "$(value "SELECT count(*) FROM frame JOIN function USING(function_id)
        WHERE plain_name LIKE '\_PyEval\_EvalFrameDefault%' ESCAPE '\'")"
    tested=$((tested + 1))
done
[ $tested -gt 0 ] || skip "no Python in $root"

# One that is not known (3.8 and before): native stacks, and the recording says so.
for python in "$root"/3.8.*/bin/python3; do
    [ -x "$python" ] || continue
    record_ok "$python" -c 'keep = [bytes(1000) for _ in range(1000)]'
    equal "3.8: not understood" 1 "$(value "SELECT sum(value) FROM counter WHERE name = 'python_unknown'")"
    equal "3.8: Python frames" 0 "$(value "SELECT count(*) FROM frame WHERE language = 'python'")"
    "$MEMPROF" report >report.txt
    contains "3.8: said" report.txt "stacks are native only"
done
