# Rows for a database of many recordings: the columns and types of docs/rows-schema.sql, as CSV and as JSON lines the
# same, sums of the totals, and names that are traps.
. "$ROOT/tests/report/export.inc"
unset GITHUB_SHA CI_COMMIT_SHA GIT_COMMIT BUILDKITE_COMMIT CIRCLE_SHA1 BUILD_SOURCEVERSION
rows() { "$MEMPROF" export --format "$@" 2>err || { cat err; fail "export $*"; }; }

for name in $(recordings); do
    rows rows-csv $name.db && rows rows-jsonl $name.db
    for device in $(devices_of $name.db); do
        held $name.db "$device" "'$name,$device,' || peak_active_bytes || ',' || end_active_bytes || ',' ||
            alloc_bytes || ',' || alloc_count"
    done >>totals
done
hostile trap.db
sqlite3 trap.db "UPDATE meta SET value = 'x' || char(0) || 'y' WHERE key = 'host';
    UPDATE meta SET value = '' WHERE key = 'command'; INSERT OR REPLACE INTO meta VALUES('rank', '3'),
    ('start_unix_ns', 1700000000123456789)"
rows rows-csv trap.db && rows rows-jsonl trap.db
held trap.db host "'trap,host,' || peak_active_bytes || ',' || end_active_bytes || ',' || alloc_bytes || ',' ||
    alloc_count" >>totals
python3 - "$ROOT/docs/rows-schema.sql" totals <<'PYTHON' || fail "not what docs/rows-schema.sql and the totals say"
import csv, datetime, json, re, sys

schema = re.findall(r'^  "?(\w+)"? (TEXT|BIGINT|TIMESTAMP)( NOT NULL)?', open(sys.argv[1]).read(), re.M)
assert len(schema) > 30, schema

def read_csv(name): # nothing between commas is NULL, "" an empty text: Python's reader tells them not apart
    rows = list(csv.reader(open(name, newline=""), strict=True))
    assert rows[0] == [column for column, *_ in schema], "docs/rows-schema.sql has other columns than " + str(rows[0])
    assert all(len(row) == len(schema) for row in rows)
    return rows[1:]

def check(kind, is_needed, value):
    if value is None:
        assert not is_needed
    elif kind == "BIGINT":
        assert type(value) is int, value
    else:
        assert type(value) is str and "\0" not in value and len(value.encode()) <= 4000
        if kind == "TIMESTAMP":
            datetime.datetime.strptime(value, "%Y-%m-%d %H:%M:%S")

for total in open(sys.argv[2]):
    name, device, *want = total.strip().split(",")
    lines = [json.loads(line) for line in open(name + ".rows.jsonl")]
    for row in lines:
        assert list(row) == [column for column, *_ in schema], row
        for column, kind, needed in schema:
            check(kind, needed, row[column])
    flat = [["" if value is None else str(value) for value in row.values()] for row in lines]
    assert flat == read_csv(name + ".rows.csv"), name
    sums = [sum(row[column] for row in lines if row["device"] == device)
            for column in ("at_peak_bytes", "end_bytes", "alloc_bytes", "alloc_count")]
    assert sums == [int(value) for value in want], (name, device, sums, want)
    assert all(row["recording"] == name + ".db" and row["commit"] is None for row in lines)
trap = [json.loads(line) for line in open("trap.rows.jsonl")]
assert {(r["host"], r["command"], r["rank"], r["start"]) for r in trap} == {("x", "", 3, "2023-11-14 22:13:20")}, trap
assert max(len(r["function"]) for r in trap) == 4000
assert any('\n"c" \'d\' <e>' in r["function"] for r in trap)
print("  columns, types, sums and names")
PYTHON
contains "an empty text in CSV" trap.rows.csv 'trap.db,"",x,3,,2023-11-14 22:13:20,'

# what chooses
commit_of() { "$@" "$MEMPROF" export --format rows-csv c.db -o - 2>/dev/null | sed -n 2p | cut -d, -f5; }
equal "commit of the environment" 0badc0de "$(commit_of env GITHUB_SHA=0badc0de)"
rows rows-csv c.db --commit 'a,"b' -o - | sed -n 2p >line
contains "commit of the option" line ',"a,""b",'
device=$(devices_of gpu.db | grep cuda | head -n 1)
rows rows-jsonl gpu.db --device "$device" -o one.jsonl
equal "rows of another device" 0 "$(grep -vc "\"device\":\"$device\"" one.jsonl || true)"
at_least "rows of the device" 1 "$(wc -l <one.jsonl)"
bad 2 'does not go with --stat' export --format rows-csv c.db --stat end.bytes
bad 2 'does not go with --all-frames' export --format rows-csv c.db --all-frames
bad 2 'does not go with --commit' export --format folded c.db --commit x
