# Allocates in every way in which Python code can run, at places of its own, and writes what traceback.extract_stack()
# says at each: FILE gets a JSON list of [size, count, [[name, file, line], ...]], outermost first. Each stack allocates
# blocks of a size that no other uses, with malloc itself, so that a block's size says which stack made it.
import asyncio, ctypes, functools, json, sys, threading, traceback, types

libc = ctypes.CDLL(None)
malloc, free = libc.malloc, libc.free
malloc.restype, malloc.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

out, rounds = sys.argv[1], int(sys.argv[2])
sizes, counts, lock = {}, {}, threading.Lock()
code_addresses, function_versions = [], []


def here(count=rounds):
    with lock:
        stack = tuple((f.name, f.filename, f.lineno) for f in traceback.extract_stack())
        size = sizes.setdefault(stack, (1 << 20) + 1 + len(sizes))
        counts[stack] = counts.get(stack, 0) + count
    for _ in range(count):
        free(malloc(size))


def recursion(depth):
    here()
    if depth:
        recursion(depth - 1)


def even(depth):
    return here() or (odd(depth - 1) if depth else None)


def odd(depth):
    return here() or (even(depth - 1) if depth else None)


def generator(n):
    for _ in range(n):
        here()
        yield 1


def delegating(n):
    here()
    yield from generator(n)
    here()


def decorated(f):
    @functools.wraps(f)
    def wrapper(*args):
        here()
        return f(*args)
    return wrapper


class Thing:
    def __init__(self):
        here()

    def __call__(self):
        here()
        return self

    def __enter__(self):
        here()
        return self

    def __exit__(self, *error):
        here()

    @property
    def value(self):
        here()
        return 1

    @staticmethod
    def static():
        here()

    @classmethod
    def of_class(cls):
        here()

    @decorated
    def method(self):
        here()

    def __lt__(self, other):
        here()
        return True

    def __iter__(self):
        here()
        yield 1

    def __getattr__(self, name):
        here()
        return 0

    def __del__(self):
        here()


class Meta(type):
    def __new__(cls, name, bases, space):
        here()
        return super().__new__(cls, name, bases, space)


def objects():
    thing = Thing()
    thing()
    with thing as same:
        same.value
    Thing.static()
    Thing.of_class()
    thing.method()
    sorted([thing, thing])
    list(thing)
    thing.missing

    class Inner(metaclass=Meta):
        here()
    del thing, same


def comprehensions():
    [here() for _ in range(2)]
    {here() for _ in range(2)}
    {k: here() for k in range(2)}
    list(here() for _ in range(2))
    [[here() for _ in range(1)] for _ in range(2)]
    list(map(lambda x: here(), range(2)))
    max([1, 2], key=lambda x: here() or x)


async def coroutine(n):
    here()
    await asyncio.sleep(0)
    here()
    if n:
        await coroutine(n - 1)


async def agenerator():
    for _ in range(2):
        here()
        yield 1


async def asynchronous():
    await asyncio.gather(coroutine(2), coroutine(1))
    async for _ in agenerator():
        here()
    [here() async for _ in agenerator()]
    async with AsyncThing():
        here()


class AsyncThing:
    async def __aenter__(self):
        here()

    async def __aexit__(self, *error):
        here()


def exceptions():
    try:
        try:
            raise KeyError
        except KeyError:
            here()
            raise ValueError
        finally:
            here()
    except ValueError:
        here()


def executed():
    # code objects that die and whose memory is used again for others, alike in all but what they hold
    for i in range(200):
        space = {"here": here}
        text = "\n" * (i % 7) + "def f():\n" + "    pass\n" * (i % 3) + "    here(3)\nf()\n"
        exec(compile(text, f"<cell {i % 90:02}>", "exec"), space)
        code_addresses.append(id(space["f"].__code__))
        del space, text
    exec("here()\n\nhere()")
    eval("[here() for _ in range(2)]")


TEMPLATE = (lambda tell: tell and here(3)).__code__


def alike():
    # many at once that differ in their address and their line alone
    for f in [types.FunctionType(TEMPLATE.replace(co_firstlineno=20000 + 16 * i), globals()) for i in range(300)]:
        f(True)


def versions():
    # 3.11 gives functions a number when it specializes a call of them. Other code at the address of the last, in the
    # same function, in another one at its address, in another one elsewhere; nothing on the way takes memory of malloc
    function, template = types.FunctionType, TEMPLATE
    kept = function(template, globals())
    for i in range(300):
        if i % 3 == 0:
            kept.__code__ = template
            kept.__code__ = template.replace(co_firstlineno=9000 + i)
        elif i % 3 == 1:
            kept = None
            kept = function(template.replace(co_firstlineno=9000 + i), globals())
        else:
            other = function(template, globals())
            kept = None
            other = None
            kept = function(template.replace(co_firstlineno=9000 + i), globals())
        for k in range(40):
            kept(k > 38)
        if sys.version_info[:2] == (3, 11):
            function_versions.append(ctypes.c_uint32.from_address(id(kept) + 128).value)


def multiline():
    dict(
        a=here(),
        b=[
            here(),
            None,
        ],
    )
    return (
        here()
        or
        here()
    )


def run_all():
    recursion(30)
    even(9)
    for _ in generator(2):
        pass
    list(delegating(2))
    objects()
    comprehensions()
    exceptions()
    executed()
    versions()
    alike()
    multiline()
    asyncio.run(asynchronous())


exec("\n" * 400 + "def far():\n    here()\n")  # a jump in the line table larger than a byte

run_all()
far()
threads = [threading.Thread(target=run_all, name=f"t{i}") for i in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
here()
if function_versions:
    print("functions with a version:", sum(v != 0 for v in function_versions))
print("code addresses reused:", len(code_addresses) - len(set(code_addresses)))
with open(out, "w") as file:
    json.dump([[sizes[s], counts[s], s] for s in sizes], file)
