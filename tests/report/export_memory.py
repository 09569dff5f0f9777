"""export_memory.py MEMPROF SMALL EVENTS SITES: how much memory each export takes of three recordings that differ in one
thing: SMALL, one with more events, one with more sites. Growth per event and per site, from the kernel's ru_maxrss. What
a recording of 100,000,000 events and 700,000 stacks may take is 256 MB: 365 bytes a site, if events took none"""
import os, sqlite3, sys

PER_EVENT, PER_SITE = 8, 330
memprof, small, events, sites = sys.argv[1:]
runs = [["pprof", "--from", "5s"], ["folded", "--min-size", "500"], ["rows-csv", "--process", "4711"],
        ["folded", "--skip", "load_batch"], ["torch-snapshot", "--device", "host", "--max-events", "1000"]]


def peak_bytes(recording, arguments):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open("err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.execv(memprof, [memprof, "export", recording, "-o", "/dev/null", "--format"] + arguments)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("%s of %s: %s" % (" ".join(arguments), recording, open("err").read()))
    return usage.ru_maxrss * 1024


def more(column, recording):
    count = [sqlite3.connect(r).execute(column).fetchone()[0] for r in (small, recording)]
    return count[1] - count[0]


more_events = more("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'event_count'", events)
more_sites = more("SELECT count(*) FROM stack", sites)
worst = [0, 0]
for arguments in runs:
    before = peak_bytes(small, arguments)
    grown = ((peak_bytes(events, arguments) - before) / more_events, (peak_bytes(sites, arguments) - before) / more_sites)
    worst = [max(pair) for pair in zip(worst, grown)]
    if grown[0] > PER_EVENT or grown[1] > PER_SITE:
        sys.exit("%s: %.1f bytes more an event, %.1f a site" % (" ".join(arguments), *grown))
print("  at most %.1f bytes more an event, %.1f a site" % tuple(worst))
