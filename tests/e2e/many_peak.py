"""many_peak.py FILE... [--bounds] [--as CLOCK] [--merged ALL] [--truth FILE...]: the most that the recordings held on
the host at one instant, from all of their events, against what `memprof report FILE... --json` ($MEMPROF) says; --bounds:
the truth is to lie between two numbers. --merged: against what the file ALL says, which 'memprof merge' made of them.
--truth: the files whose events tell, where those reported lack something."""
import csv
import io
import json
import os
import sqlite3
import subprocess
import sys

MEMPROF = os.environ["MEMPROF"]
SIGN = {"alloc": 1, "realloc": 1, "free": -1, "end": -1, "cut": -1, "to_segment": -1}


def memprof(*words):
    return subprocess.run([MEMPROF, *words], check=True, capture_output=True).stdout.decode()


def truth(files):
    starts, events = {}, []
    for n, path in enumerate(files):
        value = sqlite3.connect(path).execute("SELECT value FROM meta WHERE key = 'start_monotonic_ns'").fetchone()
        starts[path] = value[0]
        text = memprof("sql", "--csv", path, "SELECT time_ns, op, size_bytes FROM v_event WHERE device = 'host'")
        for i, (time, op, size) in enumerate(list(csv.reader(io.StringIO(text)))[1:]):
            if op in SIGN:
                events.append((value[0] + int(time), n, i, SIGN[op] * int(size)))
    level = most = when = 0
    for time, _, _, change in sorted(events):
        level += change
        if level > most:
            most, when = level, time - min(starts.values())
    assert level == 0, level
    return most, when


def main():
    words, bounds, clock, true_files, merged = sys.argv[1:], False, "machine", None, None
    if "--truth" in words:
        at = words.index("--truth")
        words, true_files = words[:at], words[at + 1:]
    if "--bounds" in words:
        words.remove("--bounds")
        bounds = True
    if "--as" in words:
        at = words.index("--as")
        clock = words[at + 1]
        del words[at:at + 2]
    if "--merged" in words:
        at = words.index("--merged")
        merged = words[at + 1]
        del words[at:at + 2]
    if merged:
        query = "SELECT least_bytes, most_bytes, time_ns FROM common_peak WHERE device_id = 0"
        got = sqlite3.connect(merged).execute(query).fetchone()
        said = {"common_clock": clock}
    else:
        said = json.loads(memprof("report", *words, "--json"))["devices"][0]
        got = said["common_peak_least_bytes"], said["common_peak_most_bytes"], said["common_peak_ns"]
    most, when = truth(sorted(true_files or words))
    print("the truth", most, when, "said", *got, said["common_clock"])
    assert said["common_clock"] == clock
    if bounds:
        assert got[0] <= most <= got[1]  # equal where all runs stand still at the peak
    else:
        assert got == (most, most, when)


main()
