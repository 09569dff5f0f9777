# docs/fleet.md in PostgreSQL: COPY of the rows, and its queries.
. "$ROOT/tests/report/postgresql.inc"
trap postgresql_stop EXIT
. "$ROOT/tests/report/rows_fleet.inc"
cp run.*.rows.csv trap.rows.csv query*.sql "$ROOT/docs/rows-schema.sql" "$postgresql_base"
chmod 644 "$postgresql_base"/*.csv "$postgresql_base"/*.sql
postgresql_start
postgresql "-f $postgresql_base/rows-schema.sql"
for name in run.0 run.1 run.2 trap; do
    postgresql "-c \"\\copy memprof_rows FROM '$postgresql_base/$name.rows.csv' (FORMAT csv, HEADER)\""
done
cat >"$postgresql_base/traps.sql" <<'SQL'
SELECT count(*) || ' ' || sum(at_peak_bytes) FROM memprof_rows WHERE recording = 'trap.db';
DELETE FROM memprof_rows WHERE recording = 'trap.db';
SQL
traps "$(postgresql "-f $postgresql_base/traps.sql")"
postgresql "-f $postgresql_base/query1.sql" >grew
postgresql "-f $postgresql_base/query2.sql" >ranks
postgresql "-f $postgresql_base/query3.sql" >leaks
answers
