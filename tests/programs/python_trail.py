"""16,384 stacks of Python's that differ in the lines alone, each with a size of its own; the first 4,096 again, twice in
the same order, all of them in a fork's child, and the first ones in an order of its own. Argument 1: a library whose
take(n) allocates and frees."""
import ctypes
import os
import sys

LEVELS = 14
take = ctypes.CDLL(sys.argv[1]).take


def call(level, number):
    if level == 0:
        take(5000000 + number)
    elif number >> (level - 1) & 1:
        call(level - 1, number)
    else:
        call(level - 1, number)


def all_of(numbers):
    for number in numbers:
        call(LEVELS, number)


FEW = list(range(4096))
ALL = list(range(1 << LEVELS))
TURNS = [ALL, FEW + FEW, ALL[len(FEW):] + FEW + FEW, [(number * 7 + 3) % len(FEW) for number in FEW]]
for turn, numbers in enumerate(TURNS):
    is_child = turn == 2 and os.fork() == 0
    if turn == 2 and not is_child:
        os.wait()
        continue
    all_of(numbers)
    if is_child:
        os._exit(0)
