# The programs of docs/coming-from.md in one run, as the READMEs of pytorch_memlab, MemLord and torchlinops write theirs.
# Each keeps a ledger of its tensors' bytes, by their shapes alone.
import json
import sys

import torch

import memprof

memprof.resume()  # --paused: what the import takes is of no interest here, and most of a recording
ledger = {}


def size(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def parts(module):
    return size(*module.parameters())


def inner():
    torch.nn.Linear(100, 100)


def outer():
    linear = torch.nn.Linear(100, 100)
    linear2 = torch.nn.Linear(100, 100)
    inner()
    ledger['linear'] = [parts(linear), parts(linear2)]


kept = []


def step(i):
    kept.append(torch.zeros(256, 1024))
    return torch.zeros(512, 1024).sum()


def account():
    memprof.reset()
    before = memprof.allocated('host')
    x = torch.zeros(1024, 1024)
    print('allocated', memprof.Bytes(memprof.allocated('host') - before))
    y = x.to(torch.float64)
    ledger['account'] = [size(x), size(x, y)]
    del x, y
    ledger['account'] += [int(memprof.freed('host')), memprof.peak('host') - before]


def tied():
    linear = torch.nn.Linear(1024, 1024)
    linear2 = torch.nn.Linear(1024, 1024)
    linear2.weight = linear.weight
    container = torch.nn.Sequential(linear, linear2)
    inp = torch.ones(512, 1024)
    container(inp).mean().backward()
    memprof.name(container)
    memprof.name(inp, 'inp')
    memprof.mark('tied')
    held = [linear.weight, linear.bias, linear2.bias]
    ledger['tied'] = size(inp, *held, *[each.grad for each in held])


def hidden():
    linear = torch.nn.Linear(1024, 1024)
    inp = torch.ones(512, 1024)
    out = linear(inp * (inp + 2)).mean()
    memprof.name(linear)
    memprof.name(inp, 'inp')
    memprof.mark('hidden')
    ledger['hidden'] = size(inp)  # of the product, which only autograd holds
    return out


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        whole = torch.zeros(4 * 262144)
        for i in range(4):
            self.register_buffer('part%d' % i, whole[i * 262144:(i + 1) * 262144])


def share():
    net = Net()
    copied = memprof.torch.copy(net)
    memprof.name(net)
    memprof.name(copied, 'moved')
    memprof.mark('share')
    pointers = {each.untyped_storage().data_ptr() if hasattr(each, 'untyped_storage') else each.storage().data_ptr()
                for each in copied.buffers()}
    ledger['share'] = [size(*net.buffers()), size(*copied.buffers()), len(pointers)]


with memprof.range('outer'):
    outer()
for number in range(3):
    step(number)
ledger['step'] = [size(kept[0]), size(kept[0]) + 512 * 1024 * 4]
account()
for each in (tied, hidden, share):
    each()
json.dump(ledger, open(sys.argv[1], 'w'))
