# Small objects at one line, a map of the program's own that looks like an arena, and what pymalloc itself says of its arenas
# at the end (on stderr).
import mmap, sys

keep = []


def grow():
    for i in range(200000):
        keep.append((i, i))


def own_map():
    return mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


maps = [own_map() for _ in range(3)]
grow()
grown = len(keep)
del keep[:]
print(grown, len(maps))
sys._debugmallocstats()
