"""Stands in for PyTorch with CUDA: what of its interface memprof uses, and a caching allocator that reports each block through a
stand-in libc10, as the real one does. FAKE_TORCH: the directory of the libraries; FAKE_TORCH_LIES: its history says otherwise."""
from . import cuda


class Tensor:
    def __init__(self, size, device=0):
        cuda._lazy_init()
        self.size, self.device = size, device
        self.address = cuda._allocator.alloc(size, device)

    def __del__(self):
        cuda._allocator.free(self.address, self.size, self.device)


def empty(size, device=0):
    return Tensor(size, device)
