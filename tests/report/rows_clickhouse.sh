# docs/fleet.md in ClickHouse (Debian's server): JSON lines into its table, which has a part for each day, and the
# queries.
need python3
. "$ROOT/tests/report/clickhouse.inc"
. "$ROOT/tests/report/rows_fleet.inc"
click --multiquery <"$ROOT/docs/rows-clickhouse.sql" || fail "the table"
for rank in 0 1 2; do
    click --query 'INSERT INTO memprof_rows FORMAT JSONEachRow' <"run.$rank.rows.jsonl" || fail "rows of rank $rank"
done
for i in 1 2 3; do tr '\n;' '  ' <"query$i.sql" | click | tr '\t' '|' >"answer$i" || fail "query $i"; done
mv answer1 grew && mv answer2 ranks && mv answer3 leaks
answers
equal "nothing is NULL, not 0" \
    "$(DB=run.0.db value "SELECT count(*) FROM v_line WHERE kind <> 'all' AND file IS NULL")" \
    "$(click --query "SELECT count() FROM memprof_rows WHERE recording = 'run.0.db' AND file IS NULL")"
# both schemas have the same columns
columns() { sed -n 's/^  "\{0,1\}\([a-z_]*\)"\{0,1\} [A-Z].*/\1/p' "$ROOT/docs/$1"; }
equal "columns of ClickHouse's table" "$(columns rows-schema.sql)" "$(columns rows-clickhouse.sql)"
click --query 'INSERT INTO memprof_rows FORMAT JSONEachRow' <trap.rows.jsonl || fail "rows of traps"
traps "$(click --query "SELECT count(), sum(at_peak_bytes) FROM memprof_rows WHERE recording = 'trap.db'" |
    tr '\t' ' ')"
