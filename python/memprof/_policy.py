"""What a policy of the recording wants of a Python program (docs/policy.md): done where it polls.

memprof's own thread may come at any moment, and would need the interpreter's lock for a function of Python's. So from
the first on() or poll() it leaves everything to poll().
"""
import ctypes
import sys

from ._hook import library, text

_functions = {}
_raised = []
_Call = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)


@_Call
def _call(order, device, _):
    try:
        function = _functions.get(order.decode('utf-8', 'replace'))
        if function:
            function(order.decode('utf-8', 'replace'), device.decode())
    except BaseException as error:  # ctypes would print it and go on
        _raised.append(error)


def _empty_cache(order, device):
    torch = sys.modules.get('torch')
    if torch and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def policy(lines):
    said = text(lines)
    return bool(library) and library.memprof_hook_policy(said, len(said)) == 0


def on(order, function):
    if not library:
        return False
    library.memprof_hook_poll()
    if not library.memprof_hook_on(text(order), _call if function else None, None):
        return False
    _functions[str(order)] = function
    return True


def poll():
    if not library:
        return 0
    if 'callback' not in _functions and 'torch' in sys.modules:
        on('callback', _empty_cache)
    count = library.memprof_hook_poll()
    if _raised:
        error = _raised.pop(0)
        del _raised[:]
        raise error
    return count
