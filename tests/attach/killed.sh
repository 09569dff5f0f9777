# memprof and its helper, killed at any moment of attaching and detaching, forty times: the program goes on with what it
# does, and afterwards it can be put in order, attached to and let go.
need python3 readelf
. "$ROOT/tests/e2e/attach.inc"
start_target "$PROGRAMS/attach" 8 busy
i=0
while [ $i -lt "${ROUNDS:-40}" ]; do
    i=$((i + 1))
    "$MEMPROF" attach "$target" -q -o killed.db 2>>killed.err &
    one=$!
    # within the first 60 ms, in which all of it happens
    python3 -c 'import random, time; time.sleep(random.random() * 0.06)'
    kill -9 $(cat /proc/$one/task/$one/children 2>/dev/null) $one 2>/dev/null || :
    wait $one 2>/dev/null || :
    kill -0 "$target" || fail "the program has ended, round $i"
done
sort killed.err | uniq -c
# a thread that was left in the middle of a call goes on by itself after two seconds
tries=0
until "$MEMPROF" detach "$target" && [ "$(slots slots.now)" = 0 ]; do
    tries=$((tries + 1))
    [ $tries -lt 20 ] || fail "not to be put in order"
    sleep 1
done
attach_to "$target"
until_true "events" eval '[ "$(value "SELECT value > 10000 FROM meta WHERE key = '\''event_count'\''")" = 1 ]'
"$MEMPROF" detach "$target"
wait $collector || fail "attach ended with $?"
equal "state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
equal "slots" 0 "$(slots slots.after)"
end_target good
