# A signal handler interrupts realloc and calls exit, longjmp, fork or _Fork there: no deadlock, and recording goes on,
# in the child too.
calls() { by_function counted | cut -d'|' -f1; }
jumped=0
for i in 1 2 3; do
    record timeout 20 "$PROGRAMS/interrupt" exit
    equal "exit: status" 3 $status
    equal "exit: state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
    record timeout 20 "$PROGRAMS/interrupt" jump
    # who jumps out of glibc's realloc may leave its heap corrupt: 2 of 200 runs without memprof end so
    [ $status != 134 ] || ! grep -q 'corrupted double-linked list' run.err || continue
    jumped=$((jumped + 1))
    equal "longjmp: status" 0 $status
    equal "longjmp: calls after it" 1000 "$(calls)"
    balance
done
at_least "longjmp: runs" 1 $jumped
# a child of a signal that came while a record was being stored is not recorded: that cannot come every time
for how in fork _Fork; do
    both=0
    for i in 1 2 3 4 5; do
        record timeout 20 "$PROGRAMS/interrupt" $how
        equal "$how: status" 0 $status
        balance
        at_least "$how: calls" 1000 "$(calls)"
        [ "$(calls)" != 2000 ] || both=$((both + 1))
    done
    at_least "$how: parent and child recorded" 1 $both
done
RUN_OPTIONS=--no-follow
for how in fork _Fork; do
    record "$PROGRAMS/interrupt" $how
    equal "$how, not followed: status" 0 $status
    equal "$how, not followed: calls" 1000 "$(calls)"
done
RUN_OPTIONS=
# The signal comes while the library announces the program, which it does with its table held: the first allocation asks
# for the path.
need strace
record timeout 20 strace -qq -o trace -e trace=readlinkat -e inject=readlinkat:signal=SIGWINCH "$PROGRAMS/interrupt" \
    first
[ $status != 8 ] || skip "strace does not send signals here"
equal "first: status" 0 $status
equal "first: calls after it" 1000 "$(calls)"
