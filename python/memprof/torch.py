"""Modules moved and copied so that tensors which share memory still do: tied weights, views of one buffer; the forward
passes of a module's parts, and single operators, as ranges."""
import bisect
import contextlib
import copy as copying
import threading

import torch

from . import _hook, _plan

_ALIGN = 64  # more than any item; keeps what an address is modulo it, so that each item stays aligned


def _tensors(module):
    """Each parameter, gradient and buffer once, by identity."""
    found = {}
    for part in module.modules():
        for tensor in list(part._parameters.values()) + list(part._buffers.values()):
            if tensor is not None:
                found[id(tensor)] = tensor
                if tensor.is_leaf and tensor.grad is not None:
                    found[id(tensor.grad)] = tensor.grad
    return list(found.values())


def _has_memory(device):
    return device.type not in ('meta', 'xla')


def _is_plain(tensor):
    return (not torch.nn.parameter.is_lazy(tensor) and tensor.layout is torch.strided and
            _has_memory(tensor.device) and not tensor.is_quantized and not tensor.is_conj() and
            not tensor.is_neg() and not hasattr(tensor, '_local_tensor') and
            tensor.data_ptr() % tensor.element_size() == 0)  # where items begin: views are told in items


def _storage(tensor):
    if hasattr(tensor, 'untyped_storage'):
        return tensor.untyped_storage()
    return tensor.storage().untyped() if hasattr(tensor.storage(), 'untyped') else tensor.storage()._untyped()


def _span(tensor):
    return _plan.span(tensor.data_ptr(), tensor.element_size(), tensor.shape, tensor.stride())


def _bytes(storage, device, low, high):
    """What a storage has of [low, high), as bytes."""
    begin = storage.data_ptr()
    first, last = max(low, begin), min(high, begin + storage.nbytes())
    whole = torch.empty(0, dtype=torch.uint8, device=device)
    return first, whole.set_(storage, first - begin, (max(0, last - first),), (1,))


def _copied(tensors, device):
    """For each tensor its like on the device (None: where it is), a range of shared memory copied once."""
    views = [(tensor.detach(), _storage(tensor)) + _span(tensor) for tensor in tensors]
    ranges = _plan.plan([(low, high, storage.data_ptr()) for _, storage, low, high in views])
    starts = [low for low, _ in ranges]
    memory, done, results = {}, set(), []
    for tensor, storage, low, high in views:
        to = tensor.device if device is None else device
        if low == high:
            results.append(torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=to))
            continue
        number = bisect.bisect_right(starts, low) - 1
        begin, end = ranges[number]
        if number not in memory:
            bytes_new = (begin % _ALIGN + end - begin + _ALIGN - 1) // _ALIGN * _ALIGN
            memory[number] = torch.empty(bytes_new, dtype=torch.uint8, device=to)
        new = memory[number]
        if (number, storage.data_ptr()) not in done:
            done.add((number, storage.data_ptr()))
            first, source = _bytes(storage, tensor.device, begin, end)
            offset = begin % _ALIGN + first - begin
            new[offset:offset + source.numel()].copy_(source)
        offset = (begin % _ALIGN + tensor.data_ptr() - begin) // tensor.element_size()
        results.append(new.view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), offset))
    return results


def _by_device(tensors):
    groups = {}
    for tensor in tensors:
        groups.setdefault(tensor.device, []).append(tensor)
    return groups.values()


def _take(module, tensors, device):
    with torch.no_grad():
        for group in _by_device([tensor for tensor in tensors if _is_plain(tensor)]):
            for tensor, new in zip(group, _copied(group, device)):
                tensor.data = new
        if not all(_is_plain(tensor) for tensor in tensors):
            module.to(device)


def move(module, device):
    """Module.to(device), but what tensors share they share there, too. Returns the module."""
    device = torch.empty(0, device=device).device  # "cuda" is the current one
    if not _has_memory(device):
        return module.to(device)
    _take(module, [tensor for tensor in _tensors(module) if tensor.device != device], device)
    return module


def copy(module):
    """copy.deepcopy(module), whose tensors take the bytes that they show, and share as those of the module do."""
    tensors = _tensors(module)
    gradients = {id(tensor.grad) for tensor in tensors if tensor.is_leaf and tensor.grad is not None}
    plain = [tensor for tensor in tensors if _is_plain(tensor) and (
        id(tensor) in gradients or type(tensor) in (torch.Tensor, torch.nn.Parameter))]
    like, memo = {}, {}
    with torch.no_grad():
        for group in _by_device(plain):
            for tensor, new in zip(group, _copied(group, None)):
                like[id(tensor)] = new
    for tensor in plain:
        new = like[id(tensor)]
        if isinstance(tensor, torch.nn.Parameter):
            new = torch.nn.Parameter(new, tensor.requires_grad)
        elif tensor.is_leaf:
            new.requires_grad_(tensor.requires_grad)
        if tensor.is_leaf and tensor.grad is not None and id(tensor.grad) in like:
            new.grad = like[id(tensor.grad)]
        memo[id(tensor)] = new
    return copying.deepcopy(module, memo)


class ranges:
    """Each forward pass of the module and of its parts is a range by the part's path (`blocks.0.up`; the module itself
    by prefix, or its class) until remove(). By hooks of the module: not for compiled ones."""

    def __init__(self, module, prefix=''):
        self.open, self.hooks = threading.local(), []
        if not _hook.library:
            return
        for path, part in module.named_modules():
            name = _hook.text('.'.join(filter(None, (prefix, path))) or type(module).__name__)
            self.hooks.append(part.register_forward_pre_hook(self._begin(name, part is module)))
            self.hooks.append(part.register_forward_hook(self._end(name)))

    def _names(self):
        return self.open.__dict__.setdefault('names', [])

    def _pop(self):
        _hook.library.memprof_hook_range_pop()
        return self._names().pop()

    def _begin(self, name, is_whole):
        def begin(part, arguments):
            while is_whole and self._names():  # an exception has left them
                self._pop()
            self._names().append(name)
            _hook.library.memprof_hook_range_push(name)
        return begin

    def _end(self, name):
        def end(part, arguments, result):
            while name in self._names() and self._pop() != name:
                pass
        return end

    def remove(self):
        while self.hooks:
            self.hooks.pop().remove()


def operators():
    """With it each operator that PyTorch runs is a range by its name: `aten.addmm.default#3` is the third one. It takes
    Python code around each of them: for some steps, not for a whole training."""
    if not _hook.library:
        return contextlib.nullcontext()
    from torch.utils._python_dispatch import TorchDispatchMode
    names = {}

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, arguments=(), keywords=None):
            name = names.get(operator)
            if name is None:
                name = names[operator] = _hook.text(operator)
            _hook.library.memprof_hook_range_push(name)
            try:
                return operator(*arguments, **(keywords or {}))
            finally:
                _hook.library.memprof_hook_range_pop()
    return Operators()
