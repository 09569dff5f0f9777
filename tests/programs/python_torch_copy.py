# Driven by tests/e2e/python_module.sh: modules whose tensors share memory, copied and moved, element by element.
import random
import sys
import warnings

import torch

import memprof.torch

assert 'torch' in sys.modules and not memprof.is_recording()


def typed(storage, dtype, offset, size, stride):
    return torch.empty(0, dtype=dtype).set_(memprof.torch._storage(storage), offset, size, stride)


def views(source, chance):
    """Views of one storage of 4,000 bytes: strided, overlapping, with strides of 0, empty, of several types."""
    for _ in range(chance.randint(1, 8)):
        dtype = chance.choice([torch.uint8, torch.int16, torch.float32, torch.float64, torch.complex128])
        items = 4000 // torch.empty(0, dtype=dtype).element_size()
        size = [chance.randint(0 if chance.random() < 0.1 else 1, 5) for _ in range(chance.randint(0, 3))]
        stride = [chance.randint(0, 9) for _ in size]
        reach = sum(max(0, n - 1) * step for n, step in zip(size, stride))
        yield typed(source, dtype, chance.randint(0, items - 1 - reach), size, stride)


def module_of(buffers, parent=None):
    module = torch.nn.Module()
    for number, each in enumerate(buffers):
        module.register_buffer('b%d' % number, each)
    if parent is not None:
        module.add_module('inner', parent)
    return module


def span(tensor):
    return memprof.torch._span(tensor)


def held(module):
    """Bytes that the module's tensors show: each once."""
    return len({byte for tensor in module.buffers() if tensor.numel() for byte in range(*span(tensor))})


def check(old, new, apart):
    """The same bytes, shapes and strides; the same distances where spans overlap; nothing of the old memory."""
    assert len(old) == len(new)
    for a, b in zip(old, new):
        assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride(), (a, b)
        assert a.contiguous().view(-1).numpy().tobytes() == b.contiguous().view(-1).numpy().tobytes()
    for i, (a, b) in enumerate(zip(old, new)):
        for c, d in zip(old[:i], new[:i]):
            (low, high), (low2, high2) = span(a), span(c)
            if max(low, low2) < min(high, high2):
                assert c.data_ptr() - a.data_ptr() == d.data_ptr() - b.data_ptr(), (a, c)
    if apart:
        olds = {each for tensor in old if tensor.numel() for each in range(*span(tensor))}
        news = {each for tensor in new if tensor.numel() for each in range(*span(tensor))}
        assert not olds & news and len(olds) == len(news), (len(olds), len(news))


for seed in range(100):
    chance = random.Random(seed)
    sources = [torch.tensor([chance.randrange(256) for _ in range(4000)], dtype=torch.uint8) for _ in range(2)]
    module = module_of(list(views(sources[0], chance)), module_of(list(views(sources[1], chance))))
    old = list(module.buffers())
    copied = memprof.torch.copy(module)
    check(old, list(copied.buffers()), True)
    assert held(module) == held(copied)
    # a move within the CPU: what move() does for tensors of another device
    before = [tensor.detach() for tensor in old]
    memprof.torch._take(module, memprof.torch._tensors(module), torch.device('cpu'))
    assert all(a is b for a, b in zip(old, module.buffers()))
    check(before, old, True)
assert memprof.torch.move(module, 'cpu') is module
check(old, list(module.buffers()), False)


# What training needs: tied parameters stay one object, gradients and requires_grad stay, writes are seen by who shares.
class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = torch.nn.Linear(30, 20), torch.nn.Linear(30, 20)
        self.out.weight = self.embed.weight
        flat = torch.arange(1000.0)
        self.part = torch.nn.Parameter(flat[:500], requires_grad=False)
        self.register_buffer('across', flat[400:900:2])
        self.note = 'kept'


model = Tied()
(model.embed(torch.ones(30)) + model.out(torch.ones(30))).sum().backward()
like = memprof.torch.copy(model)
assert like.note == 'kept' and like.out.weight is like.embed.weight and like.embed.weight is not model.embed.weight
assert torch.equal(like.embed.weight.grad, model.embed.weight.grad)
assert like.embed.weight.grad.data_ptr() != model.embed.weight.grad.data_ptr()
assert like.embed.weight.requires_grad and not like.part.requires_grad and isinstance(like.part, torch.nn.Parameter)
with torch.no_grad():
    like.part[402] = -1
assert like.across[1] == -1 and model.across[1] == 402
like.embed(torch.ones(30)).sum().backward()
assert not torch.equal(like.embed.weight.grad, model.embed.weight.grad)

# What is no view of whole items, or has no memory (yet), is copied and moved as torch does it.
flat = bytearray(range(64))
odd = module_of([torch.frombuffer(flat, dtype=torch.uint8), torch.frombuffer(flat, dtype=torch.float32, count=8,
                                                                            offset=1)])
old = [tensor.clone() for tensor in odd.buffers()]
assert all(torch.equal(a, b) for a, b in zip(old, memprof.torch.copy(odd).buffers()))
memprof.torch._take(odd, memprof.torch._tensors(odd), torch.device('cpu'))
assert all(torch.equal(a, b) for a, b in zip(old, odd.buffers()))
with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # lazy modules may change
    assert memprof.torch.copy(torch.nn.LazyLinear(3)).out_features == 3
assert memprof.torch.copy(torch.nn.Linear(2, 3, device='meta')).weight.shape == (3, 2)
assert memprof.torch.move(torch.nn.Linear(2, 3), 'meta').weight.device.type == 'meta'
weight = model.embed.weight
memprof.torch._take(model, memprof.torch._tensors(model), torch.device('cpu'))
assert model.embed.weight is weight and model.out.weight is weight and weight.grad is not None

with memprof.torch.operators():  # without memprof nothing stands in between
    assert torch.ones(3).sum() == 3
