"""Parts of a rotated recording, oldest first: totals, peaks and live bytes of each as its events tell them, from what it
says that it inherited; over all of them, the run's. rotate.py MEMPROF FILE..."""
import csv
import io
import subprocess
import sys

BIRTHS = ("alloc", "realloc")
DEATHS = ("free", "realloc_free", "end", "cut")


def rows(file, sql):
    out = subprocess.run([sys.argv[1], "sql", "--csv", file, sql], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(out)))


def replay(events, level):
    sums = dict(alloc_bytes=0, alloc_count=0, free_bytes=0, free_count=0)
    peak = level
    for e in events:
        size = int(e["size_bytes"])
        if e["op"] in BIRTHS:
            level += size
            sums["alloc_bytes"] += size
            sums["alloc_count"] += 1
            peak = max(peak, level)
        elif e["op"] in DEATHS:
            level -= size
            sums["free_bytes"] += size if e["op"] == "cut" else 0
            if e["op"] not in ("end", "cut"):
                sums["free_bytes"] += size
                sums["free_count"] += 1
    return dict(sums, peak_active_bytes=peak), level


def same(what, expected, got):
    if expected != got:
        sys.exit(f"{what}: expected {expected}, got {got}")


def check_device(device, files):
    all_events, peaks, before, allocated = [], [], 0, 0
    for file in files:
        events = rows(file, f"SELECT op, size_bytes FROM v_event WHERE device = '{device}'")
        total = rows(file, f"SELECT sum(alloc_bytes) AS alloc_bytes, sum(alloc_count) AS alloc_count, sum(free_bytes) "
                           f"AS free_bytes, sum(free_count) AS free_count, max(peak_active_bytes) AS "
                           f"peak_active_bytes FROM v_total WHERE device = '{device}' AND kind = 'all'")[0]
        start = rows(file, "SELECT coalesce(sum(start_bytes), 0) AS bytes, coalesce(sum(start_count), 0) AS count FROM "
                           f"total_start JOIN device USING(device_id) WHERE name = '{device}' AND kind = 'all'")[0]
        same(f"{file}: inherited", before, int(start["bytes"]))
        expected, before = replay(events, before)
        for name, value in expected.items():
            same(f"{file}: {name}", value, int(total[name] or 0))
        lines = rows(file, "SELECT sum(alloc_count) AS alloc_count, sum(free_count) AS free_count, sum(start_count) AS "
                           f"start_count FROM account_stat JOIN device USING(device_id) WHERE name = '{device}' AND "
                           "scope = 'line' AND inclusive = 0 AND kind = 'all'")[0]
        same(f"{file}: lines", [str(expected["alloc_count"]), str(expected["free_count"]), start["count"]],
             [lines["alloc_count"], lines["free_count"], lines["start_count"]])
        timeline = rows(file, f"SELECT max(active_max_bytes) AS most, sum(alloc_count) AS count FROM timeline JOIN "
                              f"device USING(device_id) WHERE name = '{device}' AND level = 0")[0]
        same(f"{file}: timeline", [expected["peak_active_bytes"], expected["alloc_count"]],
             [int(timeline["most"]), int(timeline["count"])])
        threads = rows(file, f"SELECT sum(alloc_count) AS count FROM v_thread WHERE kind = 'all' AND device = '{device}'")[0]
        same(f"{file}: threads", expected["alloc_count"], int(threads["count"] or 0))
        sizes = rows(file, "SELECT sum(alloc_count) AS count, sum(free_count) AS freed FROM size_class JOIN device "
                           f"USING(device_id) WHERE name = '{device}'")[0]
        same(f"{file}: sizes", [expected["alloc_count"], expected["free_count"]],
             [int(sizes["count"] or 0), int(sizes["freed"] or 0)])
        own = rows(file, "SELECT own_peak_bytes AS bytes, at_peak_bytes AS held FROM account WHERE scope = 'function' AND inclusive = 1 AND kind "
                         f"= 'all' AND device_id = (SELECT device_id FROM device WHERE name = '{device}') ORDER BY at_peak_bytes DESC LIMIT 1")
        if own and int(own[0]["held"]) == expected["peak_active_bytes"]:  # one that calls all
            same(f"{file}: own peak of the top function", own[0]["held"], own[0]["bytes"])
        peaks.append(expected["peak_active_bytes"])
        allocated += expected["alloc_count"]
        all_events += events
    whole, _ = replay(all_events, 0)
    same("the largest peak of the parts", whole["peak_active_bytes"], max(peaks))
    same("the sum of the allocations", whole["alloc_count"], allocated)
    return f"{len(files)} parts: {allocated} allocations, peaks {peaks}"


for name in [row["name"] for row in rows(sys.argv[-1], "SELECT name FROM device")]:
    print(f"{name}: {check_device(name, sys.argv[2:])}")
