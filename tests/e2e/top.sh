# memprof top: its values against a program's own ledger and against a report of the same state; keys, sizes and signals
# in a pty; that the terminal is given back.
. "$ROOT/tests/lib.sh"
need python3
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$ROOT/tests" python3 "$ROOT/tests/e2e/top.py" "$PROGRAMS/ledger_steps" ||
    fail "top.py"

echo 'errors'
bad 2 "expected seconds from 0.1" top -n 0
bad 2 "--by 'x': expected line, function or op" top --by x
bad 2 "--sort 'x': expected active, growth or count" top --sort x
bad 2 '--json goes with --once' top --json
bad 2 'one PID or FILE at a time' top a b
bad 1 'not recorded' top $$
bad 1 'no such process' top 99999999999
bad 1 'nowhere.db' top nowhere.db
echo 'no recording' >text.db
bad 1 'text.db' top text.db
