# Driven by tests/e2e/reserved_growth.sh: a caching allocator on the simulated GPU that takes segments, hands out parts of
# them, and gives some back. Its ledger says for each range and line how far the segments grew that the line made it take;
# the module is asked while the program runs.
import collections
import ctypes
import json
import sys

import memprof

cuda = ctypes.CDLL('libcuda.so.1')
own = ctypes.CDLL(None)
own.memprof_hook_pool_create.restype = ctypes.c_uint64
POOL = own.memprof_hook_pool_create(b'cache')
segments, ledger, unused = {}, collections.defaultdict(lambda: collections.defaultdict(int)), []
window = 'before'
MIB = 1 << 20


def check(result):
    assert result == 0, result


def new_segment(size, line):
    address = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
    own.memprof_hook_pool_segment(ctypes.c_uint64(POOL), ctypes.c_void_p(address.value), ctypes.c_size_t(size))
    segments[address.value] = size, line
    return address.value


def move(size, line, sign):
    ledger[window][line] += sign * size
    ledger['all'][line] += sign * size


def take(size):
    """A block of its own segment, of an unused one if one is as large."""
    line = sys._getframe(1).f_lineno
    again = next((each for each in unused if segments[each][0] == size), None)
    if again:
        unused.remove(again)
    else:
        again = new_segment(size, line)
        move(size, line, 1)
    own.memprof_hook_pool_alloc(ctypes.c_uint64(POOL), ctypes.c_void_p(again), ctypes.c_size_t(size))
    return again


def give(address):
    own.memprof_hook_pool_free(ctypes.c_uint64(POOL), ctypes.c_void_p(address))
    unused.append(address)


def empty_cache():
    while unused:
        address = unused.pop()
        size, line = segments.pop(address)
        own.memprof_hook_pool_segment_end(ctypes.c_uint64(POOL), ctypes.c_void_p(address))
        check(cuda.cuMemFree_v2(ctypes.c_uint64(address)))
        move(size, line, -1)


def step(kept):
    first = take(2 * MIB)
    kept.append(take(3 * MIB))
    again = [take(size * MIB) for size in (5, 5, 7)]
    give(first)
    for each in again:
        give(each)


context, kept, rows = ctypes.c_void_p(), [], {}
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
step(kept)
for window in 'first', 'second', 'third':
    with memprof.range(window):
        if window == 'third':
            empty_cache()
            give(kept[0])
            empty_cache()
        else:
            step(kept)
for window in 'first', 'second', 'third':
    table = memprof.lines(step, columns=['reserved.growth', 'alloc.count'], during=window, device='cuda')
    assert table.columns == ['reserved_growth_bytes', 'alloc_count'], table.columns
    assert table.data['is_focused'] == 1, window
    rows[window] = {row['line']: row['reserved_growth_bytes'] for row in table}
json.dump(rows, open(sys.argv[1], 'w'))
json.dump(ledger, open(sys.argv[2], 'w'))
