"""Large blocks that Python frees in functions of their own."""
kept = {}


def make(n):
    kept[n] = bytearray(100000 + n)


def drop(n):
    del kept[n]


for i in range(20):
    make(i)
for i in range(20):
    drop(i)
