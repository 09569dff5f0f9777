#!/usr/bin/env python3
"""Writes a heap profile of pprof by hand: pprof_profile.py KIND OUT. Numbers are in tests/report/pprof_import.sh."""
import gzip
import sys


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


strings = {"": 0}


def text(t):
    return strings.setdefault(t, len(strings))


def value_type(kind, unit):
    return number(1, text(kind)) + number(2, text(unit))


def profile(types, samples, packed=True):
    out = b"".join(message(1, value_type(*t)) for t in types)
    for locations, values, labels in samples:
        if packed:
            s = message(1, b"".join(map(varint, locations))) + message(2, b"".join(map(varint, values)))
        else:
            s = b"".join(number(1, n) for n in locations) + b"".join(number(2, n) for n in values)
        s += b"".join(message(3, number(1, text(k)) + number(2, text(v))) for k, v in labels)
        out += message(2, s)
    out += message(3, number(1, 1) + number(2, 0x400000) + number(3, 0x500000) + number(5, text("/bin/a prog")) +
                   number(6, text("abcdef")))
    # 1: inner() inlined into outer(); 2: main(); 3: Python, without an address; 4: an address without a name
    lines = [[(1, 4), (2, 31)], [(3, 10)], [(4, 7)], []]
    for i, chain in enumerate(lines):
        at = 0x401000 + i * 16 if i != 2 else 0
        out += message(4, number(1, i + 1) + (number(2, 1) if at else b"") + number(3, at) +
                       b"".join(message(4, number(1, f) + number(2, n)) for f, n in chain))
    for i, (name, file) in enumerate([("inner", "a.c"), ("outer", "a.c"), ("main", "a.c"), ("step", "/w/t.py")]):
        out += message(5, number(1, i + 1) + number(2, text(name)) + number(4, text(file)))
    out += number(9, 1700000000 * 10**9) + number(10, 5 * 10**9)
    if types[0][0] == "objects":
        out += message(11, value_type("space", "bytes")) + number(12, 524288)
    return out + b"".join(message(6, s.encode()) for s in strings)


BOTH = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
PEAK = BOTH + [("peak_objects", "count"), ("peak_space", "bytes")]
kind, path = sys.argv[1:]
if kind == "all":
    data = profile(PEAK, [
        ([1, 2], [10, 1000, 4, 400, 8, 800], []),
        ([1, 2], [1, 50, 1, 50, 1, 50], []),
        ([3, 1, 2], [2, 600, 0, 0, 2, 600], [("device", "cuda:0"), ("kind", "sub")]),
        ([4], [1, 7, 1, 7, 0, 0], [("kind", "map")]),
    ])
elif kind == "live":
    data = profile([("objects", "count"), ("space", "bytes")], [([1, 2], [4, 400], [])], packed=False)
elif kind == "odd":
    data = profile(BOTH, [
        ([1, 99], [1, 10, 1, 10], []),
        ([2], [1, 10], []),
        ([2], [1, -5, 0, 0], []),
    ])
else:
    data = profile([("samples", "count"), ("cpu", "nanoseconds")], [([1, 2], [4, 400], [])])
with open(path, "wb") as f:
    f.write(data if kind == "live" else gzip.compress(data))
