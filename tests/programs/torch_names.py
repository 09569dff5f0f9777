"""A module with tied weights, an LSTM whose weights lie in one buffer (as cuDNN has them), one buffer behind five views
and one behind views that overlap, are views of views, and have other types; trained for five steps. Then what each
tensor is, from PyTorch itself: {name: [address of the storage, offset, shape, strides, bytes of an item, category]} into argv[1]."""
import json
import sys

import torch

import memprof.torch

memprof.resume()  # --paused: what the import takes is of no interest here, and most of a recording


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(1000, 64)
        self.hidden = torch.nn.Linear(64, 64)
        self.out = torch.nn.Linear(64, 1000, bias=False)
        self.out.weight = self.embed.weight  # tied
        flat = torch.zeros(4, 64, 64)
        for i in range(4):
            self.register_buffer('mask%d' % i, flat[i])
        self.register_buffer('across', flat[:, ::2, 0].t())
        base = torch.zeros(1024)
        self.register_buffer('low', base[:768])
        self.register_buffer('high', base[256:])
        self.register_buffer('nested', base[256:768][::4])
        self.register_buffer('ints', base.view(torch.int32)[:16])
        self.register_buffer('pairs', torch.view_as_complex(base.view(512, 2)))
        self.lstm = torch.nn.LSTM(8, 8)
        weights, place = list(self.lstm.parameters()), 0
        flat = torch.cat([weight.detach().reshape(-1) for weight in weights])
        for weight in weights:
            weight.data = flat[place:place + weight.numel()].view(weight.shape)
            place += weight.numel()

    def forward(self, x):
        return self.out(self.hidden(self.embed(x)) @ self.mask0)


net = Net()
hooks = memprof.torch.ranges(net)
optimizer = torch.optim.Adam(net.parameters())
for step in range(5):
    optimizer.zero_grad()
    net(torch.arange(32)).sum().backward()
    optimizer.step()
hooks.remove()
net(torch.arange(32))  # no range any more
with torch.no_grad(), memprof.torch.operators():
    for step in range(3):
        net.hidden(torch.zeros(32, 64))
    try:
        torch.zeros(2, 3) @ torch.zeros(2, 3)
    except RuntimeError:
        pass
    torch.zeros(5)
net.hidden(torch.zeros(32, 64))  # no operator any more

ledger = {}


def add(name, tensor, category):
    storage = tensor.untyped_storage() if hasattr(tensor, 'untyped_storage') else tensor.storage()
    ledger[name] = [storage.data_ptr(), tensor.data_ptr() - storage.data_ptr(), ','.join(map(str, tensor.shape)),
                    ','.join(map(str, tensor.stride())), tensor.element_size(), category]


for name, parameter in [('embed.weight', net.embed.weight), ('out.weight', net.out.weight),
                        ('hidden.weight', net.hidden.weight), ('hidden.bias', net.hidden.bias)]:
    add(name, parameter, 'parameter')
    add(name + '.grad', parameter.grad, 'gradient')
    for key, value in optimizer.state[parameter].items() if name != 'out.weight' else ():
        if isinstance(value, torch.Tensor):
            add(name + '.' + key, value, 'optimizer')
for name, parameter in net.lstm.named_parameters():
    add('lstm.' + name, parameter, 'parameter')
for name, buffer in net.named_buffers():
    add(name, buffer, 'buffer')
with open(sys.argv[1], 'w') as f:
    json.dump(ledger, f)
