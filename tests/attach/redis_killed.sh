# memprof and its helper, killed within the first 300 ms of attaching to a redis under load, ROUNDS times: each time the
# next one attaches, is let go, and redis answers.
need python3 redis-server redis-benchmark redis-cli
. "$ROOT/tests/e2e/attach.inc"
port=17773
redis-server --port $port --save '' --appendonly no >redis.out &
target=$!
until_true "redis answers" eval 'redis-cli -p $port ping 2>/dev/null | grep -q PONG'
i=0
while [ $i -lt "${ROUNDS:-20}" ]; do
    i=$((i + 1))
    redis-benchmark -p $port -q -n 30000 -t set,get -c 10 >bench.out &
    load=$!
    "$MEMPROF" attach "$target" -q -o killed.db 2>>killed.err &
    one=$!
    python3 -c 'import random, time; time.sleep(random.random() * 0.3)'
    kill -9 $(cat /proc/$one/task/$one/children 2>/dev/null) $one 2>/dev/null || :
    wait $one 2>/dev/null || :
    attach_to "$target"
    "$MEMPROF" detach "$target" || fail "round $i: detach failed"
    wait $collector || fail "round $i: attach ended with $?"
    equal "round $i, redis" PONG "$(timeout 20 redis-cli -p $port ping)"
    wait $load || fail "round $i: redis-benchmark ended with $?"
done
redis-cli -p $port shutdown nosave || :
wait "$target" || fail "redis ended with $?"
