"""What a page draws by category, compared at each of its stored instants with the events and names of the recording.

categories.py PAGE DATABASE MEMPROF: the page needs no browser for that. Prints the categories with their highest bytes.
"""
import base64
import csv
import json
import re
import sqlite3
import subprocess
import sys
import zlib
from itertools import accumulate

page, database, memprof = sys.argv[1:]
SHOWN = {"forward": "activation", "backward": "backward"}


def part(name):
    text = re.search(r'id="data-%s">([^<]*)<' % name, open(page, encoding="utf-8").read()).group(1)
    return json.loads(zlib.decompress(base64.b64decode(text), -15))


db = sqlite3.connect(database)
phases = dict(db.execute("SELECT site_id, phase FROM site_op JOIN op USING(op_id) WHERE phase IN ('forward', 'backward')"))
changes = {}  # category: [(time, bytes)]
events = subprocess.run([memprof, "sql", "--csv", database, "SELECT time_ns, op, size_bytes, site_id FROM v_event "
                         "WHERE site_id IN (SELECT site_id FROM site_op)"], check=True, capture_output=True, text=True)
for time_ns, op, size, site in list(csv.reader(events.stdout.splitlines()))[1:]:
    if int(site) in phases:
        changes.setdefault(SHOWN[phases[int(site)]], []).append((int(time_ns), int(size) if op == "alloc" else -int(size)))
ends = dict(db.execute("SELECT process_id, end_ns FROM process"))
for process, site, size, alloc, free, category in db.execute(
        "SELECT process_id, min(site_id), min(block_bytes), alloc_ns, max(free_ns), max(category) FROM block_name "
        "GROUP BY process_id, block_address, alloc_ns"):
    free = ends[process] if free is None else free  # what a process had as it ended is gone then
    for name, sign in ((category, 1), (SHOWN.get(phases.get(site)), -1)):
        if name:
            changes.setdefault(name, []).extend([(alloc, sign * size), (free, -sign * size)])

instants = part("instants")
times = list(accumulate(instants["time"]))
drawn = {}
for row in instants["categories"]:
    drawn[row["name"]] = [a + b for a, b in zip(drawn.get(row["name"], [0] * len(times)), accumulate(row["bytes"]))]
assert set(drawn) == set(changes), (set(drawn), set(changes))
for name, steps in changes.items():
    steps.sort()
    level = place = 0
    for i, time in enumerate(times):
        while place < len(steps) and steps[place][0] <= time:
            level += steps[place][1]
            place += 1
        assert drawn[name][i] == level, f"{name} at {time} ns: drawn {drawn[name][i]}, events say {level}"
# The report says the same of an instant: the highest of the activations, else the peak.
most = drawn.get("activation") or [flags & 1 for flags in instants["flags"]]
at = most.index(max(most))
report = subprocess.run([memprof, "report", database, "--by", "category", "--at", "%dns" % times[at], "--csv"], check=True,
                        capture_output=True, text=True)
rows = list(csv.DictReader(report.stdout.splitlines()))
told = {row["category"]: int(row["bytes"]) for row in rows if row["category"] and int(row["bytes"])}
assert told == {name: levels[at] for name, levels in drawn.items() if levels[at]}, (told, times[at])
for name in sorted(drawn):
    print(name, max(drawn[name]))
