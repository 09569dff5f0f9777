# memprof top with two GPUs: devices, their bars, lines of each, against what the program says it has, on the simulated
# driver.
export SIM_CUDA_DEVICES=2 SIM_CUDA_BYTES=268435456 SIM_CUDA_CONTEXT_BYTES=16777216 SIM_CUDA_STATE="$PWD/state"
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/cuda/lib.sh"
need python3
cat >gpus.c <<'EOF'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define MIB (1ul << 20)
static void *driver;
static int (*allocate)(uint64_t *, size_t);
static void *find(const char *name) { return dlsym(driver, name); }
static void small(void)
{
    uint64_t p;
    if (allocate(&p, 3 * MIB))
        exit(3);
}
static void large(size_t size)
{
    uint64_t p;
    if (allocate(&p, size))
        exit(3);
}
int main(void)
{
    void *context[2];
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || ((int (*)(unsigned))find("cuInit"))(0))
        return 2;
    *(void **)&allocate = find("cuMemAlloc_v2");
    for (int i = 0; i < 2; i++) {
        ((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context[i], i);
        ((int (*)(void *))find("cuCtxSetCurrent"))(context[i]);
        large((i ? 7 : 5) * MIB);
        if (!i)
            small();
    }
    puts("ready");
    fflush(stdout);
    return getchar() != EOF;
}
EOF
$CC -g -O0 -o gpus gpus.c -ldl
cat >top_cuda.py <<'EOF'
import json
import os
import subprocess
import sys
import time

from pty_screen import LIMIT, Screen

MEMPROF = os.environ["MEMPROF"]
MIB = 1 << 20
run = subprocess.Popen([MEMPROF, "run", "-q", "-o", "out.db", "--", "./gpus"], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE)
if run.stdout.readline() != b"ready\n":
    sys.exit("FAIL: it does not run")


def top(*arguments):
    return json.loads(subprocess.check_output([MEMPROF, "top", "--once", "--json", "out.db", *arguments]))


def device(got, name):
    return {d["device"]: d for d in got["devices"]}.get(name, {})


def equal(what, expected, got):
    if expected != got:
        sys.exit("FAIL: %s: expected %r, got %r" % (what, expected, got))
    print("  %s = %s" % (what, got))


end = time.monotonic() + LIMIT
while device(top(), "cuda:1").get("used_bytes") != 23 * MIB:  # the context, and 7 MiB; sampled
    if time.monotonic() > end:
        sys.exit("FAIL: %s" % top())
    time.sleep(0.05)
got = top("--by", "function")
for name, active, count in ("cuda:0", 8, 2), ("cuda:1", 7, 1):
    d = device(got, name)
    equal(name, (active * MIB, count, active * MIB, (16 + active) * MIB, 256 * MIB, active * MIB),
          tuple(d[k] for k in ("active_bytes", "active_count", "reserved_bytes", "used_bytes", "total_bytes",
                               "peak_active_bytes")))
rows = {(r["device"], r["function"]): r["active_bytes"] for r in got["rows"] if r["device"] != "host"}
equal("rows", {("cuda:0", "large"): 5 * MIB, ("cuda:0", "small"): 3 * MIB, ("cuda:1", "large"): 7 * MIB}, rows)
got = top("--device", "cuda:1", "--by", "function")
equal("one device", (["cuda:1"], [("large", 7 * MIB)]),
      ([d["device"] for d in got["devices"]], [(r["function"], r["active_bytes"]) for r in got["rows"]]))
equal("a type", ["cuda:0", "cuda:1"], [d["device"] for d in top("--device", "cuda")["devices"]])

screen = Screen([MEMPROF, "top", "out.db", "-n", "0.2"], width=100)
first = "cuda:0  active 8.00 MiB  used 24.00 MiB  reserved 8.00 MiB  total 256.00 MiB"
screen.wait("all devices", lambda t: first in t and
            "cuda:1  active 7.00 MiB  used 23.00 MiB" in t and "\nhost " in t)
screen.send("dd")
screen.wait("cuda:0 alone", lambda t: "first of cuda:0" in t and "\nhost " not in t and "\ncuda:1" not in t and
            # 8 of 256 MiB are active and 16 more used, of 98 columns: 3 and 6
            "\n[" + "█" * 3 + "░" * 6 + " " * 89 + "]" in t)
screen.send("d")
screen.wait("cuda:1 alone", lambda t: "first of cuda:1" in t and "small" not in t and "large" in t)
screen.send("d")
screen.wait("all again", lambda t: "\nhost " in t and "\ncuda:1" in t)
screen.send("q")
equal("status", 0, screen.end())
run.stdin.close()
equal("status of the program", 0, run.wait())
EOF
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$ROOT/tests" python3 top_cuda.py || fail 'top_cuda.py'
