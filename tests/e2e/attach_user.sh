# memprof attach of root to another user's process, which may not open the recording's memory by its path, twice; and
# that user to root's.
need python3 readelf setpriv
[ "$(id -u)" = 0 ] || skip "not root"
as_nobody() { exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"; }
(as_nobody "$MEMPROF" --version) >/dev/null 2>&1 || skip "nobody may not run what was built here"
. "$ROOT/tests/e2e/attach.inc"

start_target setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$PROGRAMS/attach" 4
ask "go 100" >/dev/null
slots slots.before
ls /proc/"$target"/fd >fds.before
for i in 1 2; do
    attach_to "$target"
    at_least "slots that lead to the hooks" 6 "$(slots slots.on)"
    equal "who is recorded" 0 "$("$MEMPROF" top --once "$target" >top.txt && echo $?)"
    ledger=$(ask "go 100")
    "$MEMPROF" detach "$target" || fail "detach failed"
    wait $collector || { cat attach.err; fail "attach ended with $?"; }
    equal "ledger, time $i" "$ledger" \
        "$(sql "SELECT alloc_count || ' ' || alloc_bytes || ' ' || (free_count + (SELECT coalesce(sum(value), 0)
        FROM counter WHERE name = 'inherited_free')) FROM v_total WHERE device = 'host' AND kind = 'heap'")"
    equal "lost" 0 "$(value "SELECT sum(value) FROM counter WHERE name IN ('lost_event', 'unmatched_free')")"
    slots slots.after >/dev/null
    cmp slots.before slots.after || fail "slots differ from before"
    ls /proc/"$target"/fd | diff fds.before - || fail "descriptors were left open in it"
done

sleep 60 &
status=0
(as_nobody "$MEMPROF" attach $! -o /dev/null) >other.out 2>other.err || status=$?
kill $!
equal "status of another user's attach" 1 $status
contains "another user's attach" other.err "a process of another user; attach as that user, or as root"
equal "its lines" 1 "$(wc -l <other.err | tr -d ' ')"
end_target good
