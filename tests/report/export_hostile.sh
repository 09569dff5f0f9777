# A recording with names that are traps goes out in every format that --format help lists. Their readers read it: those
# of totals in export_FORMAT.sh, massif, heaptrack and chrome-trace in export_over_time.sh, rows in rows_*.sh; here
# torch-snapshot, as its readers go through it.
. "$ROOT/tests/report/export.inc"
hostile trap.db
"$MEMPROF" export --format help | awk '{ print $1 }' >formats
at_least "formats" 9 "$(wc -l <formats)"
while read -r format; do
    timeout 60 "$MEMPROF" export --format "$format" trap.db -o "out.$format" 2>err ||
        { cat err; fail "$format"; }
    [ -s "out.$format" ] || fail "$format: nothing in it"
done <formats
python3 - out.folded out.massif <<'END' || fail "control characters, or no UTF-8"
import sys, unicodedata
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8", errors="strict", newline="").read().replace("\n", "")
    bad = {c for c in text if unicodedata.category(c) == "Cc"}
    assert not bad, (path, bad)
    assert path != "out.folded" or "???A?" in text # of ff 80 fe 41 and U+009B
END
python3 -m json.tool out.chrome-trace >/dev/null || fail "chrome-trace: no JSON"
for device in cuda host; do
    "$MEMPROF" export --format torch-snapshot trap.db --device $device -o $device.pickle 2>err ||
        { cat err; fail "$device"; }
    python3 "$ROOT/tests/torch/check.py" $device.pickle >check.out 2>&1 ||
        { cat check.out; fail "$device: no snapshot"; }
done
python3 - <<'END' || fail "not the names that there are"
import pickle
traces = pickle.load(open("host.pickle", "rb"))["device_traces"]
names = {frame["name"] for trace in traces for entry in trace for frame in entry["frames"]}
assert any('"c" \'d\' <e>' in name for name in names), names
assert max(map(len, names)) >= 4000, max(map(len, names))
print("  names of", len(names), "frames")
END
