"""window.py MEMPROF DB WINDOWS: windows of a recording, as 'report --by stack', device, thread, process and size tell them, against a replay of v_event in plain dictionaries. Prints how many numbers were compared."""
import collections
import csv
import io
import json
import random
import subprocess
import sys

memprof, path, windows = sys.argv[1], sys.argv[2], int(sys.argv[3])


def run(*arguments):
    return subprocess.run([memprof, *arguments], check=True, capture_output=True, text=True).stdout


reader = csv.reader(io.StringIO(run(
    "sql", path, "--csv", "SELECT time_ns, op, is_realloc, device, kind, address, size_bytes, thread_id, stack_id, "
    "process_id FROM v_event ORDER BY event_number")))
next(reader)
events = [(int(time), op, realloc == "1", device, kind, int(address), int(size), thread, stack, process)
          for time, op, realloc, device, kind, address, size, thread, stack, process in reader]
teardown = {r["process_id"]: int(r["time_ns"])
            for r in csv.DictReader(io.StringIO(run("sql", path, "--csv", "SELECT * FROM teardown")))}
first = {r["process_id"]: r["first_id"] for r in csv.DictReader(io.StringIO(run(
    "sql", path, "--csv", "SELECT process_id, first_id FROM v_image")))}
end_ns = events[-1][0]


class Row:
    def __init__(self):
        self.live = self.blocks = 0
        self.sums = collections.Counter()


SIGN = {"alloc": 1, "realloc": 1, "end": -1, "free": -1, "to_segment": -1, "cut": -1}


def most_held(start, end):
    """By (device, process): the most that it held at any instant of [start, end)."""
    held, most, entered = collections.Counter(), {}, False
    for time, op, _, device, _, _, size, _, _, process in events:
        if time >= end:
            break
        if not entered and time >= start:
            entered = True
            most.update(held)
        if op in SIGN:
            who = device, first[process]
            held[who] += SIGN[op] * size
            if entered and held[who] > most.get(who, 0):
                most[who] = held[who]
    return most if entered else held


def replay(start, end):
    """By (device, stack), (device,) and (device, thread): the statistics of the events in [start, end). And by (device,
    highest bit) what was done with blocks of a size."""
    sizes = collections.defaultdict(collections.Counter)
    rows = collections.defaultdict(Row)
    blocks, newest, peaks, entered = {}, {}, {}, False
    outside = collections.Counter()

    def look(device):
        """A new peak of a device: what each row of it holds."""
        if device in peaks and rows[(device,)].live <= peaks[device][0]:
            return
        peaks[device] = (rows[(device,)].live, {k: (r.live, r.blocks) for k, r in rows.items() if k[0] == device})

    def enter():
        for key, row in list(rows.items()):
            row.sums["start_bytes"], row.sums["start_count"] = row.live, row.blocks
        for key in list(rows):
            if len(key) == 1:
                look(key[0])

    for time, op, is_realloc, device, kind, address, size, thread, stack, process in events:
        if time >= end:
            break
        if not entered and time >= start:
            entered = True
            enter()
        of_size = sizes[device, str(1 << size.bit_length() - 1 if size else 0)] if entered else outside
        place = (address, process, kind)
        if op in ("alloc", "realloc"):
            blocks[place] = (thread, stack, time, size)
            newest[thread] = address
            for key in ((device, stack), (device,), (device, "thread", thread)):
                row = rows[key]
                row.live += size
                row.blocks += 1
                if entered:
                    row.sums["alloc_count"] += 1
                    row.sums["alloc_bytes"] += size
            if entered:
                of_size["alloc_count"] += 1
                of_size["alloc_bytes"] += size
                look(device)
        elif op == "end":  # its address is the number of blocks; threads have their own
            mine = [p for p, b in blocks.items() if p[1:] == (process, kind) and b[1] == stack]
            for key in ((device, stack), (device,)):
                row = rows[key]
                row.live -= size
                row.blocks -= address
                if entered:
                    row.sums["end_bytes"] += size
                    row.sums["end_count"] += address
            for p in mine:
                whose, _, _, left = blocks.pop(p)
                row = rows[(device, "thread", whose)]
                row.live -= left
                row.blocks -= 1
                if entered:
                    row.sums["end_bytes"] += left
                    row.sums["end_count"] += 1
        elif op in ("free", "to_segment", "cut"):
            birth = blocks.pop(place, None)
            gone = op != "cut"
            keys = ((device, stack), (device,)) + (((device, "thread", birth[0]),) if birth else ())
            for key in keys:
                row = rows[key]
                row.live -= size
                row.blocks -= gone
            if not entered:
                continue
            began = teardown.get(process)
            torn = (began is not None and birth and op != "to_segment" and start <= began <= time
                    and birth[2] <= began)
            temporary = bool(birth and op == "free" and not is_realloc and newest.get(birth[0]) == address)
            if op == "to_segment":
                of_size["alloc_count"] -= 1
                of_size["alloc_bytes"] -= size
            elif gone:
                of_size["free_count"] += 1
                of_size["temporary_count"] += temporary
            for key in keys:
                sums = rows[key].sums
                if op == "to_segment":
                    sums["alloc_count"] -= 1
                    sums["alloc_bytes"] -= size
                    continue
                sums["free_count"] += gone
                sums["free_bytes"] += size
                sums["temporary_count"] += temporary
                if torn:
                    sums["end_bytes"] += size
                    sums["end_count"] += gone
        elif op == "split" and place in blocks:
            *birth, whole = blocks[place]
            blocks[place] = (*birth, size)
            blocks[(address + size, process, kind)] = (*birth, whole - size)
    if not entered:
        enter()
    for key, row in rows.items():
        row.sums["end_bytes"] += row.live
        row.sums["end_count"] += row.blocks
        held = peaks.get(key[0], (0, {}))[1].get(key, (0, 0))
        row.sums["at_peak_bytes"], row.sums["at_peak_count"] = held
    return {key: row.sums for key, row in rows.items()}, sizes


STATS = ("start_bytes", "start_count", "alloc_count", "alloc_bytes", "free_count", "free_bytes", "temporary_count",
         "end_bytes", "end_count", "at_peak_bytes", "at_peak_count")
threads = {(r["process_id"], r["tid"]): r["thread_id"] for r in csv.DictReader(io.StringIO(run(
    "sql", path, "--csv", "SELECT thread_id, tid, process_id FROM thread")))}
compared = 0


def compare(what, expected, got, stats=STATS):
    global compared
    for key in expected.keys() | got.keys():
        for stat in stats:
            compared += 1
            if expected.get(key, {}).get(stat, 0) != got.get(key, {}).get(stat, 0):
                sys.exit("%s %s: %s is %s, expected %s" % (what, key, stat, got.get(key, {}).get(stat),
                                                         expected.get(key, {}).get(stat)))


random.seed(7)
for i in range(windows):
    a, b = sorted(random.choice((random.randrange(end_ns), random.choice(events)[0])) for _ in range(2))
    if a == b:
        continue
    expected, sizes = replay(a, b)
    most = most_held(a, b)
    options = ["--from", "%dns" % a, "--to", "%dns" % b, "--json", "--top", "0"]
    rows = json.loads(run("report", path, "--by", "stack", *options))["rows"]
    compare("%d to %d: stack" % (a, b), {k: v for k, v in expected.items() if len(k) == 2},
            {(r["device"], str(r["key_id"])): r for r in rows})
    rows = json.loads(run("report", path, "--by", "device", *options))["rows"]
    compare("%d to %d: device" % (a, b), {k: v for k, v in expected.items() if len(k) == 1},
            {(r["device"],): r for r in rows if r["alloc_count"] or r["end_count"] or r["free_count"]})
    rows = json.loads(run("report", path, "--by", "thread", *options))["rows"]
    compare("%d to %d: thread" % (a, b), {k: v for k, v in expected.items() if len(k) == 3},
            {(r["device"], "thread", threads[(str(r["process_id"]), str(r["tid"]))]): r for r in rows})
    rows = json.loads(run("report", path, "--by", "process", *options))["rows"]
    got = {(r["device"], str(r["key_id"])): r["own_peak_bytes"] for r in rows}
    for key in got:
        compared += 1
        if got[key] != most.get(key, 0):
            sys.exit("%d to %d: process %s: own peak %s, expected %s" % (a, b, key, got[key], most.get(key)))
    rows = json.loads(run("report", path, "--by", "size", *options[:5]))["rows"]
    compare("%d to %d: size" % (a, b), sizes, {(r["device"], str(r["from_bytes"])): r for r in rows},
            ("alloc_count", "alloc_bytes", "free_count", "temporary_count"))
most = most_held(0, end_ns + 1)
for r in json.loads(run("report", path, "--by", "process", "--json"))["rows"]:
    compared += 1
    if r["own_peak_bytes"] != most.get((r["device"], str(r["key_id"])), 0):
        sys.exit("process %s: own peak %s, expected %s" % (r["key_id"], r["own_peak_bytes"], most))
for by in ("thread", "process"):  # what only the events tell is asked for, so they tell the rest as well
    shown = [{(r["device"], r["key_id"]): {k: v for k, v in r.items() if k in STATS + ("own_peak_bytes",)}
              for r in json.loads(run("report", path, "--by", by, "--from", "1ns", "--json", *more))["rows"]}
             for more in ((), ("--sort", "lifetime.total"))]
    if shown[0] != shown[1] or not shown[0]:
        sys.exit("by %s: %s, by the events %s" % (by, *shown))
print(compared)
