# docs/fleet.md in DuckDB (npm's package, fetched once): its reader of CSV, and the queries.
need node npm
. "$ROOT/tests/report/rows_fleet.inc"
version=1.5.6-r.1
package=$BUILD/duckdb/$version
if [ ! -d "$package/node_modules" ]; then
    mkdir -p "$package.$$"
    (cd "$package.$$" && npm install --silent --no-save --fetch-retries=0 --fetch-timeout=20000 \
        "@duckdb/node-api@$version" >/dev/null 2>&1) ||
        { rm -rf "$package.$$"; skip "npm's package @duckdb/node-api cannot be had here"; }
    mv -T "$package.$$" "$package" 2>/dev/null || rm -rf "$package.$$" # another run was first
fi
cat >load.js <<'JS'
const fs = require("fs"), { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
    const db = await (await DuckDBInstance.create(":memory:")).connect();
    await db.run(fs.readFileSync(process.argv[2], "utf8"));
    await db.run(`COPY memprof_rows FROM 'run.*.rows.csv'
        (FORMAT csv, HEADER, QUOTE '"', ESCAPE '"', NULLSTR '', ALLOW_QUOTED_NULLS false)`);
    for (const [i, name] of ["grew", "ranks", "leaks"].entries()) {
        const result = await db.runAndReadAll(fs.readFileSync(`query${i + 1}.sql`, "utf8"));
        fs.writeFileSync(name, result.getRowsJson().map(row => row.join("|") + "\n").join(""));
    }
})().catch(error => { console.error(error); process.exit(1); });
JS
NODE_PATH=$package/node_modules node load.js "$ROOT/docs/rows-schema.sql" || fail "DuckDB"
answers
