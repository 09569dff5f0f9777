"""export_weights.py FILE TOTALS <DEVICES: whether the weights of a speedscope file are the totals, a line a device"""
import json, sys

sums = {p["name"]: sum(p["weights"]) for p in json.load(open(sys.argv[1]))["profiles"]}
for device, line in zip(sys.stdin.read().split(), open(sys.argv[2])):
    names = ["live at the peak", "live at the end", "allocated", "allocations"]
    got = [sums.get("%s: %s" % (device, name), 0) for name in names]
    print(" ", sys.argv[1], device, got)
    if got != [int(word) for word in line.split()]:
        sys.exit("expected " + line)
