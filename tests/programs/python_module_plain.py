# Driven by tests/e2e/python_module.sh without memprof: every call does nothing, and loads nothing.
import collections  # noqa: F401
import ctypes  # noqa: F401
import functools  # noqa: F401
import sys

loaded = set(sys.modules) | {'memprof', 'memprof._hook'}
import memprof

assert set(sys.modules) == loaded, set(sys.modules) - loaded
assert not memprof.is_recording()
memprof.mark('a')
memprof.reset('b')
assert memprof.sync() is False
with memprof.range('c'):
    pass


@memprof.profile
def function(x):
    """Says."""
    return x + 1


@memprof.range('d')
def other():
    return 2


often = memprof.profile_every(1)(other)
assert function(1) == 2 and other() == 2 and function.__name__ == 'function' and function.__doc__ == 'Says.'
assert memprof.allocated() == 0 and memprof.freed('cuda') == 0 and str(memprof.peak()) == '0 B'
assert memprof.figures() is None and memprof.figures(now=False) is None
assert memprof.name(bytearray(10), 'x', 'y') == 0
assert set(sys.modules) == loaded, set(sys.modules) - loaded
assert 'torch' not in sys.modules and 'numpy' not in sys.modules
for table in (memprof.names(), memprof.lines('function'), memprof.lines([function, other]), memprof.report(by='line'), function.table()):
    assert len(table) == 0 and table.rows == [] and str(table) == '' and '<table>' in table._repr_html_()
assert often() == 2 and len(often.table()) == 0
assert memprof.page('none.html') is None
