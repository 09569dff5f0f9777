# memprof log: every event exactly once, as v_event has it: of a finished file, and of a running program to its end.
. "$ROOT/tests/lib.sh"
need python3

# v_event FILE [CONDITION]: the same columns in the same order
v_event() {
    "$MEMPROF" sql "$1" --csv "SELECT e.event_number, e.time_ns, e.op, e.device, e.kind, e.address, e.size_bytes,
        e.thread_id, e.site_id FROM v_event e WHERE ${2:-1} ORDER BY event_number" | tr -d '\r' | sed 1d
}
cat >columns.py <<'EOF'
import json
import sys

for line in sys.stdin:
    e = json.loads(line)
    print(",".join(str(e[k]) for k in ("event_number", "time_ns", "op", "device", "kind", "address", "size_bytes",
                                       "thread_id", "site_id")))
EOF
# same WHAT CONDITION OPTION...: what log prints of out.db with these options
same() {
    what=$1 condition=$2
    shift 2
    v_event out.db "$condition" >expected
    "$MEMPROF" log "$@" --json out.db | python3 columns.py >got
    [ -s expected ] || fail "$what: v_event has nothing"
    cmp -s expected got || { diff expected got | head -10; fail "$what differs"; }
    echo "  $what = $(wc -l <got) events"
}

echo 'a finished file'
record_ok "$PROGRAMS/tree"
same 'all events' 1
pid=$(value "SELECT pid FROM process ORDER BY process_id DESC LIMIT 1")
same 'of one process' "e.process_id IN (SELECT process_id FROM process WHERE pid = $pid)" --process "$pid"
same 'large ones' 'e.size_bytes >= 1024' --min-size 1K
same 'of a device and a kind' "e.device = 'host' AND e.kind = 'heap'" --device host --kind heap
record_ok "$PROGRAMS/ledger_steps" </dev/null
same 'of one function' "e.site_id IN (SELECT site_id FROM site_line JOIN line USING(line_id) JOIN function USING(
    function_id) WHERE plain_name = 'hold')" --func hold
"$MEMPROF" log --func hold --min-size 1000 out.db >got
line=$(grep -n 'malloc(1000)' "$ROOT/tests/programs/ledger_steps.c" | cut -d: -f1)
equal 'lines of hold()' 100 \
    "$(grep -c " s  alloc  *host  *heap  *1000 B  tid [0-9]*  *hold .*ledger_steps.c:$line\$" got)"
bad 2 "nothing was allocated on a device 'cuda'" log --device cuda out.db

echo 'a function that only passes memory on'
"$MEMPROF" log --skip hold --skip not_there --min-size 1000 out.db >got
lacks '--skip: its callers stand there' got ' hold '
equal 'lines of its caller' 100 "$(grep -c ' s  alloc  *host  *heap  *1000 B  tid [0-9]*  *main ' got)"
"$MEMPROF" top --once --json --top 0 --by function --skip hold out.db |
    python3 -c 'import json, sys
rows = json.load(sys.stdin)["rows"]
print([(r["function"], r["active_bytes"]) for r in rows if r["function"] in ("hold", "main")])' >got
"$MEMPROF" report --by function --at end --json --top 0 --skip hold out.db |
    python3 -c 'import json, sys
print([(r["function"], r["end_bytes"]) for r in json.load(sys.stdin)["rows"] if r["function"] == "main"])' >expected
equal 'top, as the report has it' "$(cat expected)" "$(cat got)"
bad 2 "--skip ''" log --skip '' out.db

echo 'errors'
"$MEMPROF" run -q --aggregate -o aggregate.db "$PROGRAMS/ledger_steps" </dev/null >run.out
bad 1 'keeps no events' log aggregate.db
bad 2 "--kind 'x'" log --kind x out.db
bad 2 "--min-size 'x'" log --min-size x out.db
bad 1 'nowhere.db' log nowhere.db

echo 'a running program'
rm out.db
mkfifo orders
"$MEMPROF" run -q -o out.db "$PROGRAMS/ledger_steps" <orders >steps.out 2>run.err &
run=$!
exec 9>orders
# wait_for WHAT COMMAND...: until it succeeds
wait_for() {
    what=$1
    shift
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.1
    done
    cat run.err log.err
    fail "$what"
}
: >log.err
is_there() { [ "$(sqlite3 -readonly out.db 'SELECT count(*) FROM process' 2>is_there.err)" = 1 ]; }
wait_for 'it records' is_there
"$MEMPROF" log -f --json out.db >followed.json 2>log.err 9>&- &
log=$!
grown() { [ "$(grep -c '"op": "alloc".*"size_bytes": 50000,.*"function": "grow"' followed.json)" = "$1" ]; }
freed() { [ "$(grep -c '"op": "free".*"size_bytes": 50000,.*"function": "grow"' followed.json)" = "$1" ]; }
printf 'g\n' >&9
wait_for 'ten blocks' grown 10
printf 'g\nf\n' >&9
wait_for 'twenty blocks' grown 20
wait_for 'ten are freed' freed 10
printf 'g\n' >&9
exec 9>&-
wait $run || fail 'status of the program'
wait $log || { cat log.err; fail "status of log -f: $?"; }
[ ! -s log.err ] || { cat log.err; fail 'messages of log -f'; }
v_event out.db >expected
python3 columns.py <followed.json >got
cmp -s expected got || { diff expected got | head -10; fail 'what was followed differs'; }
equal 'blocks of grow()' 30 "$(grep -c '"op": "alloc".*"function": "grow"' followed.json)"

echo 'a fast one, from its beginning'
rm -f fast.db
"$MEMPROF" run -q -o fast.db "$PROGRAMS/many_stacks" 20000 read </dev/null >run.out 2>run.err &
run=$!
is_there() { [ -s fast.db ] && sqlite3 -readonly fast.db 'SELECT count(*) FROM meta' >is_there.out 2>&1; }
wait_for 'it records' is_there
"$MEMPROF" log -f --json fast.db >followed.json 2>log.err || { cat log.err; fail "status of log -f: $?"; }
wait $run || fail 'status of the program'
v_event fast.db >expected
python3 columns.py <followed.json >got
cmp -s expected got || { diff expected got | head -10; fail 'what was followed differs'; }
equal 'its events' "$(sqlite3 -readonly fast.db "SELECT value FROM meta WHERE key = 'event_count'")" "$(wc -l <got)"
