# Driven by tests/e2e/python_focus.sh: what the module says of a window while the program runs, for what is said of it
# afterwards. Over several chunks of events, with threads, resized blocks, and blocks from before that go in the window.
import json
import sys
import threading

import memprof

kept = []


def hold(count):
    for i in range(count):
        kept.append(bytes(1000 + i % 7))


def drop(count):
    for i in range(count):
        bytes(2000)


def grow(size):
    buffer = bytearray(size)
    for i in range(20):
        buffer += bytes(size)
    return len(buffer)


def work(depth):
    if depth:
        return work(depth - 1)
    hold(20000)
    drop(60000)
    del kept[:700]
    grow(50000)


def beside():
    for i in range(5000):
        bytearray(3000)


hold(1000)
with memprof.range('whole'):
    threads = [threading.Thread(target=beside) for _ in range(2)]
    for thread in threads:
        thread.start()
    work(3)
    for thread in threads:
        thread.join()
drop(1000)
for i in range(5):
    with memprof.range('part'):
        hold(200 + i)
        drop(100)
    del kept[:300]
    drop(50)
functions = [hold, drop, grow, work, beside]
tables = {'each': memprof.lines(functions, during='whole'),
          'file': memprof.lines(file=__file__, during='whole', device='host'),
          'parts': memprof.lines([hold, drop], during='part#all'),
          'name': memprof.lines('hold', during='whole'),
          'before': memprof.lines(hold, to='mark:whole')}
json.dump({name: table.rows for name, table in tables.items()}, open(sys.argv[1], 'w'))
tables['all'] = memprof.lines(hold)
json.dump({name: table.data['is_focused'] for name, table in tables.items()}, open(sys.argv[2], 'w'))
