# Driven by tests/e2e/notebook_magic.sh: a notebook that was never saved, run by the kernel that 'memprof kernel' wrote.
# With "torch" the functions are those of pytorch_memlab's README, on the CPU; a ledger says what each line took.
import json
import sys
import time

import nbformat
from nbclient import NotebookClient

PLAIN = r'''
kept = []
def func(count):
    kept.append(bytearray(count * 1000000))  # the line of func
    return count
#---
%%memprof -r
func(2)
own = bytearray(3000000)
#---
rows = [[row['line'], row['alloc_bytes'], row['code']] for row in _]
print(json.dumps({'cell': rows, 'html': _._repr_html_()}))
#---
table = get_ipython().run_line_magic('memprof', '-r -f func func(4)')
print(json.dumps({'line magic': [[row['line'], row['start_bytes'], row['alloc_bytes']] for row in table]}))
#---
%%memprof -f func -D -c allocated_bytes.all.allocated -T dumped.txt -q
if func(1):
    pass
#---
%memprof -f func func(1); %memprof -q func(2)
#---
%%memprof
lost = bytearray(700000)
raise KeyError('as it is')
#---
%%memprof
await nothing
#---
%memprof -D func(1)
#---
%%memprof --page -q
func(1)
#---
exec(compile('made = bytearray(5000000)  # in no file\n', '<made>', 'exec'))
import linecache
linecache.cache['<made>'] = (1, None, ['made = bytearray(5000000)  # in no file\n'], '<made>')
memprof.sync()
print(json.dumps({'open': get_ipython()._showtraceback.__func__.__name__, 'own': len(vars(get_ipython().compile))}))
'''

TORCH = r'''
import torch
ledger = []
def layers(*modules):
    ledger.append(sum(p.numel() * p.element_size() for m in modules for p in m.parameters()))
def inner():
    global kept
    kept = torch.nn.Linear(100, 100)
    layers(kept)
def outer():
    linear = torch.nn.Linear(100, 100)
    linear2 = torch.nn.Linear(100, 100)
    linear3 = torch.nn.Linear(100, 100)
    layers(linear); layers(linear2); layers(linear3)
    inner()
#---
outer()
ledger.clear()
#---
%%memprof -r -f outer -f inner
outer()
#---
rows = {row['function'] + ':' + str(row['line']): [row['alloc_bytes'], row['end_bytes'] - row['start_bytes']] for row in _}
print(json.dumps({'torch': rows, 'ledger': ledger}))
#---
def func(input_size):
    net1 = torch.nn.Linear(input_size, 1024)
#---
import os
before = os.times()
table = get_ipython().run_line_magic('memprof', '-r -f func func(2048)')
after = os.times()
print(json.dumps({'processor_s': after[2] + after[3] - before[2] - before[3]}))
table
'''


def run(cells, kernel):
    cells = ['%load_ext memprof\nimport json, memprof'] + cells.strip('\n').split('#---\n')
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.rstrip('\n')) for cell in cells])
    NotebookClient(notebook, timeout=300, kernel_name=kernel, allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def said(outputs):
    found = {}
    for output in outputs:
        for each in output:
            if each.output_type == 'stream' and each.name == 'stdout' and each.text.startswith('{'):
                found.update(json.loads(each.text))
    return found


def tables(output):
    return [each.data['text/html'] for each in output
            if each.output_type in ('display_data', 'execute_result') and 'text/html' in each.data]


def check_plain(outputs):
    found = said(outputs)
    assert not any(each.output_type == 'error' for each in outputs[0] + outputs[1]), outputs[:2]
    # rows of Python's own small blocks may stand beside: the lines' large blocks are to the byte
    assert [row for row in found['cell'] if row[1] > 100000] == [
        [1, 2000001, 'func(2)'], [2, 3000001, 'own = bytearray(3000000)']], found['cell']
    assert 'linear-gradient' in found['html'] and 'own = bytearray' in found['html'] and '2.86 MiB' in found['html']
    line, start, grown = next(row for row in found['line magic'] if row[2] > 1000000)
    assert [line, start, grown] == [3, 2000001, 4000001], found['line magic']
    dumped = open('dumped.txt').read()
    assert 'the line of func' in dumped and '976.56K' in dumped and 'at peak' not in dumped, dumped
    assert not outputs[5] and len(tables(outputs[6])) == 1, outputs[5:7]
    assert tables(outputs[7]) and [each.ename for each in outputs[7] if each.output_type == 'error'] == ['KeyError']
    assert '----> 2' in ''.join(outputs[7][-1].traceback), outputs[7][-1]
    assert 'memprof.range' in str(outputs[8]), outputs[8]
    assert '-c NAME' in str(outputs[9]), outputs[9]
    assert '</html>' in open('memprof-cell-11-1.html').read()
    assert found['open'] == '_showtraceback', found


def check_torch(outputs):
    found = said(outputs)
    rows, ledger = found['torch'], found['ledger']
    assert ledger == [40400] * 4, ledger
    # a tensor has some hundred bytes of its own beside its data, and data is aligned to 64
    for line, stays in (('outer:10', 0), ('outer:11', 0), ('outer:12', 0), ('outer:14', 0), ('inner:7', 0)):
        allocated, grown = rows[line]
        assert ledger[0] <= allocated < ledger[0] + 40000, (line, rows)
        assert abs(grown) < 20000, (line, rows)
    text = next(each for each in outputs[-1] if each.output_type == 'execute_result').data['text/plain']
    # what is looked at is the cell's events; all of PyTorch's sites and symbols would take several seconds
    assert found['processor_s'] < 1.5, found
    assert 'net1 = torch.nn.Linear' in text and '8.0' in text, text


if __name__ == '__main__':
    what, kernel = sys.argv[1:]
    if what == 'unrecorded':
        outputs = run('%%memprof\nx = 5\n#---\nprint(json.dumps({"x": x, "torch": "torch" in __import__("sys").modules}))',
                      kernel)
        assert 'memprof kernel install' in str(outputs[0]), outputs[0]
        assert said(outputs) == {'x': 5, 'torch': False}, outputs
    else:
        outputs = run({'plain': PLAIN, 'torch': TORCH}[what], kernel)
        {'plain': check_plain, 'torch': check_torch}[what](outputs)
