# The page that opens with a window chosen: its numbers are those of the report of that window.
. "$ROOT/tests/page/page.inc"
record_ok "$SAMPLES/net"
open_browser
same() { # OPTION...
    "$MEMPROF" report out.db --html=page.html "$@" >/dev/null || fail "no page of $*"
    "$MEMPROF" report out.db --by line --top 0 --json "$@" >report.json || fail "no report of $*"
    python3 - "$ROOT/tests/page" <<'END' || fail "the page of $* is not the report"
import json, os, sys
sys.path.insert(0, sys.argv[1])
import browser
b = browser.served(os.environ["BROWSER"])
b.open(os.path.abspath("page.html"))
b.wait("document.documentElement.dataset.ready === 'true'")
assert b.js("return app.selection.moment") == "range"
rows = json.load(open("report.json"))["rows"]
sums = [sum(r[k] for r in rows) for k in ("alloc_bytes", "alloc_count", "temporary_count", "net_growth_bytes")]
page = b.js("return ['bytes', 'count', 'temporary', 'grown'].map((m) => app.view[m].reduce((a, b) => a + b, 0))")
print("  allocated, allocations, temporaries, growth: report", sums, "page", page)
assert sums == page and sums[1] > 0
assert "Between two stored instants" in b.js("return document.getElementById('selection-text').textContent")
lines = {(r["function"], r["line"]): r["alloc_bytes"] for r in rows if r["alloc_bytes"]}
shown = b.js("""const m = model.m, out = [], sums = model.sumSelf('line', app.view.bytes);
    for (let i = 0; i < sums.length; i++)
      if (sums[i]) out.push([m.functions.name[m.lines.function[i]], m.lines.line[i], sums[i]]);
    return out""")
assert {(f, l): n for f, l, n in shown} == lines, (shown, lines)
END
}
same --during 'step#7'
same --during 'step#100'
same --from mark:step#3 --to mark:step#60
same --to mark:step#50
same --from peak
status=0
"$MEMPROF" report out.db --html=page.html --during 'step#all' 2>err || status=$?
equal "status of several ranges" 2 $status
contains "several ranges" err "such as step#1"
