# The page that opens with a window chosen: its numbers are those of the report of that window.
. "$ROOT/tests/page/page.inc"
record_ok "$SAMPLES/net"
open_browser
same() { # OPTION...
    "$MEMPROF" report out.db --html=page.html "$@" >/dev/null || fail "no page of $*"
    "$MEMPROF" report out.db --by line --top 0 --json "$@" >report.json || fail "no report of $*"
    python3 -S - "$ROOT/tests/page" <<'END' || fail "the page of $* is not the report"
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

# A range that somebody drags goes from stored instant to stored instant: the page says which, its numbers are those of
# the report between these, and the command that it names is the report of what was dragged. Processes that end within
# it with something live: that is live at its end, here and there.
record_ok sh -c "'$SAMPLES/leak' >/dev/null; '$SAMPLES/net' >/dev/null; '$SAMPLES/leak' >/dev/null"
"$MEMPROF" report out.db --html=page.html >/dev/null
python3 -S - "$ROOT/tests/page" "$MEMPROF" <<'END' || fail "what is dragged"
import json, os, re, shlex, subprocess, sys
sys.path.insert(0, sys.argv[1])
import browser
b = browser.served(os.environ["BROWSER"])
b.open(os.path.abspath("page.html"))
b.wait("document.documentElement.dataset.ready === 'true'")
def sums(*options):
    out = subprocess.run([sys.argv[2], "report", "out.db", "--by", "line", "--top", "0", "--json", *options],
                         check=True, capture_output=True, text=True).stdout
    rows = json.loads(out)["rows"]
    return [sum(r[k] for r in rows) for k in ("alloc_bytes", "alloc_count", "temporary_count", "net_growth_bytes")]
ended, whole = 0, b.js("return timeline.whole")
for ends in ((0.02, 0.97), (0.3, 0.7), (0.0, 0.5), (0.4, 0.995), (0.5, 1.1)):
    b.js("const w = timeline.whole; app.select({ device: app.device, from: w * %r + 0.5, to: w * %r + 0.5 })" % ends)
    page = b.js("return ['bytes', 'count', 'temporary', 'grown'].map((m) => app.view[m].reduce((a, b) => a + b, 0))")
    low, high, asked_low, asked_high = b.js("""const s = app.selection, t = model.instants.time;
        return [t[s.from], t[s.to], s.asked.from, s.asked.to]""")
    between = sums("--from", "%dns" % (low + (low > 0)), "--to", "%dns" % (high + 1) if high < whole else "end")
    print("  from %d to %d: report" % (low, high), between, "page", page)
    assert between == page
    ended += b.js("""const s = app.selection, f = model.instants.first; let n = 0;
        for (let k = f[s.from + 1]; k < f[s.to + 1]; k++) n += model.instants.raw.ended_bytes[k]; return n""")
    text = b.js("return document.getElementById('selection-text').textContent")
    for instant_ns in (low, high):
        assert b.js("return instant(%d)" % instant_ns) in text, text
    assert text.count("that you chose") == 2, text
    command = re.search(r"memprof (report --from \d+ns --to (\d+ns|end))", text).group(1)
    assert abs(int(re.findall(r"\d+", command)[0]) - asked_low) <= 1, (command, asked_low)
    subprocess.run([sys.argv[2], *shlex.split(command)], check=True, capture_output=True)
assert ended >= 2 * 7296, ended
END
status=0
"$MEMPROF" report out.db --html=page.html --during 'step#all' 2>err || status=$?
equal "status of several ranges" 2 $status
contains "several ranges" err "such as step#1"
