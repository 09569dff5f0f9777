"""The functions that libmemprof.so exports for memprof.h, where it is loaded."""
import collections
import ctypes

# struct memprof_device_figures, in its order
_FIELDS = ('time_ns', 'epoch', 'active_bytes', 'active_count', 'allocated_bytes', 'reserved_bytes', 'used_bytes',
           'total_bytes', 'peak_active_bytes', 'peak_reserved_bytes', 'alloc_count', 'alloc_bytes', 'free_count',
           'free_bytes', 'thread_active_bytes', 'thread_active_count', 'thread_alloc_count', 'thread_alloc_bytes',
           'thread_free_count', 'thread_free_bytes')
Figures = collections.namedtuple('Figures', _FIELDS)

_NOT_RECORDED = -1  # MEMPROF_NOT_RECORDED


class _Figures(ctypes.Structure):
    _fields_ = [(field, ctypes.c_uint64) for field in _FIELDS]


class Bytes(int):
    """A number of bytes that shows itself as reports do: 4.00 MiB."""

    def __str__(self):
        size, unit = float(self), 'B'
        for unit in ('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'):
            # 1023.996 would be rounded to 1024.00
            if abs(size) < (1024 if unit == 'B' else 1023.995) or unit == 'PiB':
                break
            size /= 1024
        return '%d B' % self if unit == 'B' else '%.2f %s' % (size, unit)

    def __format__(self, how):
        return str(self) if not how else int.__format__(self, how)


def _load():
    try:
        loaded = ctypes.CDLL(None)
        for name, arguments in (
                ('mark', [ctypes.c_char_p]), ('epoch', [ctypes.c_char_p]), ('range_push', [ctypes.c_char_p]),
                ('range_pop', []), ('category', [ctypes.c_void_p, ctypes.c_char_p]),
                ('view', [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p])):
            function = getattr(loaded, 'memprof_hook_' + name)
            function.argtypes, function.restype = arguments, None
        loaded.memprof_hook_source.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        for name, arguments in (('sync', []), ('pause', []), ('resume', []), ('on_oom', [ctypes.c_void_p] * 2),
                                ('oom_later', [ctypes.c_void_p] * 2), ('oom_next', [ctypes.c_void_p] * 2),
                                ('policy', [ctypes.c_char_p, ctypes.c_size_t]), ('poll', []),
                                ('on', [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p])):
            getattr(loaded, 'memprof_hook_' + name).argtypes = arguments
        loaded.memprof_hook_device_figures.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    except (AttributeError, OSError, TypeError):  # not loaded, or a libmemprof.so that is older than this
        return None
    return loaded


library = _load()


def text(name):
    # a NUL ends it for the library as well
    return name if isinstance(name, bytes) else str(name).encode('utf-8', 'replace')


def figures(device, now):
    if not library:
        return None
    answer = _Figures()
    status = library.memprof_hook_device_figures(None if device is None else text(str(device)), ctypes.byref(answer),
                                                 ctypes.sizeof(answer), 1 if now else 0)
    if status:
        return None
    return Figures._make(getattr(answer, field) if not field.endswith('_bytes') else Bytes(getattr(answer, field))
                         for field in _FIELDS)


def is_ended():
    """Whether nothing records this process any more, such as after the collector was killed."""
    return not library or library.memprof_hook_device_figures(
        None, ctypes.byref(_Figures()), ctypes.sizeof(_Figures), 0) == _NOT_RECORDED
