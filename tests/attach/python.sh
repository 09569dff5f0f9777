# Ten attaches in a row to python3 with four threads: it computes what it computes without.
need python3 readelf
. "$ROOT/tests/e2e/attach.inc"
cat >work.py <<'PY'
import hashlib, threading
out = [None] * 4
def work(n):
    h, held = hashlib.sha256(), {}
    for i in range(800000):
        held[i % 997] = str(i * n) * 200
        if i % 7 == 0:
            h.update(held[i % 997].encode())
    out[n] = h.hexdigest()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
print("begun")
for t in threads:
    t.start()
for t in threads:
    t.join()
print("ready", out)
input()
print("good")
PY
nice python3 work.py </dev/null >wanted 2>/dev/null || :
rm -f in
mkfifo in
LD_BIND_NOW=1 python3 -u work.py <in >got &
target=$!
exec 9>in
until_true "it works" grep -q begun got
ten python3
until_true "python is done" grep -q ready got
cmp wanted got || fail "python computed something else"
echo >&9
wait "$target" || fail "python ended with $?"
