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
           'name', 'names', 'on', 'on_oom', 'page', 'pause', 'peak', 'policy', 'poll', 'profile', 'profile_every',
           'range', 'report', 'reset', 'resume', 'sync', 'yielded']


def __getattr__(attribute):  # what needs more modules is loaded when it is asked for
    if attribute in ('Table', 'Error', 'Page'):
        from . import _report
        return getattr(_report, attribute)
    if attribute == 'torch':
        import importlib
        return importlib.import_module('.torch', __name__)
    raise AttributeError('module %r has no attribute %r' % (__name__, attribute))


def is_recording():
    """Whether this program is being recorded now."""
    return not _hook.is_ended()  # figures are there only when the collector has counted something


def mark(name):
    """An instant with a name."""
    if _hook.library:
        _hook.library.memprof_hook_mark(_hook.text(name))


def reset(name='reset'):
    """A new epoch: peaks and counts of figures begin anew. A report takes it as during='epoch:NAME'."""
    if _hook.library:
        _hook.library.memprof_hook_epoch(_hook.text(name))


def pause():
    """Leaves out what the program allocates from now on, all of its processes; whether that was done."""
    return bool(_hook.library) and _hook.library.memprof_hook_pause() == 0


def resume():
    """Ends the pause; whether that was done."""
    return bool(_hook.library) and _hook.library.memprof_hook_resume() == 0


def on_oom(function):
    """Calls function(device, size) after an allocation of the host or a GPU found no memory; None: no more.

    The main thread calls it soon after, between two of its instructions: the failing thread may be anywhere."""
    from . import _oom
    _oom.observe(function)


def yielded(timeout=None):
    """`with memprof.yielded():` gives all that the program has on GPUs back for that long; its GPU calls wait. Error
    where that is refused, or (at the end) where it cannot come home. timeout: seconds for GPU calls to end."""
    from . import _yield
    return _yield.Yielded(timeout)


def policy(lines):
    """The recording's policy from now on (docs/policy.md), in place of that of `run --policy`; whether it is one."""
    from . import _policy
    return _policy.policy(lines)


def on(order, function):
    """Calls function(order, device) in the next poll() after the policy's action "callback ORDER"; None: no more.
    "callback" alone calls torch.cuda.empty_cache() where PyTorch is loaded and nothing else was said."""
    from . import _policy
    return _policy.on(order, function)


def poll():
    """Does what the policy wants of this process, here and now; how much that was. Call it now and then, such as once
    a step: from the first call on nobody else does it."""
    from . import _policy
    return _policy.poll()


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


def profile(function=None, columns=None, device=None, every=None):
    """A range with the function's qualified name; its lines during all calls at exit, or by FUNCTION.table(). With
    every=N those of each N-th call after it, at most two a second."""
    if function is None:
        return functools.partial(profile, columns=columns, device=device, every=every)
    if every is not None and every < 1:
        raise ValueError('every=%r: expected 1 or more calls' % (every,))
    name = function.__qualname__
    ranged = range(name)(function)

    def table(call=None):
        made = lines(function, columns=columns, device=device, during='%s#%s' % (name, call or 'all'))
        if call and (made.data.get('window') or {}).get('of') != call:  # others have ranges of this name
            made = lines(function, columns=columns, device=device, during=name + '#all')
        return made
    if _hook.library and every is None:
        from . import _report
        _report.at_exit(name, table)
    elif _hook.library:
        from . import _report
        shown, counted = _report.Every(name, every, table), ranged

        @functools.wraps(function)
        def ranged(*args, **kwargs):
            try:
                return counted(*args, **kwargs)
            finally:
                shown.called()
    ranged.table = table
    return ranged


def profile_every(count=1, columns=None, device=None):
    """@profile(every=count), as pytorch_memlab calls it."""
    return profile(columns=columns, device=device, every=count)


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
    if _hook.is_ended():
        return 0
    return _names.name(thing, name, category)


def names(**options):
    """`memprof report --names`, such as names(at='peak', device='cuda')."""
    return report(names=True, **options)


def report(**options):
    """`memprof report` with these options: report(by='line', during='epoch 3', top=10)."""
    from . import _report
    return _report.table('report', options)


def _code(func):
    """The code object of a function, however it is wrapped; None: it is none."""
    func = getattr(func, '__func__', func)
    while getattr(func, '__wrapped__', None) is not None:
        func = func.__wrapped__
    return getattr(func, '__code__', None)


def lines(func=None, columns=None, during=None, **options):
    """`memprof lines`: the source of a function, by name or itself, or of several, with the statistics of each line. A
    name means native functions where Python has none of it."""
    from . import _report
    if columns is not None and not isinstance(columns, str):
        columns = ','.join(columns)
    functions = func if isinstance(func, (list, tuple)) else () if func is None else (func,)
    codes = [_code(each) for each in functions]
    names = [getattr(code, 'co_qualname', code.co_name) if code else getattr(each, '__qualname__', each)
             for each, code in zip(functions, codes)]
    if functions and all(codes) and 'file' not in options:  # which says where to look, and that it is Python's
        files = sorted({code.co_filename for code in codes})
        if not any(set(file) & set('*?[') for file in files):
            options['file'] = files
    options = dict(options, func=names, columns=columns, during=during)
    if not names or any(codes) or 'native' in options or 'python_only' in options:
        return _report.table('lines', options)
    try:  # of a running program Python's names are at hand, all others have to be looked up
        return _report.table('lines', dict(options, python_only=True))
    except _report.Error:
        return _report.table('lines', options)


def page(path='memprof.html', **options):
    """Writes the HTML page of the recording so far. Its path, which a notebook shows as the page; None without
    memprof."""
    from . import _report
    return _report.page(path, options)


def load_ipython_extension(shell):
    """%load_ext memprof: %memprof and %%memprof."""
    from . import _magic
    _magic.load(shell)


def _say_sources():
    from . import _source
    _source.say()


if _hook.library:  # what was typed or made, and is in no file
    import atexit
    atexit.register(_say_sources)
