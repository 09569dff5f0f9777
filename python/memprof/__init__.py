"""What a Python program asks memprof, and tells it, while it is recorded (docs/python-module.md).

    import memprof
    with memprof.range("epoch 3"):
        ...
    print(memprof.allocated(), memprof.lines("step", during="epoch 3"))

Without memprof every call does nothing, and returns 0, None or an empty table. Nothing else is imported for it.
"""
import functools

from . import _hook
from ._hook import Bytes, Figures

if _hook.library:  # a __del__ may want names when nothing can be imported any more
    from . import _names

__all__ = ['Bytes', 'Error', 'Figures', 'Table', 'allocated', 'figures', 'freed', 'is_recording', 'lines', 'mark',
           'name', 'names', 'page', 'peak', 'profile', 'range', 'report', 'reset', 'sync']


def __getattr__(attribute):  # what needs more modules is loaded when it is asked for
    if attribute in ('Table', 'Error'):
        from . import _report
        return getattr(_report, attribute)
    if attribute == 'torch':
        import importlib
        return importlib.import_module('.torch', __name__)
    raise AttributeError('module %r has no attribute %r' % (__name__, attribute))


def is_recording():
    """Whether this program is being recorded now."""
    return _hook.answers()


def mark(name):
    """An instant with a name."""
    if _hook.library:
        _hook.library.memprof_hook_mark(_hook.text(name))


def reset(name='reset'):
    """A new epoch: peaks and counts of figures begin anew. A report takes it as during='epoch:NAME'."""
    if _hook.library:
        _hook.library.memprof_hook_epoch(_hook.text(name))


class range:
    """A span with a name: `with memprof.range("load"):`, or a decorator of a function."""

    def __init__(self, name):
        self.name = _hook.text(name)

    def __enter__(self):
        if _hook.library:
            _hook.library.memprof_hook_range_push(self.name)
        return self

    def __exit__(self, *exception):
        if _hook.library:
            _hook.library.memprof_hook_range_pop()
        return False

    def __call__(self, function):
        # Of these a call only makes an object; their bodies run later, between those of others.
        if getattr(getattr(function, '__code__', None), 'co_flags', 0) & (0x20 | 0x80 | 0x200):
            raise TypeError('%s: a range of a generator or coroutine: use "with memprof.range(...)" inside it' %
                            function.__qualname__)

        @functools.wraps(function)
        def ranged(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return ranged


def profile(function=None, columns=None):
    """A range with the function's qualified name; at exit, or by FUNCTION.table(), its lines during all calls."""
    if function is None:
        return functools.partial(profile, columns=columns)
    name = function.__qualname__
    ranged = range(name)(function)

    def table():
        return lines(getattr(function.__code__, 'co_qualname', function.__name__), columns=columns,
                     during=name + '#all')
    ranged.table = table
    if _hook.library:
        from . import _report
        _report.at_exit(name, table)
    return ranged


def figures(device=None, now=True):
    """What a device holds ("host", "cuda:0", "cuda": all of that type, None: all): exact up to this call, or as last
    counted. None: no answer."""
    return _hook.figures(device, now)


def _field(device, field):
    # as last counted is nearer to the truth than nothing, where the collector gets no processor
    answer = _hook.figures(device, True) or _hook.figures(device, False)
    return Bytes(getattr(answer, field) if answer else 0)


def allocated(device=None):
    """Bytes of the live blocks, less those whose free waits for a stream."""
    return _field(device, 'allocated_bytes')


def freed(device=None):
    """Bytes freed since the last reset()."""
    return _field(device, 'free_bytes')


def peak(device=None):
    """The most that was live at once since the last reset()."""
    return _field(device, 'peak_active_bytes')


def sync():
    """Waits until the file has all that was done so far. Whether it has."""
    return bool(_hook.library) and _hook.library.memprof_hook_sync() == 0


def name(thing, name=None, category=None):
    """Names a tensor, a buffer (bytearray, array, ctypes, NumPy), or all parameters, buffers and gradients of a module.
    Returns how many views were named."""
    if not _hook.library:
        return 0
    return _names.name(thing, name, category)


def names(**options):
    """`memprof report --names`, such as names(at='peak', device='cuda')."""
    return report(names=True, **options)


def report(**options):
    """`memprof report` with these options: report(by='line', during='epoch 3', top=10)."""
    from . import _report
    return _report.table('report', options)


def lines(func=None, columns=None, during=None, **options):
    """`memprof lines`: the source of a function with the statistics of each line."""
    from . import _report
    if columns is not None and not isinstance(columns, str):
        columns = ','.join(columns)
    return _report.table('lines', dict(options, func=getattr(func, '__qualname__', func), columns=columns,
                                       during=during))


def page(path, **options):
    """Writes the HTML page of the recording so far. The path, or None without memprof."""
    from . import _report
    return _report.page(path, options)
