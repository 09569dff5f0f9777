"""A policy from inside, and functions that poll() calls; argument: how."""
import sys
import time
import types

import memprof

if len(sys.argv) > 1:  # a PyTorch that counts
    emptied = []
    cuda = types.SimpleNamespace(is_initialized=lambda: True, empty_cache=lambda: emptied.append(1))
    sys.modules['torch'] = types.SimpleNamespace(cuda=cuda)
called = []


def drop(order, device):
    called.append((order, device))
    if len(called) == 2:
        raise ValueError('the second')


def wait_for(what):
    end = time.monotonic() + 60
    while not what() and time.monotonic() < end:
        memprof.poll()
        time.sleep(0.002)


if len(sys.argv) > 1:
    print(memprof.policy('host 0-101 active >= 0 callback'))
    wait_for(lambda: emptied)
    print('emptied', len(emptied))
else:
    print(memprof.policy('host 0-101 active >= 0 run true'), memprof.policy('host 0-101 active >= 0 callback drop'))
    print(memprof.on('drop', drop), memprof.on('a name that is too long', drop))
    try:
        wait_for(lambda: len(called) > 1)
    except ValueError as error:
        print('raised', error)
    print(called)
