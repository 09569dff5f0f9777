"""Trains a little on a GPU and prints what PyTorch's allocator counted:

    allocator BACKEND
    blocks ALLOCATIONS BYTES FREES BYTES PEAK     (0 for what the backend does not count)
    reserved PEAK
    figures ASKED OFFSETS

OFFSETS is how many different values the recording's figure of live bytes less PyTorch's had, of ASKED: 1, as what
libraries take beside PyTorch's allocator (cuBLAS) is there from the first step on.
With two arguments, WIDTH and STEPS, how large and how long; the median step is the last line of standard error.
"""
import gc
import os
import sys
import time

import torch
from torch import nn

try:
    import memprof
except ImportError:
    memprof = None

DEVICE = "cuda:0"
offsets = []


def compare():
    if memprof and memprof.is_recording():
        offsets.append(int(memprof.allocated(DEVICE)) - torch.cuda.memory_allocated())


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = torch.relu(self.up(self.norm(x)))
        return x + self.down(hidden)


def train(width, steps):
    torch.manual_seed(0)
    net = nn.Sequential(*[Block(width) for _ in range(6)]).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(64, width, device=DEVICE)
    seconds = []
    for step in range(steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = (net(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
        if step % 8 == 0:
            compare()
    keep = [torch.empty(size, device=DEVICE) for size in range(1, 4_000_000, 99_991)]
    del keep[::2]
    compare()
    torch.cuda.empty_cache()
    compare()
    return sorted(seconds)[len(seconds) // 2]


if not torch.cuda.is_available():
    sys.exit("torch sees no GPU")
step = train(*map(int, sys.argv[1:3] or ("256", "40")))
torch._C._cuda_clearCublasWorkspaces()
gc.collect()
s = torch.cuda.memory_stats()
print("allocator", torch.cuda.get_allocator_backend())
print("blocks", *[s[f"{what}.all.{key}"] for key in ("allocated", "freed")
                  for what in ("allocation", "allocated_bytes")], s["allocated_bytes.all.peak"])
print("reserved", s["reserved_bytes.all.peak"])
print("figures", len(offsets), len(set(offsets)))
print(f"step {step * 1e3:.3f} ms", file=sys.stderr)
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)  # what the interpreter frees at its end is in no ledger
