# Holds 1,500 objects in a cache without a limit to its end, which is python_leaks.py HOW: return, exit, raise, _exit,
# fork, process, daemon. Prints how many bytes and blocks Repo.__init__ and child() hold then, as the interpreter says.
import functools, gc, json, os, sys, threading, time


class Repo:
    def __init__(self, name):
        self.name = name
        self.blob = bytearray(20_000)

    @functools.lru_cache(maxsize=None)
    def config(self, key):
        return {"key": key, "text": key * 50}

    def render(self, key):
        return json.dumps(self.config(key))


def handle(i):
    return len(Repo("repo%d" % i).render("k%d" % (i % 10)))


def main():
    total = 0
    for i in range(1500):
        total += handle(i)
        scratch = [x / 7 for x in range(300)]
    return total


kept = [None] * 100


def child():
    for i in range(100):
        kept[i] = bytearray(30_000)


def say(name, blobs):
    print(name, sum(sys.getsizeof(b) - sys.getsizeof(bytearray()) for b in blobs), len(blobs), flush=True)


main()
how = sys.argv[1]
gone = bytearray(50_000)
del gone  # the last that the program itself frees
if how == "fork":
    if os.fork() == 0:
        child()
        say("child", kept)
        sys.exit(0)
    os.wait()
elif how == "process":
    import multiprocessing

    p = multiprocessing.get_context("spawn" if sys.argv[2:] else "fork").Process(target=child)
    p.start()
    p.join()
elif how == "daemon":
    threading.Thread(target=lambda: [time.sleep(0.001) or bytearray(1000) for _ in range(100_000)], daemon=True).start()
say("parent", [o.blob for o in gc.get_objects() if isinstance(o, Repo)])
if how == "exit":
    sys.exit(3)
elif how == "raise":
    raise ValueError("as asked")
elif how == "_exit":
    os._exit(4)
