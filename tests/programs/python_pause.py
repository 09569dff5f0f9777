"""Blocks before, in and after a pause, and a function that is told of allocations that fail."""
import sys
import threading

import memprof

SIZES = 2000003, 3000003, 5000003
told = []


def take(size):
    return bytearray(size)


def fail(size):
    try:
        bytearray(size)
    except MemoryError:
        return True
    return False


before = take(SIZES[0])
if not memprof.pause():
    sys.exit('not recorded')
inside = take(SIZES[1])
del before
memprof.resume()
after = take(SIZES[2])

memprof.on_oom(lambda device, size: told.append((device, size, threading.current_thread() is threading.main_thread())))
failed = fail(1 << 60)
thread = threading.Thread(target=fail, args=(1 << 61,))
thread.start()
thread.join()
for _ in range(100000):
    if len(told) == 2:
        break
print(failed, [(device, size >> 60, size & 0xff, is_main) for device, size, is_main in told], told[0][1])
memprof.on_oom(None)
fail(1 << 60)
print(len(told))
