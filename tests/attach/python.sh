# Ten attaches in a row to python3 with four threads, which compute the same again and again.
need python3 readelf
. "$ROOT/tests/e2e/attach.inc"
cat >work.py <<'PY'
import hashlib, threading
wrong, over = [], False
def once(n):
    h, held = hashlib.sha256(), {}
    for i in range(5000):
        held[i % 997] = str(i * n) * 200
        h.update(held[i % 997].encode())
    return h.hexdigest()
def work(n):
    first = once(n)
    while not over:
        if once(n) != first:
            wrong.append(n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
print("ready", flush=True)
for line in open(0):
    pass
over = True
for t in threads:
    t.join()
print("wrong" if wrong else "good")
PY
start_target python3 work.py
ten python3
end_target good
