#!/usr/bin/env python3
"""A small transformer that learns to sort digits: what a training script looks like to memprof.

    memprof run -- python3 samples/train.py
    memprof lines --func forward
    memprof report --by op

With --ledger it prints, as JSON, the bytes that it knows of its own tensors (element_size * nelement).
"""
import argparse
import json
import math

import torch
from torch import nn
from torch.nn import functional as F

DIGITS = 10


class Attention(nn.Module):
    """Multi-head self-attention, written out so that each product has its line."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scale = 1.0 / math.sqrt(width // heads)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q = q.view(batch, length, self.heads, -1).transpose(1, 2)
        k = k.view(batch, length, self.heads, -1).transpose(1, 2)
        v = v.view(batch, length, self.heads, -1).transpose(1, 2)
        scores = torch.matmul(q * self.scale, k.transpose(2, 3))
        weights = torch.softmax(scores, dim=3)
        mixed = torch.matmul(weights, v)
        ledger.add("scores", scores)
        ledger.add("weights", weights)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        hidden = self.up(self.norm2(x))
        activated = F.gelu(hidden)
        ledger.add("hidden", hidden)
        ledger.add("activated", activated)
        return x + self.down(activated)


class Sorter(nn.Module):
    def __init__(self, length, width, heads, depth):
        super().__init__()
        self.token = nn.Embedding(DIGITS, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, DIGITS)

    def forward(self, digits):
        x = self.token(digits) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Ledger:
    """Bytes of tensors by name: what the script itself knows, to compare with what was measured."""

    def __init__(self):
        self.bytes = {}
        self.count = {}

    def add(self, name, tensor):
        size = tensor.element_size() * tensor.nelement()
        self.bytes[name] = self.bytes.get(name, 0) + size
        self.count[name] = self.count.get(name, 0) + 1


ledger = Ledger()


def batch_of(size, length):
    digits = torch.randint(0, DIGITS, (size, length))
    return digits, digits.sort(dim=1).values


def train_step(model, optimizer, digits, wanted):
    optimizer.zero_grad(set_to_none=True)
    logits = model(digits)
    loss = F.cross_entropy(logits.reshape(-1, DIGITS), wanted.reshape(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--ledger", action="store_true", help="print the known bytes as JSON")
    arguments = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Sorter(arguments.length, arguments.width, heads=4, depth=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    first = last = None
    for _ in range(arguments.steps):
        digits, wanted = batch_of(arguments.batch, arguments.length)
        last = train_step(model, optimizer, digits, wanted)
        first = last if first is None else first
    for parameter in model.parameters():
        ledger.add("parameters", parameter)
        ledger.add("gradients", parameter.grad)
        ledger.add("first moments", optimizer.state[parameter]["exp_avg"])
        ledger.add("second moments", optimizer.state[parameter]["exp_avg_sq"])
    if arguments.ledger:
        print(json.dumps({"bytes": ledger.bytes, "count": ledger.count}))
    else:
        print(f"loss {first:.3f} -> {last:.3f} in {arguments.steps} steps")


if __name__ == "__main__":
    main()
