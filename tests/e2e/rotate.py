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


# of a device, in one row: a program is started for each statement
FIGURES = """SELECT * FROM
    (SELECT sum(alloc_bytes) AS alloc_bytes, sum(alloc_count) AS alloc_count, sum(free_bytes) AS free_bytes,
        sum(free_count) AS free_count, max(peak_active_bytes) AS peak_active_bytes
    FROM v_total WHERE device = '{0}' AND kind = 'all'),
    (SELECT coalesce(sum(start_bytes), 0) AS start_bytes, coalesce(sum(start_count), 0) AS start_count
    FROM total_start JOIN device USING(device_id) WHERE name = '{0}' AND kind = 'all'),
    (SELECT sum(alloc_count) AS line_allocs, sum(free_count) AS line_frees, sum(start_count) AS line_starts
    FROM account_stat JOIN device USING(device_id)
    WHERE name = '{0}' AND scope = 'line' AND inclusive = 0 AND kind = 'all'),
    (SELECT max(active_max_bytes) AS timeline_most, sum(alloc_count) AS timeline_allocs
    FROM timeline JOIN device USING(device_id) WHERE name = '{0}' AND level = 0),
    (SELECT sum(alloc_count) AS thread_allocs FROM v_thread WHERE kind = 'all' AND device = '{0}'),
    (SELECT sum(alloc_count) AS size_allocs, sum(free_count) AS size_frees
    FROM size_class JOIN device USING(device_id) WHERE name = '{0}')
    LEFT JOIN (SELECT own_peak_bytes AS own_bytes, at_peak_bytes AS held FROM account WHERE scope = 'function'
    AND inclusive = 1 AND kind = 'all' AND device_id = (SELECT device_id FROM device WHERE name = '{0}')
    ORDER BY at_peak_bytes DESC LIMIT 1) ON 1"""


def check_device(device, files, events_of):
    all_events, peaks, before, allocated = [], [], 0, 0
    for file in files:
        events = [e for e in events_of[file] if e["device"] == device]
        figures = {name: int(value or 0) for name, value in rows(file, FIGURES.format(device))[0].items()}
        same(f"{file}: inherited", before, figures["start_bytes"])
        expected, before = replay(events, before)
        for name, value in expected.items():
            same(f"{file}: {name}", value, figures[name])
        allocs, frees, peak = (expected[name] for name in ("alloc_count", "free_count", "peak_active_bytes"))
        same(f"{file}: lines", (allocs, frees, figures["start_count"]),
             tuple(figures[name] for name in ("line_allocs", "line_frees", "line_starts")))
        same(f"{file}: timeline", (peak, allocs), (figures["timeline_most"], figures["timeline_allocs"]))
        same(f"{file}: threads", allocs, figures["thread_allocs"])
        same(f"{file}: sizes", (allocs, frees), (figures["size_allocs"], figures["size_frees"]))
        if figures["held"] == peak:  # of one that calls all
            same(f"{file}: own peak of the top function", peak, figures["own_bytes"])
        peaks.append(peak)
        allocated += allocs
        all_events += events
    whole, _ = replay(all_events, 0)
    same("the largest peak of the parts", whole["peak_active_bytes"], max(peaks))
    same("the sum of the allocations", whole["alloc_count"], allocated)
    return f"{len(files)} parts: {allocated} allocations, peaks {peaks}"


parts = sys.argv[2:]
of_parts = {part: rows(part, "SELECT device, op, size_bytes FROM v_event") for part in parts}
for device in [row["name"] for row in rows(parts[-1], "SELECT name FROM device")]:
    print(f"{device}: {check_device(device, parts, of_parts)}")
