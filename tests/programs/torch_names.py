"""A module with tied weights and one buffer behind five views, trained for five steps; then what each tensor is, from
PyTorch itself: {name: [address of the storage, offset, shape, strides, bytes of an item, category]} into argv[1]."""
import json
import sys

import torch


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

    def forward(self, x):
        return self.out(self.hidden(self.embed(x)) @ self.mask0)


net = Net()
optimizer = torch.optim.Adam(net.parameters())
for step in range(5):
    optimizer.zero_grad()
    net(torch.arange(32)).sum().backward()
    optimizer.step()

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
for name, buffer in net.named_buffers():
    add(name, buffer, 'buffer')
with open(sys.argv[1], 'w') as f:
    json.dump(ledger, f)
