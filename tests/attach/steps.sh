# memprof's helper, killed at each step of its tracing that matters: a program whose threads wait goes on, and can be
# attached to again.
need python3 readelf strace
. "$ROOT/tests/e2e/attach.inc"
start_target "$PROGRAMS/attach" 4
ask "go 100" >/dev/null
strace -f -e trace=ptrace -o steps "$MEMPROF" attach "$target" -q -o step.db 2>step.err &
one=$!
until_true "it is attached" "$MEMPROF" mark "$target" begun 2>/dev/null
"$MEMPROF" detach "$target" || fail "detach failed"
wait $one || fail "attach ended with $?"
end_target good
first=$(grep -n SETREGS steps | head -n 1 | cut -d: -f1)
at_least "steps before the thread runs our code" 10 "$first"
for step in 1 2 3 5 $((first - 1)) $first $((first + 1)) $((first + 3)) $((first + 5)); do
    # each in a program of its own, as what is left behind is not used again
    start_target "$PROGRAMS/attach" 4
    ask "go 100" >/dev/null
    strace -f -o /dev/null -e trace=ptrace -e inject=ptrace:signal=KILL:when=$step \
        timeout 60 "$MEMPROF" attach "$target" -q -o step.db 2>step.err && fail "step $step: it was attached"
    contains "step $step" step.err 'helper was killed'
    ledger=$(ask "go 50")
    equal "step $step, blocks" 200 "${ledger%% *}"
    attach_to "$target"
    ledger=$(ask "go 100")
    "$MEMPROF" detach "$target" || fail "detach failed"
    wait $collector || fail "attach ended with $?"
    equal "ledger" "${ledger% *}" "$(sql "SELECT alloc_count || ' ' || alloc_bytes FROM v_total
        WHERE device = 'host' AND kind = 'heap'")"
    equal "slots" 0 "$(slots slots.after)"
    end_target good
done
