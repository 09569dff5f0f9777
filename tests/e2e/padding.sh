# Reserved and never there: the padding beside aligned blocks that glibc maps is no memory lost, and no alarm; holes
# that were written to are, beside it and beside blocks that nobody wrote to.
need python3
cat >padding.c <<'PROGRAM'
#include <stdlib.h>
#include <string.h>
enum { ROWS = 8000, ROW = 6000, KEY = 48, LARGE = 100000, ALIGNED = 16, ALIGN = 2 << 20, BARE = 48 << 20 };
static char *rows[ROWS], *keys[ROWS], *larges[ROWS * ROW / LARGE], *aligned[ALIGNED];
static char *bare;
/* Each is mapped with up to ALIGN of addresses beside it. */
static void align(void)
{
    for (int i = 0; i < ALIGNED; i++) {
        void *p = NULL;
        if (posix_memalign(&p, ALIGN, ALIGN))
            abort();
        aligned[i] = memset(p, 1, ALIGN);
    }
}
/* Holes of ROW bytes, into which none of as many bytes later fits. */
static void make_holes(void)
{
    for (int i = 0; i < ROWS; i++) {
        rows[i] = memset(malloc(ROW), 1, ROW);
        keys[i] = memset(malloc(KEY), 1, KEY);
    }
    for (int i = 0; i < ROWS; i++)
        free(rows[i]);
    for (int i = 0; i < ROWS * ROW / LARGE; i++)
        larges[i] = memset(malloc(LARGE), 1, LARGE);
}
int main(int argc, char **argv)
{
    for (const char *c = argc > 1 ? argv[1] : ""; *c; c++) {
        if (*c == 'a')
            align();
        if (*c == 'h')
            make_holes();
        if (*c == 'b')
            bare = calloc(1, BARE);
    }
    return 0;
}
PROGRAM
"$CC" -O1 -g -fno-builtin -o padding padding.c
cat >gap.py <<'END_PY'
"""Of the finding of reserved memory: its severity, or "none" and 0; its bytes."""
import json
found = [f for f in json.load(open("report.json"))["findings"] if f["rule"] == "gap"]
print(*(found[0]["severity"], found[0]["bytes"] or 0) if found else ("none", 0))
END_PY
# gap: severity and bytes of the finding in the report of out.db
gap() {
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" report out.db --json >report.json
    read -r severity bytes <<BYTES
$(python3 gap.py)
BYTES
}
holes=$((8000 * 6000))

record_ok ./padding a
gap
at_least "padding: reserved, by glibc" $((60 << 20)) \
    "$(value "SELECT peak_reserved_bytes FROM v_total WHERE device = 'host' AND kind = 'all'")"
equal "padding: severity" info "$severity"
at_most "padding: what is lost" $((4 << 20)) "$bytes" # what was touched after the look may be
lacks "padding: no alarm" report.txt "Reserved, but not in use"
contains "padding: what is said" report.json "addresses, no memory"
# without a look the resident memory is a bound
sqlite3 out.db 'DELETE FROM resident_scan'
gap
equal "padding, by RSS: severity" info "$severity"
contains "padding, by RSS: what is said" report.json "The peak RSS, with code and libraries, was "
# where that is not known either, nothing is
sqlite3 out.db 'UPDATE timeline SET rss_max_bytes = 0; UPDATE process SET peak_rss_bytes = NULL'
gap
equal "padding, nothing known" warning "$severity"

# holes that were written to are memory, whenever their pages were looked at; beside the aligned blocks they alone
for mode in h ah; do
    record_ok ./padding $mode
    gap
    equal "$mode: severity" warning "$severity"
    contains "$mode: the alarm" report.txt "* Reserved, but not in use: The allocators of host held"
    at_least "$mode: what is lost" $((holes * 95 / 100)) "$bytes"
    at_most "$mode: what is lost" $((holes * 105 / 100 + (4 << 20))) "$bytes"
done
contains "holes and padding: what was never there" report.txt "addresses, no memory"
# and beside a block that nobody wrote to, once that was seen
record_ok ./padding bh
gap
if [ "$(value "SELECT coalesce(sum(untouched_bytes), 0) >= $((47 << 20)) FROM v_resident")" = 1 ]; then
    equal "beside a bare block: severity" warning "$severity"
    at_least "beside a bare block: what is lost" $((holes * 95 / 100)) "$bytes"
else
    echo "  no look saw the bare block"
fi
