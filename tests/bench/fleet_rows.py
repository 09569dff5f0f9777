"""Rows of a fleet: 1,000 recordings of 5,000 lines, made of real ones. Each has the rows of the real recordings; which
recording, host, rank, commit and day it is is changed, its numbers are larger by a few per cent by host, one line grows
with the last commit, and of the lines that leak all but every hundredth leak on some hosts only.

fleet_rows.py rows FORMAT REAL...: rows to standard output, FORMAT csv (of REAL.rows.csv) or jsonl
fleet_rows.py expect REAL...: what the queries of docs/fleet.md must answer, by adding up: files grew, ranks, leaks"""
import collections, csv, json, os, sys

RECORDINGS, LINES, DAYS, HOSTS = (int(os.environ.get(*name)) for name in
                                  (("FLEET_RECORDINGS", 1000), ("FLEET_LINES", 5000), ("FLEET_DAYS", 10), ("FLEET_HOSTS", 20)))
PER_DAY, GROWN_BYTES, FIRST = RECORDINGS // DAYS, 100000, 12 # columns before the statistics
NUMBERS = ("at_peak_bytes", "alloc_bytes", "end_bytes")


def real_rows(files):
    """LINES rows of different lines, as dicts of text (None: NULL)"""
    rows = {}
    for file in files:
        with open(file, newline="") as f:
            for row in csv.DictReader(f):
                if row["device"] == "host" and len(rows) < LINES:
                    key = tuple(row[c] for c in ("kind", "function", "file", "line", "module"))
                    rows.setdefault(key, {c: v if v != "" else None for c, v in row.items()})
    if len(rows) < LINES:
        sys.exit("only %d different lines in %s" % (len(rows), " ".join(files)))
    return list(rows.values())


def of_host(rows, host, is_last):
    for number, row in enumerate(rows):
        row = dict(row)
        for name in NUMBERS:
            row[name] = str(int(row[name] or 0) * (100 + host) // 100)
        if number == 7 and is_last:
            row["at_peak_bytes"] = str(int(row["at_peak_bytes"]) + GROWN_BYTES)
        if int(row["end_bytes"]) and number % 100 and number % HOSTS == host:
            row["end_bytes"] = "0"
        yield row


def recordings():
    """(recording, host, rank, commit, start): every host has as many each day"""
    for day in range(DAYS):
        for rank in range(PER_DAY):
            yield ("run.%d.%d.db" % (day, rank), rank % HOSTS, rank, "OLD" if day == DAYS - 2 else "NEW" if day == DAYS - 1
                   else "c%d" % day, "2026-11-%02d 08:%02d:00" % (day + 1, rank % 60))


def facts(recording, host, rank, commit, start):
    return {"recording": recording, "host": "node%d" % host, "rank": str(rank), "commit": commit, "start": start}


def quoted(value):
    return "" if value is None else '"%s"' % value.replace('"', '""') if any(c in value for c in ',"\r\n') else value


def write(form, rows):
    out, texts = sys.stdout.buffer, {"recording", "command", "host", "commit", "start", "device", "kind", "function",
                                     "file", "module"}
    names = list(rows[0])
    varied = list(facts("", 0, 0, "", ""))
    rest = [n for n in names if n not in varied]
    ends = {} # of each host and of the last commit: all that is the same in its recordings
    if form == "csv":
        out.write((",".join(varied + rest) + "\n").encode())
    for recording, host, rank, commit, start in recordings():
        key = (host, commit == "NEW")
        if key not in ends and form == "csv":
            ends[key] = [("," + ",".join(quoted(r[n]) for n in rest) + "\n").encode() for r in of_host(rows, *key)]
        elif key not in ends:
            ends[key] = [(", " + json.dumps({n: r[n] if n in texts or r[n] is None else int(r[n]) for n in rest})[1:] +
                          "\n").encode() for r in of_host(rows, *key)]
        f = facts(recording, host, rank, commit, start)
        head = (",".join(f.values()) if form == "csv" else
                json.dumps({n: int(v) if n == "rank" else v for n, v in f.items()})[:-1]).encode()
        out.write(b"".join(head + end for end in ends[key]))


def line_of(row):
    return row["function"], row["file"], row["line"]


def expect(rows):
    sums = {(host, is_last): list(of_host(rows, host, is_last)) for host in range(HOSTS) for is_last in (False, True)}
    peak = {key: sum(int(r["at_peak_bytes"]) for r in of) for key, of in sums.items()}
    grew, leaks, hosts, ranks = collections.Counter(), collections.Counter(), collections.defaultdict(set), []
    for recording, host, rank, commit, start in recordings():
        ranks.append((rank, recording, peak[host, commit == "NEW"]))
    times = collections.Counter((host, commit) for _, host, _, commit, _ in recordings())
    for (host, commit), count in times.items():
        for row in sums[host, commit == "NEW"]:
            if commit in ("OLD", "NEW"):
                grew[line_of(row)] += int(row["at_peak_bytes"]) * count * (1 if commit == "NEW" else -1)
            if int(row["end_bytes"]) > 0:
                leaks[line_of(row)] += int(row["end_bytes"]) * count
                hosts[line_of(row)].add(host)
    with open("grew.expected", "w") as f:
        line, bytes_ = grew.most_common(1)[0]
        print(*[v or "" for v in line], int(bytes_ / PER_DAY), sep="|", file=f)
    with open("ranks.expected", "w") as f:
        for row in sorted(ranks):
            print(*row, sep="|", file=f)
    with open("leaks.expected", "w") as f:
        for number in sorted((leaks[line] for line in leaks if len(hosts[line]) == HOSTS), reverse=True):
            print(number, file=f)
    if not 0 < sum(len(h) == HOSTS for h in hosts.values()) < len(hosts):
        sys.exit("a leak on all hosts and one that is not are wanted")


what, *arguments = sys.argv[1:]
if what == "rows":
    write(arguments[0], real_rows(arguments[1:]))
else:
    expect(real_rows(arguments))
