# A script whose memory is known: each line below allocates what the table must say.
import os, sys

KIB = 1024


class Net:
    def __init__(self, layers):
        self.weights = [bytes(100 * KIB) for _ in range(layers)]
        self.cache = None

    def forward(self, n):
        self.cache = bytes(300 * KIB)
        for _ in range(n):
            bytes(200 * KIB)
        return bytes(50 * KIB)

    def release(self):
        self.cache = None


def main():
    net = Net(10)
    kept = []
    for _ in range(4):
        kept.append(net.forward(5))
        net.release()
    if os.fork() == 0:
        child = bytes(700 * KIB)
        os._exit(0)
    os.wait()
    os._exit(len(kept) - 4)


main()
