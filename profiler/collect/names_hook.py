# Written by 'memprof run --torch-names' and gone when the run is over: as sitecustomize, it tells memprof what PyTorch's
# modules call their tensors: parameters, buffers, gradients, optimizers' state. It looks after the 1st, 2nd, 4th, 8th ...
# backward pass and at exit, wraps torch.autograd.backward and Optimizer.__init__ for that, adds no hook to any module,
# and never fails the program.
import ctypes
import os
import sys

_directory = os.environ.get('MEMPROF_NAMES', '')
_RANK = 16


class _View(ctypes.Structure):  # struct memprof_view
    _fields_ = [('data', ctypes.c_void_p), ('item_bytes', ctypes.c_size_t), ('rank', ctypes.c_uint32),
                ('size', ctypes.c_int64 * _RANK), ('stride', ctypes.c_int64 * _RANK)]


def _tell(what, text):
    try:
        with open(os.path.join(_directory, '%s-%d' % (what, os.getpid())), 'w', encoding='utf-8',
                  errors='replace') as f:
            f.write(text)
    except OSError:
        pass


def _storage(tensor):
    """Where the memory begins that the tensor is a view of."""
    if hasattr(tensor, 'untyped_storage'):
        return tensor.untyped_storage().data_ptr()
    return tensor.storage().data_ptr()


class _Names:
    def __init__(self, torch, library):
        import weakref
        self.torch = torch
        self.said = 0
        self.passes = 0
        self.optimizers = weakref.WeakSet()
        self.view = library.memprof_hook_view
        self.view.argtypes = [ctypes.c_void_p, ctypes.POINTER(_View), ctypes.c_char_p]
        self.view.restype = None
        self.category = library.memprof_hook_category
        self.category.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self.category.restype = None

    def tensor(self, tensor, name, category):
        tensor = getattr(tensor, '_local_tensor', tensor)  # a DTensor's own part
        try:
            if tensor.device.type in ('meta', 'xla') or tensor.layout is not self.torch.strided or tensor.dim() > _RANK:
                return
            block, data = _storage(tensor), tensor.data_ptr()
        except Exception:  # a tensor without memory: fake, functional, freed
            return
        if not block:
            return
        rank = tensor.dim()
        view = _View(data, tensor.element_size(), rank)
        view.size[:rank] = tensor.shape
        view.stride[:rank] = tensor.stride()
        self.view(block, ctypes.byref(view), name.encode('utf-8', 'replace'))
        self.category(block, category)
        self.said += 1

    def modules(self):
        """From Python 3.9 on objects refer to their class. A list of all objects would be a part of the peak."""
        import gc
        kind = self.torch.nn.Module
        classes, new = {kind}, [kind]
        while new:
            found = set(type.__subclasses__(new.pop())) - classes
            classes |= found
            new += found
        objects = gc.get_referrers(*classes) if sys.version_info >= (3, 9) else gc.get_objects()
        return [each for each in objects if issubclass(type(each), kind) and '_modules' in each.__dict__]

    def roots(self):
        """Modules that are in no other one, with what their tensors' names begin with."""
        modules = self.modules()
        inner = {id(child) for each in modules for child in each._modules.values()}
        roots = [each for each in modules if id(each) not in inner]
        used = {}
        for root in roots:
            name = type(root).__name__
            used[name] = used.get(name, 0) + 1
            prefix = name if used[name] == 1 else '%s#%d' % (name, used[name])
            yield root, prefix + '.' if len(roots) > 1 else ''

    def state(self, names):
        """What optimizers keep of each parameter."""
        for optimizer in list(self.optimizers):
            for parameter, state in list(optimizer.state.items()):
                name = names.get(id(parameter))
                for key, value in list(state.items()) if name and isinstance(state, dict) else ():
                    if isinstance(value, self.torch.Tensor):
                        self.tensor(value, '%s.%s' % (name, key), b'optimizer')

    def all(self):
        names = {}
        for root, prefix in self.roots():
            for path, module in root.named_modules(prefix='', remove_duplicate=False):
                path = prefix + path + '.' if path else prefix
                for key, value in list(module._parameters.items()):
                    if value is not None:
                        names.setdefault(id(value), path + key)
                        self.tensor(value, path + key, b'parameter')
                        if value.grad is not None:
                            self.tensor(value.grad, path + key + '.grad', b'gradient')
                for key, value in list(module._buffers.items()):
                    if value is not None:
                        self.tensor(value, path + key, b'buffer')
        self.state(names)

    def look(self):
        try:
            self.all()
            _tell('named', str(self.said))
        except Exception as error:
            _tell('error', '%s: %s' % (type(error).__name__, error))


def _wrap(names, torch):
    import functools
    backward, begin = torch.autograd.backward, torch.optim.Optimizer.__init__

    @functools.wraps(backward)
    def named_backward(*args, **kwargs):
        result = backward(*args, **kwargs)
        names.passes += 1
        if names.passes & (names.passes - 1) == 0:
            names.look()
        return result

    @functools.wraps(begin)
    def known_begin(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        try:
            names.optimizers.add(self)
        except TypeError:
            pass

    torch.autograd.backward = named_backward
    torch.optim.Optimizer.__init__ = known_begin


def _begin(torch):
    import atexit
    try:
        names = _Names(torch, ctypes.CDLL(None))
        _wrap(names, torch)
        atexit.register(names.look)
        _tell('named', '0')
    except Exception as error:
        _tell('error', '%s: %s' % (type(error).__name__, error))
