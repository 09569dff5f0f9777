# By category over time, and names of blocks where one points: numbers of samples/views.c's first comment.
. "$ROOT/tests/page/page.inc"
record_ok "$SAMPLES/views"
"$MEMPROF" report out.db --html=page.html >/dev/null
python3 -S "$ROOT/tests/page/categories.py" page.html out.db "$MEMPROF" >most.txt || fail "categories"
contains "parameters" most.txt "parameter 1048576"
# The same as if an operator of a forward pass had allocated late's line: 3,000 bytes of it have no name at the end.
cp out.db phases.db
sqlite3 phases.db "INSERT INTO op VALUES(1, 'aten::views', 'forward', NULL)" \
    "INSERT INTO site_op SELECT DISTINCT s.site_id, 1 FROM site s JOIN site_line USING(site_id) JOIN line l
    USING(line_id) JOIN function f USING(function_id) WHERE f.name = 'take'"
"$MEMPROF" report phases.db --html=phases.html >/dev/null
python3 -S "$ROOT/tests/page/categories.py" phases.html phases.db "$MEMPROF" >most.txt || fail "categories with phases"
contains "activations" most.txt "activation "
"$MEMPROF" run -q -o none.db "$SAMPLES/leak" >/dev/null
"$MEMPROF" report none.db --html=none.html >/dev/null
open_browser
cat >look.py <<'END2'
import os, sys
sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests/page"))
from browser import served
b = served(os.environ["BROWSER"])


def before_end():  # as the process ends all of it is gone
    return b.js("return Object.fromEntries(growth.layers.map((l) => [growth.name(l), l.values[l.values.length - 2]]))")


b.open(os.path.abspath("phases.html"))
b.wait("document.documentElement.dataset.ready === 'true'")
lines = b.js("return [growth.layers.map((l) => l.line), Array.from(growth.top)]")
assert all(line >= 0 for line in lines[0]), lines
b.click("[data-growth=category]")
layers = before_end()
rest = layers.pop("rest")
assert layers.pop("parameter") == 1048576 and rest >= 200000, (layers, rest)
unnamed = sum(layers.values())
assert sorted(layers) == ["activation", "gradient"] and unnamed in (3000, 3512), layers  # a gradient may live then
assert b.js("return Array.from(growth.top)") == lines[1], "the categories are all that is live"
b.click("#growth-legend li:first-child button")  # rest, the topmost
assert b.js("return growth.top[growth.top.length - 2]") == 1048576 + unnamed
b.click("[data-growth=line]")
assert b.js("return Array.from(growth.top)") == lines[1]
label = b.js("return blocks.describe({ block: model.blocks.blocks.find((b) => b[BLOCK.SIZE] === 1048576) })[0]")
assert label.startswith("weights, parameter; shared by rows, columns, reversed, bytes: 1.00 MiB at 0x"), label
label = b.js("return blocks.describe({ block: model.blocks.blocks.find((b) => b[BLOCK.SIZE] === 200000) })[0]")
assert label.startswith("late: 195.31 KiB"), label
both = b.js("return model.blocks.blocks.filter((b) => b[BLOCK.SIZE] === 3000).map((b) => b[BLOCK.NAME] || '-')")
assert both == ["scratch", "-"], both
b.open(os.path.abspath("none.html"))
b.wait("document.documentElement.dataset.ready === 'true'")
assert b.js("return document.getElementById('growth-by').hidden"), "a switch without categories"
END2
python3 -S look.py || fail "what the page shows"
