"""Names of memory: views of it as memprof_view.h has them."""
import ctypes
import sys

from . import _hook

RANK = 16


class View(ctypes.Structure):  # struct memprof_view
    _fields_ = [('data', ctypes.c_void_p), ('item_bytes', ctypes.c_size_t), ('rank', ctypes.c_uint32),
                ('size', ctypes.c_int64 * RANK), ('stride', ctypes.c_int64 * RANK)]


class _Buffer(ctypes.Structure):  # Py_buffer
    _fields_ = [('buf', ctypes.c_void_p), ('obj', ctypes.py_object), ('len', ctypes.c_ssize_t),
                ('itemsize', ctypes.c_ssize_t), ('readonly', ctypes.c_int), ('ndim', ctypes.c_int),
                ('format', ctypes.c_void_p), ('shape', ctypes.POINTER(ctypes.c_ssize_t)),
                ('strides', ctypes.POINTER(ctypes.c_ssize_t)), ('suboffsets', ctypes.c_void_p),
                ('internal', ctypes.c_void_p)]


_STRIDED = 0x18  # PyBUF_STRIDED_RO


def _say(block, data, item_bytes, shape, stride, name, category):
    rank = len(shape)
    if not block or rank > RANK:
        return 0
    view = View(data, item_bytes, rank)
    view.size[:rank] = shape
    view.stride[:rank] = stride
    _hook.library.memprof_hook_view(block, ctypes.byref(view), _hook.text(name))
    if category is not None:
        _hook.library.memprof_hook_category(block, _hook.text(category))
    return 1


def _buffer(thing):
    """Address, item size, shape and strides in bytes of whatever has a buffer."""
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(thing), ctypes.byref(buffer), _STRIDED)
    try:
        shape = buffer.shape[:buffer.ndim] if buffer.ndim else []
        strides = buffer.strides[:buffer.ndim] if buffer.ndim and buffer.strides else []
        if len(strides) < len(shape):  # ctypes leaves them out: without gaps
            strides, step = [], buffer.itemsize
            for size in reversed(shape):
                strides.insert(0, step)
                step *= size
        return buffer.buf, buffer.itemsize, shape, strides
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))


def _block(thing):
    """Where the block begins that a buffer is a part of."""
    while True:
        owner = getattr(thing, 'obj', None) if isinstance(thing, memoryview) else getattr(thing, 'base', None)
        if owner is None or owner is thing:
            break
        try:
            memoryview(owner)
        except TypeError:  # something that is kept alive, but shows no memory
            break
        thing = owner
    if isinstance(thing, bytes):  # one block with its object
        return id(thing)
    data, _, shape, strides = _buffer(thing)
    return data + sum(min(0, (size - 1) * stride) for size, stride in zip(shape, strides))


def _array(thing, name, category):
    data, item_bytes, shape, strides = _buffer(thing)
    if not item_bytes:
        return 0
    if any(stride % item_bytes for stride in strides):  # a field of records: items by their bytes
        shape, strides, item_bytes = list(shape) + [item_bytes], list(strides) + [1], 1
    return _say(_block(thing), data, item_bytes, shape, [stride // item_bytes for stride in strides], name, category)


def _tensor(tensor, name, category):
    tensor = getattr(tensor, '_local_tensor', tensor)  # a DTensor's own part
    try:
        if tensor.device.type in ('meta', 'xla') or str(tensor.layout) != 'torch.strided':
            return 0
        storage = tensor.untyped_storage() if hasattr(tensor, 'untyped_storage') else tensor.storage()
        block, data = storage.data_ptr(), tensor.data_ptr()
    except (RuntimeError, NotImplementedError):  # without memory: fake, functional, freed
        return 0
    return _say(block, data, tensor.element_size(), list(tensor.shape), list(tensor.stride()), name, category)


def _module(module, prefix, category):
    said = 0
    for path, part in module.named_modules(prefix=prefix or '', remove_duplicate=False):
        path = path + '.' if path else ''
        for key, value in list(part._parameters.items()):
            if value is not None:
                said += _tensor(value, path + key, category or 'parameter')
                if value.grad is not None:
                    said += _tensor(value.grad, path + key + '.grad', category or 'gradient')
        for key, value in list(part._buffers.items()):
            if value is not None:
                said += _tensor(value, path + key, category or 'buffer')
    return said


def name(thing, name, category):
    torch = sys.modules.get('torch')  # who has a tensor has imported it
    if torch is not None and isinstance(thing, torch.nn.Module):
        return _module(thing, name, category)
    label = name if name is not None else type(thing).__name__
    if torch is not None and isinstance(thing, torch.Tensor):
        return _tensor(thing, label, category)
    return _array(thing, label, category)
