# A recording of random calls of the driver that is rotated in between: totals, peaks and what is
# inherited of each part as its events tell them (rotate.py); over all parts the program's ledger. What is reserved, by
# devices' segments and pools, is handed on.
. "$ROOT/tests/cuda/lib.sh"
need python3
export SIM_CUDA_DEVICES=2
for mode in memory pools; do
    echo "$mode"
    rm -f run.*
    "$MEMPROF" run -q -o run.db --rotate 700ms -- "$SIM/programs/random" 5 3000 $mode slow >run.out 2>run.err ||
        fail "the program ended with $?: $(cat run.err)"
    for file in run.2*.db run.db; do "$MEMPROF" report "$file" >/dev/null 2>&1; done
    parts=$(python3 "$ROOT/tests/e2e/rotate.py" "$MEMPROF" run.2*.db run.db) || fail "$parts"
    echo "$parts" | cut -c-100
    python3 - run.2*.db run.db <<'END' || fail "over all parts"
import sqlite3, sys
files = [sqlite3.connect(name) for name in sys.argv[1:]]
meta = [dict(f.execute("SELECT key, value FROM meta")) for f in files]
starts = [int(m["part_start_ns"]) for m in meta]
assert len(files) > 3 and starts == sorted(starts), starts
checked = 0
for line in open("run.out"):
    if not line.startswith("ledger"):
        continue
    _, device, kind, allocs, size, frees, freed, peak = line.split()
    if device == "host":
        continue
    rows = [f.execute("SELECT alloc_count, alloc_bytes, free_count, free_bytes, peak_active_bytes, peak_reserved_bytes "
                      "FROM v_total WHERE device = ? AND kind = ?",
                      (device, "all" if kind == "segment" else kind)).fetchone() or (0,) * 6 for f in files]
    if kind == "segment":
        assert max(r[5] for r in rows) == int(peak), (device, "reserved", peak, rows)
    else:
        got = [sum(r[i] for r in rows) for i in range(4)] + [max(r[4] for r in rows)]
        assert got == [int(allocs), int(size), int(frees), int(freed), int(peak)], (line, got)
        assert kind == "array" or sum(r[0] > 0 for r in rows) > 2, "in several parts"
    checked += 1
SEGMENT = "SELECT device_id, kind, address, size_bytes, alloc_ns FROM segment WHERE "
inherited = 0
for k in range(1, len(files)):
    before = set(files[k - 1].execute(SEGMENT + "free_ns IS NULL OR free_ns >= ?", (starts[k],)))
    now = set(files[k].execute(SEGMENT + "alloc_ns < ?", (starts[k],)))
    assert before == now, ("segments at the start of part", k + 1, before ^ now)
    inherited += len(now)
    for device in ("cuda:0", "cuda:1"):
        last = files[k - 1].execute("SELECT reserved_last_bytes FROM timeline JOIN device USING(device_id) WHERE "
                                    "name = ? AND level = 0 ORDER BY time_ns DESC LIMIT 1", (device,)).fetchone()
        most = files[k].execute("SELECT peak_reserved_bytes FROM v_total WHERE device = ? AND kind = 'all'",
                                (device,)).fetchone()
        assert most[0] >= last[0], (device, "reserved in part", k + 1, most, last)
print("  rows of the ledger:", checked, "inherited segments:", inherited)
assert checked >= 2
END
done
