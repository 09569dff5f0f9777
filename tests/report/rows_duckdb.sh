# docs/fleet.md in DuckDB (npm's package, fetched once): its reader of CSV, and the queries.
need node npm
. "$ROOT/tests/report/rows_fleet.inc"
. "$ROOT/tests/report/duckdb.inc"
cat >load.js <<'JS'
const fs = require("fs"), { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
    const db = await (await DuckDBInstance.create(":memory:")).connect();
    await db.run(fs.readFileSync(process.argv[2], "utf8"));
    const load = name => db.run(`COPY memprof_rows FROM '${name}.rows.csv'
        (FORMAT csv, HEADER, QUOTE '"', ESCAPE '"', NULLSTR '', ALLOW_QUOTED_NULLS false)`);
    await load("run.*");
    for (const [i, name] of ["grew", "ranks", "leaks"].entries()) {
        const result = await db.runAndReadAll(fs.readFileSync(`query${i + 1}.sql`, "utf8"));
        fs.writeFileSync(name, result.getRowsJson().map(row => row.join("|") + "\n").join(""));
    }
    await load("trap");
    const traps = await db.runAndReadAll(`SELECT count(*), sum(at_peak_bytes) FROM memprof_rows
        WHERE recording = 'trap.db'`);
    fs.writeFileSync("traps", traps.getRowsJson()[0].join(" "));
})().catch(error => { console.error(error); process.exit(1); });
JS
NODE_PATH=$duckdb node load.js "$ROOT/docs/rows-schema.sql" || fail "DuckDB"
answers
traps "$(cat traps)"
