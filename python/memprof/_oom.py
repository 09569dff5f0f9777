"""Allocations that fail, told to a Python function: later, where Python is safe.

The allocation may fail in any thread, with or without the interpreter's lock, and in the middle of Python's own
allocator. So the library notes it there, and asks the interpreter for a call (Py_AddPendingCall), which its main thread
makes between two of its instructions. An interpreter that has ended cannot be asked: it is left alone from its atexit on.
"""
import atexit
import ctypes

from ._hook import Bytes, library

_function = None
_Call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


@_Call
def _tell(_):
    device, size = ctypes.create_string_buffer(16), ctypes.c_uint64()
    while library.memprof_hook_oom_next(device, ctypes.byref(size)):
        if _function:
            _function(device.value.decode(), Bytes(size.value))
    return 0


def _end():
    library.memprof_hook_oom_later(None, None)


def observe(function):
    global _function
    _function = function
    if library and function:
        add = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p)
        atexit.unregister(_end)
        atexit.register(_end)
        library.memprof_hook_oom_later(add, ctypes.cast(_tell, ctypes.c_void_p))
    elif library:
        library.memprof_hook_on_oom(None, None)
