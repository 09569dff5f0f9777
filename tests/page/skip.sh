# --html --skip: the wrapper's callers have its blocks in the tables, and it is in no stack of the flame graph. By
# arithmetic.
. "$ROOT/tests/page/page.inc"
cat >app.c <<'END'
#include <stdlib.h>
static void *kept[64];
static int used;
__attribute__((noinline)) static void *xmalloc(size_t size)
{
    void *p = malloc(size);
    return kept[used++] = p;
}
#define CALLER(name, bytes) __attribute__((noinline)) static void name(void) { xmalloc(bytes); __asm__ volatile(""); }
CALLER(one, 1000)
CALLER(two, 2000)
CALLER(three, 3000)
int main(void)
{
    for (int i = 0; i < 10; i++) {
        one();
        two();
        three();
    }
    while (used)
        free(kept[--used]);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -fno-optimize-sibling-calls -o app app.c
record_ok ./app
"$MEMPROF" report out.db --html=page.html --skip xmalloc >/dev/null
"$MEMPROF" report out.db --html=plain.html >/dev/null
open_browser
python3 -S - "$ROOT" <<'EOF' || fail "the pages"
import os, sys
sys.path.insert(0, os.path.join(sys.argv[1], "tests/page"))
from browser import served
b = served(os.environ["BROWSER"])
def look(page):
    b.open(os.path.abspath(page))
    b.wait("document.documentElement.dataset.settled")
    rows = dict(b.js("return tables.rows.filter((r) => r.self).map((r) => [tables.cell(r).name, r.self])"))
    boxes = b.js("flame.zoom(flame.root); return flame.boxes.map((x) => x.node.name)")
    return rows, boxes, b.js("return document.querySelector('.facts').textContent")
rows, boxes, facts = look("plain.html")
assert rows["xmalloc"] == 60000 and not {"one", "two", "three"} & set(rows), rows
assert "xmalloc" in boxes and "Skipped" not in facts, (boxes, facts)
rows, boxes, facts = look("page.html")
assert [rows.get(name) for name in ("one", "two", "three", "xmalloc")] == [10000, 20000, 30000, None], rows
assert {"one", "two", "three"} <= set(boxes) and "xmalloc" not in boxes, boxes
assert "Skippedxmalloc" in facts, facts
assert not b.console()
EOF
