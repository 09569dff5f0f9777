# Threads that begin and end all the time, a handler of a timer, recursion deeper than a stack's frames, a forked child,
# and threads that still allocate while the interpreter ends.
import os, signal, sys, threading

ticks = 0


def handler(*unused):
    global ticks
    ticks += 1
    bytes(100000)


def work():
    for i in range(30):
        [bytes(600 + i) for _ in range(20)]


def deep(n):
    bytes(9000)
    return deep(n - 1) + 1 if n else 0


def forever():
    while True:
        bytes(5000)


signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for _ in range(30):
    threads = [threading.Thread(target=work) for _ in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
signal.setitimer(signal.ITIMER_REAL, 0)
sys.setrecursionlimit(20000)
threading.stack_size(64 << 20)
depth = []
t = threading.Thread(target=lambda: depth.append(deep(3000)))
t.start()
t.join()
child = os.fork()
if child == 0:
    work()
    os._exit(deep(7))
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(depth, status, ticks > 0, flush=True)
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
bytes(200000)
