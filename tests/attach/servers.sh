# Ten attaches in a row to real programs under load: what they answer is the same, and their slots are as before.
need python3 readelf redis-server redis-benchmark redis-cli nginx curl
. "$ROOT/tests/e2e/attach.inc"

# ten NAME: of $target, whose slots are bound
ten() {
    slots slots.before >/dev/null
    for i in 1 2 3 4 5 6 7 8 9 10; do
        attach_to "$target"
        sleep 0.5
        "$MEMPROF" detach "$target" || fail "$1: detach failed"
        wait $collector || fail "$1: attach ended with $?"
        equal "$1, state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
        equal "$1, unmatched" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'unmatched_free'")"
        sql "SELECT alloc_count || ' blocks' FROM v_total WHERE device = 'host' AND kind = 'all'"
    done
    equal "$1, slots" 0 "$(slots slots.after)"
    cmp slots.before slots.after || fail "$1: slots differ from before"
}

# redis: each key is set to what it was asked to be
LD_BIND_NOW=1 redis-server --port 17771 --save '' --appendonly no >redis.out &
target=$!
until_true "redis answers" eval 'redis-cli -p 17771 ping 2>/dev/null | grep -q PONG'
redis-benchmark -p 17771 -q -n 400000 -t set,get,lpush,lrange_100 -c 20 >bench.out &
load=$!
ten redis
(i=0 && while [ $i -lt 1000 ]; do i=$((i + 1)) && echo "SET k$i v$i"; done) | redis-cli -p 17771 >/dev/null
(i=0 && while [ $i -lt 1000 ]; do i=$((i + 1)) && echo "GET k$i"; done) | redis-cli -p 17771 >got
i=0 && while [ $i -lt 1000 ]; do i=$((i + 1)) && echo "v$i"; done >wanted
cmp wanted got || fail "redis lost something"
wait $load || fail "redis-benchmark ended with $?"
redis-cli -p 17771 shutdown nosave || :
wait "$target" || fail "redis ended with $?"

# nginx's worker, packing one file again and again
head -c 20000 /dev/urandom | od -An -x >index.html
cat >nginx.conf <<CONF
daemon off; worker_processes 1; pid $PWD/pid; error_log $PWD/error.log; user $(id -un);
events { worker_connections 64; }
http { access_log off; gzip on; gzip_min_length 10; client_body_temp_path $PWD/1; proxy_temp_path $PWD/2;
    fastcgi_temp_path $PWD/3; uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5;
    server { listen 127.0.0.1:17772; root $PWD; } }
CONF
LD_BIND_NOW=1 nginx -p "$PWD" -c "$PWD/nginx.conf" 2>nginx.err &
nginx=$!
until_true "nginx answers" curl -sf -o /dev/null http://127.0.0.1:17772/index.html
target=$(tr -d ' ' </proc/$nginx/task/$nginx/children)
(while [ ! -e enough ]; do curl -s --compressed http://127.0.0.1:17772/index.html | cksum; done | sort -u >sums) &
load=$!
ten nginx
: >enough
wait $load
equal "different answers of nginx" "$(cksum <index.html)" "$(cat sums)"
kill $nginx
wait $nginx || fail "nginx ended with $?"

# python3
cat >work.py <<'PY'
import hashlib, threading
out = [None] * 4
def work(n):
    h, held = hashlib.sha256(), {}
    for i in range(400000):
        held[i % 997] = str(i * n) * 200
        if i % 7 == 0:
            h.update(held[i % 997].encode())
    out[n] = h.hexdigest()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("ready", out)
input()
print("good")
PY
python3 work.py </dev/null >wanted 2>/dev/null || :
rm -f in
mkfifo in
LD_BIND_NOW=1 python3 -u work.py <in >got &
target=$!
exec 9>in
ten python3
until_true "python is done" grep -q ready got
grep ready got | cmp - wanted || fail "python computed something else"
echo >&9
wait "$target" || fail "python ended with $?"
