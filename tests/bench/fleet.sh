# make check-fleet: docs/fleet.md with 1,000 recordings of 5,000 lines, partitioned by day, in DuckDB (as Parquet too),
# PostgreSQL and ClickHouse. The rows are those of real recordings of Python programs, varied (fleet_rows.py); what the
# queries answer is compared with sums that are added up beside. tests/report/rows_*.sh compare such answers, of
# recordings as they are, with memprof report and memprof merge. About 6 GB of disk for a while.
. "$ROOT/tests/lib.sh"
need node python3 npm
. "$ROOT/tests/report/clickhouse.inc"
. "$ROOT/tests/report/postgresql.inc"
. "$ROOT/tests/report/duckdb.inc"
trap 'click_stop; postgresql_stop' EXIT
made="$ROOT/tests/bench/fleet_rows.py"

# real NAME COMMAND...: real.NAME.rows.csv
real() {
    name=$1
    shift
    "$MEMPROF" run -q --aggregate -o "real.$name.db" -- "$@" >/dev/null 2>&1 || fail "$*"
    "$MEMPROF" export --format rows-csv "real.$name.db" 2>err || { cat err; fail "rows of $*"; }
}
real library /usr/bin/python3 -c '
import importlib, sys
for name in sorted(sys.stdlib_module_names - {"antigravity", "this", "idlelib", "turtledemo", "tkinter", "turtle"}):
    try:
        importlib.import_module(name)
    except Exception:
        pass'
real torch /usr/bin/python3 -c 'import torch'
real notebook /usr/bin/python3 -c 'import nbclient, ipykernel'
real document /usr/bin/python3 -m pygments -l c -f html "$ROOT/cli/cmd_export.c"
files="real.library.rows.csv real.torch.rows.csv real.notebook.rows.csv real.document.rows.csv"
# shellcheck disable=SC2086
{
    python3 "$made" expect $files || fail "no rows"
    python3 "$made" rows csv $files >rows.csv
    python3 "$made" rows jsonl $files >rows.jsonl
}
awk '/^```sql/ { n++; next } /^```/ { inside = 0 } { if (n && !done[n]) print >"query" n ".sql" }
    /;$/ { done[n] = 1 }' "$ROOT/docs/fleet.md"
echo "  $(wc -l <rows.jsonl) rows, $(du -m rows.csv | cut -f1) MB of CSV," \
    "$(du -m rows.jsonl | cut -f1) MB of JSON lines"

# took WHAT COMMAND...: says how many seconds it took
took() {
    what=$1
    shift
    begin=$(date +%s%N)
    "$@" || fail "$what"
    end=$(date +%s%N)
    echo "  $what: $(((end - begin) / 10000000)) hundredths of a second"
}
# answers WHO: of the queries, in answer1 to answer3
answers() {
    equal "$1, what grew most" "$(cat grew.expected)" \
        "$(head -n 1 answer1 | awk -F'|' -v OFS='|' '{ $4 = int($4 + 0); print }' | sed 's/\\N//g')"
    cmp ranks.expected answer2 || fail "$1: other peaks by rank"
    cut -d'|' -f4 answer3 | sort -rn | cmp - leaks.expected || fail "$1: other leaks"
    echo "  $1: the same answers"
}

cat >fleet.js <<'JS'
const fs = require("fs"), { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
    const db = await (await DuckDBInstance.create("fleet.duckdb")).connect();
    const took = async (what, sql) => {
        const begin = Date.now(), result = await db.runAndReadAll(sql);
        console.log(`  DuckDB, ${what}: ${Math.round((Date.now() - begin) / 10)} hundredths of a second`);
        return result;
    };
    await db.run("SET memory_limit = '3GB'");
    await db.run(fs.readFileSync(process.argv[2], "utf8"));
    await took("loading CSV", `COPY memprof_rows(${process.argv[3]}) FROM 'rows.csv'
        (FORMAT csv, HEADER, QUOTE '"', ESCAPE '"', NULLSTR '', ALLOW_QUOTED_NULLS false)`);
    await took("writing Parquet, a directory a day", `COPY (SELECT *, CAST(start AS DATE) AS day FROM memprof_rows)
        TO 'parquet' (FORMAT parquet, PARTITION_BY (day))`);
    for (const source of ["its table", "Parquet"]) {
        if (source === "Parquet")
            await db.run(`DROP TABLE memprof_rows; CREATE VIEW memprof_rows AS
                SELECT * FROM read_parquet('parquet/*/*.parquet', hive_partitioning = true)`);
        for (const i of [1, 2, 3]) {
            const result = await took(`query ${i} on ${source}`, fs.readFileSync(`query${i}.sql`, "utf8"));
            fs.writeFileSync(`${source.replace(" ", "-")}.answer${i}`, result.getRowsJson()
                .map(row => row.map(v => v === null ? "" : v).join("|") + "\n").join(""));
        }
    }
})().catch(error => { console.error(error); process.exit(1); });
JS
columns=$(head -n 1 rows.csv | sed 's/commit/"commit"/')
NODE_PATH=$duckdb node fleet.js "$ROOT/docs/rows-schema.sql" "$columns" || fail "DuckDB"
for source in its-table Parquet; do
    for i in 1 2 3; do mv "$source.answer$i" "answer$i"; done
    answers "DuckDB, $source"
done
echo "  Parquet: $(du -sm parquet | cut -f1) MB"
rm -rf fleet.duckdb parquet

click --multiquery <"$ROOT/docs/rows-clickhouse.sql"
load_click() { click --query 'INSERT INTO memprof_rows FORMAT JSONEachRow' <rows.jsonl; }
took "ClickHouse, loading JSON lines" load_click
query_click() { tr '\n;' '  ' <"query$1.sql" | click | tr '\t' '|' >"answer$1"; }
for i in 1 2 3; do took "ClickHouse, query $i" query_click $i; done
answers ClickHouse
echo "  ClickHouse: $(du -sm "$click_base/data" | cut -f1) MB, $(click --query "SELECT count(DISTINCT partition)
    FROM system.parts WHERE table = 'memprof_rows' AND active") partitions"
click --query 'DROP TABLE memprof_rows'
rm rows.jsonl

postgresql_start
chmod 755 . && chmod 644 rows.csv # for the server's user
sed 's/^);/) PARTITION BY RANGE (start);/' "$ROOT/docs/rows-schema.sql" >"$postgresql_base/schema.sql"
for day in $(seq 1 10); do
    echo "CREATE TABLE memprof_rows_$day PARTITION OF memprof_rows FOR VALUES FROM ('2026-11-$day') TO
        ('2026-11-$((day + 1))');"
done >>"$postgresql_base/schema.sql"
cp query*.sql "$postgresql_base" && chmod 644 "$postgresql_base"/*.sql
postgresql "-f $postgresql_base/schema.sql"
load_postgresql() {
    postgresql "-c \"\\copy memprof_rows($(echo "$columns" | sed 's/"/\\"/g')) FROM '$1' \
        (FORMAT csv, HEADER)\""
}
mv rows.csv "$postgresql_base"
took "PostgreSQL, loading CSV" load_postgresql "$postgresql_base/rows.csv"
query_postgresql() { postgresql "-f $postgresql_base/query$1.sql" >"answer$1"; }
for i in 1 2 3; do took "PostgreSQL, query $i" query_postgresql $i; done
answers PostgreSQL
