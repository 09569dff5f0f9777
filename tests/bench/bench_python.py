# What recording costs per Python frame: a malloc and its free below 2 to 202 Python frames, interleaved, minima.
# memprof run -q --aggregate python3 bench_python.py lib_churn.so; without memprof the differences are 0.
import ctypes, sys

churn = ctypes.CDLL(sys.argv[1]).churn
churn.restype, churn.argtypes = ctypes.c_double, [ctypes.c_long, ctypes.c_long]


def below(depth):
    return below(depth - 1) if depth else churn(20, 500)


def distinct(n):  # n functions that call each other: code objects of their own, as real programs have
    space = {"churn": churn}
    for i in range(n):
        exec(f"def f{i}(): return " + (f"f{i - 1}()" if i else "churn(20, 500)"), space)
    return space[f"f{n - 1}"]


functions = {n: distinct(n) for n in (2, 52, 202)}
same, other = {}, {}
for _ in range(40):
    for n, f in functions.items():
        same[n] = min(same.get(n, 1e9), below(n - 1))
        other[n] = min(other.get(n, 1e9), f())
print("ns a pair:", {n: round(v, 1) for n, v in same.items()}, "one function;",
      {n: round(v, 1) for n, v in other.items()}, "distinct ones")
print("ns a frame: %.2f to 52, %.2f to 202, one function; %.2f to 52, %.2f to 202, distinct ones" % (
    (same[52] - same[2]) / 50, (same[202] - same[2]) / 200, (other[52] - other[2]) / 50, (other[202] - other[2]) / 200))
