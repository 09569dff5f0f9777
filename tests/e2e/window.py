"""window.py MEMPROF DB WINDOWS: windows of a recording, as 'report --by stack', '--by device' and '--by thread' tell
them, against a replay of v_event in plain dictionaries. Prints how many numbers were compared."""
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


events = list(csv.DictReader(io.StringIO(run(
    "sql", path, "--csv", "SELECT time_ns, op, is_realloc, device, kind, address, size_bytes, thread_id, stack_id, "
    "process_id FROM v_event ORDER BY event_number"))))
teardown = {r["process_id"]: int(r["time_ns"])
            for r in csv.DictReader(io.StringIO(run("sql", path, "--csv", "SELECT * FROM teardown")))}
first = {r["process_id"]: r["first_id"] for r in csv.DictReader(io.StringIO(run(
    "sql", path, "--csv", "SELECT process_id, first_id FROM v_image")))}
end_ns = int(events[-1]["time_ns"])
for e in events:
    e["time_ns"], e["size_bytes"], e["address"] = int(e["time_ns"]), int(e["size_bytes"]), int(e["address"])


class Row:
    def __init__(self):
        self.live = self.blocks = 0
        self.sums = collections.Counter()

    def change(self, size, count):
        self.live += size
        self.blocks += count


def replay(start, end):
    """By (device, stack), (device,) and (device, thread): the statistics of the events in [start, end). And the most
    that (device, process) held there."""
    rows = collections.defaultdict(Row)
    held, most = collections.Counter(), {}
    blocks, newest, peaks, entered = {}, {}, {}, False

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
        most.update(held)

    for n, e in enumerate(events):
        if e["time_ns"] >= end:
            break
        if not entered and e["time_ns"] >= start:
            entered = True
            enter()
        op, size, device = e["op"], e["size_bytes"], e["device"]
        who = device, first[e["process_id"]]
        if op in ("alloc", "realloc", "end", "free", "to_segment", "cut"):
            held[who] += size if op in ("alloc", "realloc") else -size
            if entered:
                most[who] = max(most.get(who, 0), held[who])
        place = (e["address"], e["process_id"], e["kind"])
        if op in ("alloc", "realloc"):
            blocks[place] = (e, size)
            newest[e["thread_id"]] = e["address"]
            for key in ((device, e["stack_id"]), (device,), (device, "thread", e["thread_id"])):
                rows[key].change(size, 1)
                if entered:
                    rows[key].sums["alloc_count"] += 1
                    rows[key].sums["alloc_bytes"] += size
            if entered:
                look(device)
        elif op == "end":  # its address is the number of blocks; threads have their own
            mine = [p for p, (b, _) in blocks.items()
                    if b["process_id"] == e["process_id"] and b["stack_id"] == e["stack_id"] and b["kind"] == e["kind"]]
            for key in ((device, e["stack_id"]), (device,)):
                rows[key].change(-size, -e["address"])
                if entered:
                    rows[key].sums["end_bytes"] += size
                    rows[key].sums["end_count"] += e["address"]
            for p in mine:
                birth, left = blocks.pop(p)
                row = rows[(device, "thread", birth["thread_id"])]
                row.change(-left, -1)
                if entered:
                    row.sums["end_bytes"] += left
                    row.sums["end_count"] += 1
        elif op in ("free", "to_segment", "cut"):
            birth, _ = blocks.pop(place, (None, 0))
            gone = op != "cut"
            keys = [(device, e["stack_id"]), (device,)] + ([(device, "thread", birth["thread_id"])] if birth else [])
            began = teardown.get(e["process_id"])
            torn = (began is not None and birth and op != "to_segment" and start <= began <= e["time_ns"]
                    and birth["time_ns"] <= began)
            for key in keys:
                rows[key].change(-size, -int(gone))
                if not entered:
                    continue
                sums = rows[key].sums
                if op == "to_segment":
                    sums["alloc_count"] -= 1
                    sums["alloc_bytes"] -= size
                    continue
                sums["free_count"] += gone
                sums["free_bytes"] += size
                sums["temporary_count"] += bool(gone and birth and e["is_realloc"] == "0"
                                                and newest.get(birth["thread_id"]) == e["address"])
                if torn:
                    sums["end_bytes"] += size
                    sums["end_count"] += gone
        elif op == "split" and place in blocks:
            birth, whole = blocks[place]
            blocks[place] = (birth, size)
            blocks[(e["address"] + size, *place[1:])] = (birth, whole - size)
    if not entered:
        enter()
    for key, row in rows.items():
        row.sums["end_bytes"] += row.live
        row.sums["end_count"] += row.blocks
        held = peaks.get(key[0], (0, {}))[1].get(key, (0, 0))
        row.sums["at_peak_bytes"], row.sums["at_peak_count"] = held
    return {key: row.sums for key, row in rows.items()}, most


STATS = ("start_bytes", "start_count", "alloc_count", "alloc_bytes", "free_count", "free_bytes", "temporary_count",
         "end_bytes", "end_count", "at_peak_bytes", "at_peak_count")
threads = {(r["process_id"], r["tid"]): r["thread_id"] for r in csv.DictReader(io.StringIO(run(
    "sql", path, "--csv", "SELECT thread_id, tid, process_id FROM thread")))}
compared = 0


def compare(what, expected, got):
    global compared
    for key in expected.keys() | got.keys():
        for stat in STATS:
            compared += 1
            if expected.get(key, {}).get(stat, 0) != got.get(key, {}).get(stat, 0):
                sys.exit("%s %s: %s is %s, expected %s" % (what, key, stat, got.get(key, {}).get(stat),
                                                         expected.get(key, {}).get(stat)))


random.seed(7)
for i in range(windows):
    a, b = sorted(random.choice((random.randrange(end_ns), random.choice(events)["time_ns"])) for _ in range(2))
    if a == b:
        continue
    expected, most = replay(a, b)
    options = ["--from", "%dns" % a, "--to", "%dns" % b, "--json", "--top", "0"]
    rows = json.loads(run("report", path, "--by", "stack", *options))["rows"]
    compare("%d to %d: stack" % (a, b), {k: v for k, v in expected.items() if len(k) == 2},
            {(r["device"], str(r["key_id"])): r for r in rows})
    rows = json.loads(run("report", path, "--by", "device", *options))["rows"]
    compare("%d to %d: device" % (a, b), {k: v for k, v in expected.items() if len(k) == 1},
            {(r["device"],): r for r in rows if r["alloc_count"] or r["end_count"] or r["free_count"]})
    if i % 3 == 0:
        rows = json.loads(run("report", path, "--by", "thread", *options))["rows"]
        compare("%d to %d: thread" % (a, b), {k: v for k, v in expected.items() if len(k) == 3},
                {(r["device"], "thread", threads[(str(r["process_id"]), str(r["tid"]))]): r for r in rows})
        rows = json.loads(run("report", path, "--by", "process", *options))["rows"]
        got = {(r["device"], str(r["key_id"])): r["own_peak_bytes"] for r in rows}
        for key in got:
            compared += 1
            if got[key] != most.get(key, 0):
                sys.exit("%d to %d: process %s: own peak %s, expected %s" % (a, b, key, got[key], most.get(key)))
    for by in ("thread", "process"):  # as people see it, from sums where one thread alone allocated
        text = [run("report", path, "--by", by, "--top", "0", *options[:4], *more) for more in ((), ("--sort", "active.at_peak"))]
        if sorted(text[0].splitlines()[2:]) != sorted(text[1].splitlines()[2:]):
            sys.exit("%d to %d by %s:\n%s\nby the events:\n%s" % (a, b, by, *text))
        compared += 1
print(compared)
