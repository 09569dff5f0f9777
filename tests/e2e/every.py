"""every.py MEMPROF DB NAME: the executions of a range, as 'report --every' tells them, against a walk through all of
v_event for each of them, with the marks as the file has them. Prints how many numbers were compared."""
import csv
import io
import json
import subprocess
import sys

memprof, path, name = sys.argv[1:4]


def run(*arguments):
    return subprocess.run([memprof, *arguments], check=True, capture_output=True, text=True).stdout


def rows(query):
    return list(csv.DictReader(io.StringIO(run("sql", path, "--csv", query))))


events = [(int(e["time_ns"]), e["op"], e["device"], int(e["size_bytes"]))
          for e in rows("SELECT time_ns, op, device, size_bytes FROM v_event ORDER BY event_number")]
marks = rows("SELECT m.start_ns, coalesce(m.end_ns, p.end_ns) AS end_ns, m.end_ns IS NOT NULL AS is_ended FROM mark m "
             "LEFT JOIN process p USING(process_id) WHERE m.name = '%s' AND is_range ORDER BY m.start_ns, mark_id" % name)
report = json.loads(run("report", path, "--every", name, "--json"))
got = {(r["device"], r["nth"]): r for r in report["executions"]}
devices = {device for device, _ in got}
compared = 0
assert report["execution_count"] == len(marks) and len(got) == len(marks) * len(devices), (len(marks), len(got))
for device in devices:
    for nth, mark in enumerate(marks, 1):
        start, end = int(mark["start_ns"]), int(mark["end_ns"])
        live = peak = entry = 0
        entered, sums = False, dict.fromkeys(("alloc_bytes", "alloc_count", "free_bytes", "free_count"), 0)
        for time, op, its_device, size in events:
            if not entered and time >= start:
                entered, entry, peak = True, live, live
            if time >= end:
                break
            if its_device != device:
                continue
            if op in ("alloc", "realloc"):
                live += size
                peak = max(peak, live)
                if entered:
                    sums["alloc_bytes"] += size
                    sums["alloc_count"] += 1
            elif op in ("free", "cut", "end", "to_segment"):
                live -= size
                if entered and op == "to_segment":
                    sums["alloc_bytes"] -= size
                    sums["alloc_count"] -= 1
                elif entered and op != "end":
                    sums["free_bytes"] += size
                    sums["free_count"] += op == "free"
        if not entered:
            entry = peak = live
        sums.update(start_bytes=entry, peak_bytes=peak, end_bytes=live, net_growth_bytes=live - entry, start_ns=start,
                    lasted_ns=end - start, is_ended=int(mark["is_ended"]))
        for key, value in sums.items():
            compared += 1
            assert got[device, nth][key] == value, (device, nth, key, got[device, nth][key], value)
print(compared)
