# One name for the peak: the chart's label, the finding and the tables have the line that held most, and not the stack
# that did.
need python3
cat >app.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#define OWN __attribute__((noinline, noclone))
static void *kept[8];
static int used;
OWN static void spread(void)
{
    kept[used++] = memset(malloc(1 << 20), 1, 1 << 20); /* spread */
}
OWN static void alone(void)
{
    kept[used++] = memset(malloc(2 << 20), 1, 2 << 20); /* alone */
}
#define CALLER(name) OWN static void name(void) { spread(); __asm__ volatile(""); }
CALLER(one) CALLER(two) CALLER(three) CALLER(four)
int main(void)
{
    one(), two(), three(), four(), alone();
    return 0;
}
EOF
"$CC" -O1 -g -fno-builtin -fno-optimize-sibling-calls -o app app.c
record_ok ./app
"$MEMPROF" report out.db --html=page.html >page.out
"$MEMPROF" report --by line --sort at_peak_bytes --csv -n 1 out.db >first.csv
contains "the table's first line" first.csv ",spread,"
grep 'What the peak is made of' page.html >finding
contains "the finding" finding ">spread</a> (app.c:"
python3 -S "$ROOT/tests/page/page_text.py" page.html >text
equal "the label's line" "spread $(grep -n '/\* spread \*/' app.c | cut -d: -f1)" "$(python3 -S - <<'EOF'
import json
core, model = None, None
for line in open("text"):
    if line.startswith("{"):
        data = json.loads(line)
        core, model = (data, model) if "peaks" in data else (core, data if "functions" in data else model)
peak = [p for p in core["peaks"] if p["kind"] == "all" and p["what"] == "active" and p["rank"] == 0][0]
lines = model["lines"]
print(model["functions"]["name"][lines["function"][peak["line"]]], lines["line"][peak["line"]])
EOF
)"
