import ctypes
import os

from . import memory

_queued, _initialized = [], False


class _Allocator:
    def __init__(self):
        libraries = os.environ['FAKE_TORCH']
        self.blocks = ctypes.CDLL(os.path.join(libraries, 'libblocks.so'))
        self.blocks.report_block.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
        self.unused, self.next, self.live = {}, {}, {}

    def alloc(self, size, device):
        rounded = (size + 511) // 512 * 512
        again = self.unused.get((device, rounded))
        if again:
            address = again.pop()
        else:
            address = self.next.get(device, 0x7F0000000000 + (device << 36))
            self.next[device] = address + rounded
        self.live[device, address] = size
        memory._note('alloc', address, size, device)
        self.blocks.report_block(address, rounded, device)
        return address

    def free(self, address, size, device):
        rounded = (size + 511) // 512 * 512
        del self.live[device, address]
        self.unused.setdefault((device, rounded), []).append(address)
        memory._note('free_requested', address, size, device)
        self.blocks.report_block(address, -rounded, device)
        memory._note('free_completed', address, size, device)


_allocator = None


def is_initialized():
    return _initialized


def _lazy_call(call):
    if _initialized:
        call()
    else:
        _queued.append(call)


def _lazy_init():
    global _initialized, _allocator
    if not _initialized:
        _initialized = True
        _allocator = _Allocator()
        for call in _queued:
            call()
