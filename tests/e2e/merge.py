"""merge.py MEMPROF MERGED FILE...: by every key, the rows of MERGED are the sums of those of the FILEs: as many
allocations, bytes, frees, temporaries, live at the end and at the peak. With --no-stacks first, not by stack."""
import json
import subprocess
import sys

arguments = sys.argv[1:]
without_stacks = arguments[0] == "--no-stacks"
memprof, merged, *files = arguments[without_stacks:]
SUMS = ["alloc_count", "alloc_bytes", "free_count", "free_bytes", "temporary_count", "at_peak_bytes", "at_peak_count",
        "end_bytes", "end_count", "lifetime_ns"]
OF_SIZES = ["alloc_count", "alloc_bytes", "free_count", "temporary_count", "lifetime_ns"]


def frames(row):
    return tuple((f["function"], f["file"], f["line"], f.get("module")) for f in row["frames"])


def code(row):  # of what has a function only the first thousand rows say in which module
    return row["function"] or (row["module"], row["offset"]), row["file"], row["line"]


KEYS = {
    "line": code,
    "function": code,
    "file": lambda r: r["file"],
    "module": lambda r: r["module"],
    "device": lambda r: r["device"],
    "op": lambda r: (r["op"], r["phase"], r["module"]),
    "stack": frames,
    "thread": lambda r: (r["pid"], r["tid"], r["thread"]),
    "process": lambda r: (r["pid"], r["command"]),
    "size": lambda r: (r["from_bytes"], r["below_bytes"]),
}


def rows(path, by, *more):
    command = [memprof, "report", path, "--by", by, "--top", "0", "--frames", "0", "--json", *more]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["rows"]


def sums(paths, by, *more):
    names = OF_SIZES if by == "size" else SUMS
    total = {}
    for path in paths:
        for r in rows(path, by, *more):
            key = r["device"], r["kind"], KEYS[by](r)
            before = total.get(key) or [0] * len(names)
            total[key] = [had + (r[name] or 0) for had, name in zip(before, names)]
    return {key: value for key, value in total.items() if any(value)}


def check(by, *more):
    expected, got = sums(files, by, *more), sums([merged], by, *more)
    different = [(k, expected.get(k), got.get(k)) for k in expected.keys() | got.keys()
                 if expected.get(k) != got.get(k)]
    if different:
        sys.exit("by %s: %d of %d differ, such as %s" % (by, len(different), len(expected), different[:3]))
    print("  by %s %s: %d rows" % (by, " ".join(more), len(expected)))


for key in KEYS:
    if key != "stack" or not without_stacks:
        check(key)
for key in ["line", "function", "file", "module"]:
    check(key, "--inclusive")
