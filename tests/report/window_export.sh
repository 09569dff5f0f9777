# A window of a recording as a snapshot: its allocations and frees, and what was live at its end.
. "$ROOT/tests/report/setup.inc"
need python3
record_ok "$SAMPLES/net"
for window in "--during step#1" "--from mark:step#9 --to mark:step#60" "--to mark:step#5" "--from mark:step#70"; do
    # shellcheck disable=SC2086
    "$MEMPROF" export --format torch-snapshot out.db -o w.pickle $window 2>err || { cat err; fail "export $window"; }
    python3 "$ROOT/tests/torch/check.py" w.pickle >check.out 2>&1 || { cat check.out; fail "$window is no snapshot"; }
    # shellcheck disable=SC2086
    "$MEMPROF" report out.db --by device --json $window >report.json
    python3 - "$window" <<'END' || fail "$window: not the window's numbers"
import json, pickle, sys
row = json.load(open("report.json"))["rows"][0]
snapshot = pickle.load(open("w.pickle", "rb"))
actions = [e["action"] for t in snapshot["device_traces"] for e in t]
counts = [actions.count("alloc"), actions.count("free_completed")]
live = sum(b["requested_size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated")
print(" ", sys.argv[1], counts, live)
assert counts == [row["alloc_count"], row["free_count"]], (counts, row)
assert live == row["end_bytes"], (live, row)
END
done
contains "what is left out" err "events before the window are not in it"
status=0
"$MEMPROF" export --format torch-snapshot out.db --during 'step#all' 2>err || status=$?
equal "status of several ranges" 2 $status
contains "several ranges" err "such as step#1"
