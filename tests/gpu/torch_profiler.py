# torch.profiler on a GPU: kernels and memory events are there, with memprof and without.
import sys

import torch
from torch.profiler import ProfilerActivity, profile

if not torch.cuda.is_available():
    print("torch sees no GPU")
    sys.exit(77)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as p:
    x = torch.randn(256, 256, device="cuda")
    for _ in range(5):
        x = torch.relu(x @ x)
    torch.cuda.synchronize()
kernels = sum(e.device_type == torch.autograd.DeviceType.CUDA for e in p.events())
print("torch.profiler saw", "kernels" if kernels >= 10 else "%d kernels" % kernels)
sys.exit(0 if kernels >= 10 else 1)
