# docs/fleet.md in PostgreSQL: COPY of the rows, and its queries.
bin=$(find /usr/lib/postgresql -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || skip "PostgreSQL's server is not installed"
. "$ROOT/tests/report/rows_fleet.inc"
base=$(mktemp -d /tmp/memprof-rows.XXXXXX) # short, for the socket's name, and one that another user may enter
as() { sh -c "$1"; }
if [ "$(id -u)" = 0 ]; then
    id postgres >/dev/null 2>&1 || skip "PostgreSQL does not run as root, and there is no user postgres"
    as() { runuser -u postgres -- sh -c "$1"; }
    chown postgres "$base"
fi
trap 'as "$bin/pg_ctl -D $base/data -m immediate stop" >/dev/null 2>&1; rm -rf "$base"' EXIT
cp run.*.rows.csv query*.sql "$ROOT/docs/rows-schema.sql" "$base" && chmod 644 "$base"/*.csv "$base"/*.sql
cd / || exit
as "$bin/initdb -A trust -E UTF8 -N -D $base/data" >"$base/log" 2>&1 || { cat "$base/log"; fail "initdb"; }
as "$bin/pg_ctl -D $base/data -o '-k $base -c listen_addresses=' -l $base/data/log -w -t 60 start" >"$base/log" 2>&1 ||
    { cat "$base/log"; fail "the server does not start"; }
cd "$OLDPWD" || exit
psql() { as "cd / && $bin/psql -h $base -d postgres -X -q -A -t -v ON_ERROR_STOP=1 $1" || fail "psql $1"; }
psql "-f $base/rows-schema.sql"
for rank in 0 1 2; do psql "-c \"\\copy memprof_rows FROM '$base/run.$rank.rows.csv' (FORMAT csv, HEADER)\""; done
psql "-f $base/query1.sql" >grew
psql "-f $base/query2.sql" >ranks
psql "-f $base/query3.sql" >leaks
answers
