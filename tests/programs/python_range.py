"""A script whose functions --range makes ranges of; LEAK bytes a step are kept on purpose."""
from __future__ import annotations

import inspect
import os
import sys

kept = []
LEAK = int(os.environ.get("LEAK", "0"))


class Net:
    def forward(self, size):
        """What the step makes."""
        return bytearray(size)

    def __secret(self):
        return locals()

    def names(self):
        return sorted(self.__secret()) + sorted(locals())


def step(number, net=Net(), *, size=100000):
    made = net.forward(size + number % 7 * 1000)
    if LEAK:
        kept.append(bytearray(LEAK - 1))  # and a byte behind its end
    if number % 2:
        return len(made)
    try:
        return len(made) + 1
    finally:
        made.append(1)


def nested(depth):
    captured = [depth]

    def inner():
        return captured
    return nested(depth - 1) if depth else inner()[0]


def fails():
    made = bytearray(50000)
    raise ValueError(len(made))


def generate():
    yield from range(3)


async def coroutine():
    pass


def main():
    print([step(number) for number in range(int(sys.argv[1]))][-2:])
    print(nested(3), sum(generate()), Net().names())
    try:
        fails()
    except ValueError as error:
        frame = error.__traceback__.tb_next
        print(error, frame.tb_lineno, frame.tb_next, sorted(frame.tb_frame.f_locals))
    print(inspect.signature(step), step.__code__.co_firstlineno, Net.forward.__doc__, step.__qualname__)
    print(__name__, __spec__, __package__, __cached__, __file__, type(__loader__).__name__, __doc__, sys.argv)
    print(sys.path, sorted(globals()), annotations.mandatory)


main()
