"""export_growth.py TOP DIFF: whether pprof's -top of a difference has for each function what memprof diff --json has"""
import collections, json, re, sys

ours = collections.Counter()
for row in json.load(open(sys.argv[2]))["rows"]:
    name = row["function"] or row["old_function"]
    if name is None:
        name = "%s+0x%x" % ((row["module"] or row["old_module"]).rsplit("/", 1)[-1], row["offset"])
    ours[name] += row["difference"]

theirs, seen = collections.Counter(), False
for line in open(sys.argv[1]):
    words = line.split()
    if seen:
        theirs[re.sub(r" \((partial-)?inline\)$", "", " ".join(words[5:]))] += int(words[0].rstrip("B"))
    seen |= words[:1] == ["flat"]

for counts in (ours, theirs):
    for name in [name for name in counts if not counts[name]]:
        del counts[name]
print("  functions that differ:", len(ours), "growth:", sum(ours.values()))
if ours != theirs:
    sys.exit("another difference: %s; %s" % (dict(ours - theirs), dict(theirs - ours)))
