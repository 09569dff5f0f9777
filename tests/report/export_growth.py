"""export_growth.py TOP ROWS: whether pprof's -top of a profile, or of a difference of two, has for each function what
memprof report --by function --json has at the peak, or memprof diff --by function --json as difference"""
import collections, json, re, sys

ours = collections.Counter()
for row in json.load(open(sys.argv[2]))["rows"]:
    name = row["function"] or row.get("old_function")
    if name is None:
        name = "%s+0x%x" % ((row["module"] or row["old_module"]).rsplit("/", 1)[-1], row["offset"])
    ours[name] += row["difference"] if "difference" in row else row["at_peak_bytes"]

theirs, seen = collections.Counter(), False
for line in open(sys.argv[1]):
    words = line.split()
    if seen:
        name = re.sub(r" \((partial-)?inline\)$", "", " ".join(words[5:]))
        theirs[re.sub(r"^(<.*>) \(.*\)$", r"\1", name)] += int(words[0].rstrip("B")) # Python's have their file behind it
    seen |= words[:1] == ["flat"]

for counts in (ours, theirs):
    for name in [name for name in counts if not counts[name]]:
        del counts[name]
print("  functions:", len(ours), "bytes:", sum(ours.values()))
if ours != theirs:
    sys.exit("%s; %s" % (dict(ours - theirs), dict(theirs - ours)))
