# The page of a sampled recording: wherever it shows bytes or numbers of blocks, it says what they can be off by.
. "$ROOT/tests/page/page.inc"
RUN_OPTIONS='--source --sample 4K --sample-seed 7'
record "$PROGRAMS/thinned" sample
"$MEMPROF" report out.db --html=page.html >page.out
open_browser
cat >look.py <<'END'
import math, os, re, sqlite3, sys
sys.path.insert(0, os.environ["ROOT"] + "/tests/page")
from browser import served
from shown import bytes_text
db = sqlite3.connect("out.db")
[(end,)] = db.execute("SELECT end_active_bytes FROM v_total WHERE device = 'host' AND kind = 'all'")
b = served(os.environ["BROWSER"])
b.open(os.path.abspath("page.html"))
b.wait("document.documentElement.dataset.ready === 'true'")
b.wait("document.documentElement.dataset.settled")
b.click("[data-moment=end]")
# docs/sampling.md: no sum of B bytes is less sure than 1.96 sqrt(B * 4096)
off = 196 * math.sqrt(4096 / end)
whole = f"{bytes_text(end)} \u00b1{off:.1f}%" if off < 10 else f"{bytes_text(end)} \u00b1{round(off)}%"
label = b.js("return document.getElementById('flame-canvas').getAttribute('aria-label')")
assert label.startswith("Flame graph of " + whole + " of host"), (label, whole)
assert b.js("return flame.describe(flame.root)") == "All: " + whole
b.js("""flame.measure = 'alloc_count'; flame.update()""")
assert re.fullmatch(r"All: [\d,]+ \u00b1\?", b.js("return flame.describe(flame.root)"))
assert "Temporary" not in b.js("return document.getElementById('flame-measure').textContent")
b.js("""flame.measure = 'selection'; flame.update()""")
places = {
    "#flame-table div": "the flame graph as text", "#growth-legend .value": "over time",
    "#source-select option": "functions of the source",
    "#source-view td:nth-child(-n+5)": "the source", "#detail summary": "stacks",
    "#layers-rows [data-layer=active] strong": "layers",
}
texts_of = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
for css, what in places.items():
    texts = [t for t in b.js(texts_of, css) if re.search(r"[1-9]", t)]
    bare = [t for t in texts if re.search(r"\d [KMGT]?i?B(?! \u00b1)", t)]
    assert texts and not bare, (what, bare)
    print(what, len(texts))
text = b.js("return document.body.innerText")
assert "xact to the event" not in text and "values are exact" not in text
for wanted in (r"Mean lifetime\s*[\d.,]+ \w+ \u00b1\?", "Largest sampled block"):
    assert re.search(wanted, text), wanted
assert not b.console(), b.console()
END
ROOT=$ROOT python3 look.py >look.txt || { cat look.txt; fail "what the page shows"; }
cat look.txt
