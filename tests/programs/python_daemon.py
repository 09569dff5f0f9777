# Allocates, becomes a daemon (lib_daemon.c: the argument) and goes on.
import ctypes
import sys

malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p


def take():
    return malloc(70000)


def middle():
    return take()


def outer():
    return middle()


def serve():
    outer()
    ctypes.PyDLL(sys.argv[1]).go_on_alone()
    for _ in range(20):
        outer()


serve()
