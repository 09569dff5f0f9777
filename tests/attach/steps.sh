# memprof's helper, killed at each step of its tracing that matters: a program whose threads wait goes on, and can be
# attached to again.
need python3 readelf strace
. "$ROOT/tests/e2e/attach.inc"
# find_first: which call of ptrace lets the target's thread run our code; there are fewer before it where the library is
# in it already
find_first() {
    strace -f -e trace=ptrace -o steps "$MEMPROF" attach "$target" -q -o step.db 2>step.err &
    one=$!
    until_true "it is attached" "$MEMPROF" mark "$target" begun 2>/dev/null
    "$MEMPROF" detach "$target" || fail "detach failed"
    wait $one || fail "attach ended with $?"
    first=$(grep -n SETREGS steps | head -n 1 | cut -d: -f1)
}
start_target "$PROGRAMS/attach" 4
ask "go 100" >/dev/null
find_first
end_target good
at_least "steps before the thread runs our code" 10 "$first"
# left_behind: how many pieces of code of killed helpers lie in the program's memory
left_behind() {
    python3 - "$target" <<'END'
import sys
pid, found = sys.argv[1], 0
with open(f"/proc/{pid}/mem", "rb") as memory:
    for line in open(f"/proc/{pid}/maps"):
        place, rights = line.split()[:2]
        if "x" in rights and "[v" not in line:
            start, end = (int(x, 16) for x in place.split("-"))
            memory.seek(start)
            found += memory.read(end - start).count(b"memprof's attach")
print(found)
END
}
# attach_again STEP: it goes on with what it does, and is recorded from then on
attach_again() {
    ledger=$(ask "go 50")
    equal "$1, blocks" 200 "${ledger%% *}"
    attach_to "$target"
    ledger=$(ask "go 100")
    "$MEMPROF" detach "$target" || fail "detach failed"
    wait $collector || fail "attach ended with $?"
    equal "$1, ledger" "${ledger% *}" "$(sql "SELECT alloc_count || ' ' || alloc_bytes FROM v_total
        WHERE device = 'host' AND kind = 'heap'")"
    equal "$1, slots" 0 "$(slots slots.after)"
}
# with INJECTION: strace does that to the helper's calls of ptrace, and memprof cannot attach
with() {
    strace -f -o /dev/null -e trace=ptrace -e "inject=ptrace:$1" \
        timeout 60 "$MEMPROF" attach "$target" -q -o step.db 2>step.err && fail "$1: it was attached"
    return 0
}

# all of them in one program: a thread's code is written where that of one that was killed is left
start_target "$PROGRAMS/attach" 4
ask "go 100" >/dev/null
for step in 1 2 3 5 $((first - 1)) $first $((first + 1)) $((first + 3)) $first $((first + 1)) $first; do
    with signal=KILL:when=$step
    contains "step $step" step.err 'helper was killed'
    attach_again "step $step"
done
at_most "pieces of code, of the one or two threads that were taken" 2 "$(left_behind)"

# held up for three seconds where the thread's call is over in a few milliseconds: it does not wait so long
find_first
begin=$(date +%s)
with delay_exit=3000000:when=$((first + 1))
at_most "seconds, of which memprof waits ten where a call does not return" 9 $(($(date +%s) - begin))
contains "held up" step.err 'got no processor, for 2 s, and it went on; try again'
attach_again "held up"
end_target good
