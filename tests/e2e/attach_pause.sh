# A process that memprof attached to before, paused in its second recording: what is born in the pause costs neither a
# stack nor a record, as in its first.
need python3 readelf
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || [ "$(id -u)" = 0 ] ||
    skip "this user may not trace"
. "$ROOT/tests/e2e/attach.inc"

has_more() { [ "$(value "SELECT value FROM meta WHERE key = 'event_count'")" -gt "$before" ]; }

start_target "$PROGRAMS/attach_life"
for time in 1 2; do
    attach_to "$target"
    until_true "something is recorded" has_events
    cp "$PROGRAMS/lib_attach_late.so" late$time.so
    "$MEMPROF" pause "$target" || fail "pause failed"
    # its other threads begin and end all the time, and notice
    equal "the library" "loaded 104950" "$(ask "load $PWD/late$time.so")"
    "$MEMPROF" resume "$target" || fail "resume failed"
    before=$(value "SELECT value FROM meta WHERE key = 'event_count'")
    until_true "it is recorded again" has_more
    "$MEMPROF" detach "$target" || fail "detach failed"
    wait $collector || fail "attach ended with $?"
    equal "recording $time: stacks with the library's code" 0 \
        "$(value "SELECT count(*) FROM module WHERE path LIKE '%/late$time.so'")"
done
end_target good
