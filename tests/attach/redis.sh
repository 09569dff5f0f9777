# Ten attaches in a row to a redis under load: each key is set to what it was asked to be, and its slots are as before.
need python3 readelf redis-server redis-benchmark redis-cli
. "$ROOT/tests/e2e/attach.inc"
LD_BIND_NOW=1 redis-server --port 17771 --save '' --appendonly no >redis.out &
target=$!
until_true "redis answers" eval 'redis-cli -p 17771 ping 2>/dev/null | grep -q PONG'
redis-benchmark -p 17771 -q -l -n 20000 -t set,get,lpush,lrange_100 -c 20 >bench.out & # until it is ended
load=$!
ten redis
(i=0 && while [ $i -lt 1000 ]; do i=$((i + 1)) && echo "SET k$i v$i"; done) | redis-cli -p 17771 >/dev/null
(i=0 && while [ $i -lt 1000 ]; do i=$((i + 1)) && echo "GET k$i"; done) | redis-cli -p 17771 >got
i=0 && while [ $i -lt 1000 ]; do i=$((i + 1)) && echo "v$i"; done >wanted
cmp wanted got || fail "redis lost something"
kill $load || fail "redis-benchmark ended by itself: $(tail -c 300 bench.out)"
wait $load || :
redis-cli -p 17771 shutdown nosave || :
wait "$target" || fail "redis ended with $?"
