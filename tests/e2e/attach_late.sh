# memprof attach where a thread is slow to stop, and holds a lock once it has: what was asked of it must not keep the
# call in another thread from its end.
need python3 readelf
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || [ "$(id -u)" = 0 ] ||
    skip "this user may not trace"
. "$ROOT/tests/e2e/attach.inc"

start_target "$PROGRAMS/attach_late"
slots slots.before >/dev/null
for i in 1 2 3; do
    ask 1500 >/dev/null # "holds"
    attach_to "$target"
    until_true "it has gone on" grep -q held out
    "$MEMPROF" detach "$target" || fail "detach failed"
    wait $collector || { cat attach.err; fail "attach ended with $?"; }
    equal "slots" 0 "$(slots slots.after)"
    cmp slots.before slots.after || fail "slots differ from before"
done
end_target good
