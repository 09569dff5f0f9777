# Driven by tests/e2e/python_module.sh: the Python module against what the program knows itself.
import ctypes
import io
import json
import subprocess
import sys
import threading
import time

import memprof

assert memprof.is_recording()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
ledger = {}


def figures(device=None):
    for _ in range(600):
        answer = memprof.figures(device)
        if answer:
            return answer
        time.sleep(0.1)  # the collector got no processor for a second
    raise AssertionError('no answer')


# 1. Figures: what lies between two of them is known to the byte.
def difference(size):
    before = figures('host')
    block = libc.malloc(size)
    after = figures('host')
    libc.free(block)
    end = figures('host')
    return [after.allocated_bytes - before.allocated_bytes, end.allocated_bytes - after.allocated_bytes,
            after.thread_alloc_bytes - before.thread_alloc_bytes, end.thread_free_bytes - after.thread_free_bytes]


# What Python and ctypes allocate for a call themselves is what calls around nothing show; the least of several, because
# an arena of Python's may be taken in one of them.
def least(size):
    return min(difference(size) for _ in range(8))


difference(0)
for size in (1000, 70001, 5 << 20):
    ledger['malloc(%d)' % size] = [a - b for a, b in zip(least(size), least(0))]
    assert ledger['malloc(%d)' % size] == [size, -size, size, size], ledger

freed, held = memprof.freed('host'), memprof.allocated('host')
block = libc.malloc(3000000)
grown = memprof.allocated('host') - held
libc.free(block)
assert 3000000 <= grown < 3000000 + 100000, grown
assert memprof.freed('host') - freed >= 3000000
memprof.reset('later')
assert memprof.freed('host') < 3000000 and figures().epoch == 1
libc.free(libc.malloc(64 << 20))
assert memprof.peak('host') >= memprof.allocated('host') + (63 << 20)
assert memprof.figures('cuda:7') is None and memprof.allocated('cuda:7') == 0
assert [str(memprof.Bytes(n)) for n in (0, 1023, 4 << 20, (1 << 20) - 1)] == ['0 B', '1023 B', '4.00 MiB', '1.00 MiB']
assert '%s' % memprof.Bytes(1536) == '1.50 KiB' and memprof.Bytes(5) + 1 == 6

# 2. A thread's own figures are its own.
own = {}


def work(number):
    figures()
    before = figures()
    blocks = [libc.malloc(100000 * number) for _ in range(3)]
    after = figures()
    own[number] = after.thread_alloc_bytes - before.thread_alloc_bytes
    for block in blocks:
        libc.free(block)


threads = [threading.Thread(target=work, args=[number]) for number in (1, 2, 3, 4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for number, size in own.items():
    assert 300000 * number <= size < 300000 * number + 100000, own


# 3. Ranges, the function's lines, and the reports that say the same.
class Net:
    @memprof.profile
    def step(self, size):
        self.kept = bytearray(size)  # the line


@memprof.range('load')
def load():
    return bytearray(2000000)


net = Net()
net.step(3000000)
with memprof.range('epoch 3'):
    memprof.mark('inside')
    loaded = load()
table = memprof.lines('load', during='epoch 3')
assert [row['alloc_bytes'] for row in table if row['alloc_bytes']] == [2000001], table.rows
assert 'return bytearray(2000000)' in str(table) and '1.91M' in str(table), str(table)
html = table._repr_html_()
assert '>1.91 MiB</td>' in html and 'return bytearray(2000000)' in html and 'linear-gradient' in html, html
hostile = memprof.Table('', {'rows': [{'<b>': '<script>"&', 'none': None}]})._repr_html_()
hostile += memprof.Table('', {'lines': [{'function': '<script>', 'file': '<script>.py', 'device': '"', 'line': 1,
                                         'code': '<script>', 'alloc_bytes': 5}]})._repr_html_()
assert '&lt;script&gt;&quot;&amp;' in hostile and '<script' not in hostile and '>none<' not in hostile, hostile
step = Net.step.table()
assert [row['alloc_bytes'] for row in step if row['alloc_bytes']] == [3000001], step.rows
assert memprof.lines('load', columns=['alloc.bytes'], during='epoch 3').text.count('1.91M') == 1
table = memprof.lines('load', columns=['allocated_bytes.all.allocated', 'allocation.all.freed'], during='epoch 3')
assert table.columns == ['alloc_bytes', 'free_count'] and '1.91 MiB' in table._repr_html_(), table
report = memprof.report(by='line', during='epoch:later', top=5)
assert report.data['by'] == 'line' and len(report) == 5
ours = bytearray(700000)  # and a byte behind them
memprof.name(ours, 'ours', category='cache of ours')
categories = memprof.report(by='category', at='now')  # whose JSON is rows alone
assert [row['bytes'] for row in categories if row['category'] == 'cache of ours'] == [700001], categories.rows
assert 'cache of ours' in categories._repr_html_() and categories.data == categories.rows
assert len(memprof.report(transfers=True)) == 0
del ours
try:
    memprof.report(by='nonsense')
    raise AssertionError('no error')
except memprof.Error as error:
    assert 'nonsense' in str(error), error

# A table every second call, and no more of them than may be: of that call alone.
from memprof import _report


@memprof.profile_every(2, columns='alloc.bytes', device='host')
def often(size):
    return bytearray(size)


def shown(calls, least_seconds):
    _report.Every.LEAST_SECONDS, sys.stderr, before = least_seconds, io.StringIO(), sys.stderr
    for number in calls:
        often(100000 * number)
    text, sys.stderr = sys.stderr.getvalue(), before
    return text


text = shown(range(1, 8), 3600)
assert text.count('often, call') == 1 and 'often, call 2\n' in text and '195.31K' in text, text
assert 'left out' not in text and 'active' not in text, text
text = shown([8], 0)
assert 'often, call 8, 2 before it left out: at most two tables a second' in text and '781.25K' in text, text
try:
    memprof.profile(every=0)(shown)
    raise AssertionError('no error')
except ValueError:
    pass

# 4. Names: of the block, however the memory is shown.
buffer = bytearray(500000)
array = (ctypes.c_double * 50000)()
text = bytes(100000)
assert memprof.name(buffer, 'buffer', 'cache') == 1
assert memprof.name(array, 'array') == 1
assert memprof.name(memoryview(text)[5000:], 'text') == 1
expected = {'buffer': ['500000', 500000], 'array': ['50000', 400000], 'text': ['95000', 95000]}
if 'numpy' in sys.argv:
    import numpy
    rows = numpy.zeros((300, 400), dtype=numpy.float32)
    memprof.name(rows, 'rows')
    memprof.name(rows[::-1, ::2], 'back')
    expected.update(rows=['300,400', 480000], back=['300,200', 240000])
named = {row['name']: row for row in memprof.names(top=0)}
assert {key: [row['shape'], row['view_bytes']] for key, row in named.items()} == expected, named
assert named['buffer']['category'] == 'cache'
if 'numpy' in sys.argv:
    assert named['back']['shared_with'] == 'rows', named['back']
assert memprof.page('page.html') == 'page.html'

# 5. What is not a function of one span is said.
try:
    @memprof.range('never')
    def generator():
        yield 1
    raise AssertionError('no error')
except TypeError as error:
    assert 'generator' in str(error)
memprof.sync()
json.dump([row for row in memprof.lines('load', during='epoch 3')], open('rows.json', 'w'))


# 6. When the interpreter is half gone nothing can be imported: what needs no report works still.
class Late:
    def __del__(self):
        print('late', memprof.name(bytearray(100000), 'late'), memprof.allocated() > 0)


late = Late()
late.itself = late
