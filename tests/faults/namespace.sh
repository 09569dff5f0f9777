# A program in a pid namespace of its own, where the collector has no pid: a collector that stands still for a second
# loses nothing, one that is killed does not hold the program up.
# alone: the program must fill its ring while the collector stands still, which is 1.2 s
need unshare pgrep
unshare --pid --fork true 2>/dev/null || skip "no pid namespaces here"
"$MEMPROF" run -o out.db -- unshare --pid --fork sh \
    -c ': >ready; until [ -e go ]; do sleep 0.05; done; exec "$0" 1 400000 1' "$PROGRAMS/stress" >run.out 2>run.err &
runner=$!
for i in $(seq 100); do
    [ ! -e ready ] || break
    sleep 0.1
done
kill -STOP $runner
: >go
sleep 1.2
program=$(pgrep -f "^$PROGRAMS/stress 1 400000 1") || fail "the program does not run"
slept=$(awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }' "/proc/$program"/task/*/status)
kill -CONT $runner
code=0
wait $runner || code=$?
equal "the program's status" 0 $code
sound
equal "work" "$(cut -d' ' -f1,3 run.out)" \
    "$(sql "SELECT sum(alloc_count) || ' ' || sum(alloc_bytes) FROM v_line
    WHERE kind = 'heap' AND function LIKE 'work%'")"
waited_ns=$(value "SELECT sum(value) FROM counter WHERE name = 'wait_ns'")
at_least "ns that it waited" 900000000 "$waited_ns"
# it looks at most each millisecond, but for the first few times; before that it was a shell that waited, too
at_least "looks at the ring" 10 "$slept"
at_least "looks that it left out" 0 $((waited_ns / 1000000 + 1000 - slept))

"$MEMPROF" run -o killed.db -- unshare --pid --fork sh -c '"$0" 3 7 500; echo status $? >status' \
    "$PROGRAMS/busy" >out 2>err &
runner=$!
sleep 1
kill -KILL $runner
wait $runner 2>/dev/null || true
for i in $(seq 100); do
    [ ! -s status ] || break
    sleep 0.1
done
equal "the program's status, its collector killed" "status 7" "$(cat status)"
equal "its last line" done "$(tail -n 1 out)"
