# A wrapper without a wrapper's name: a function whose every allocation comes from one line, and whose callers differ.
# Without line information one address stands for the line. Two callers are enough where they ask for other sizes, and
# it calls malloc itself: an object of the function's own has one size, whoever calls.
need strip
cat >take.c <<'END_C'
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>
#include <string.h>
#define LONE __attribute__((noinline)) static
static void *kept[64];
static int used;
LONE void *keep(void *p)
{
    return kept[used++] = p;
}
#if defined TWO_LINES
LONE void *fetch(size_t size)
{
    if (size & 4096)
        return keep(malloc(size));
    return keep(malloc(size + 1));
}
#elif defined TWO_COPIES /* both allocate at one address: in strdup() */
LONE void *fetch(size_t size)
{
    static char text[8 << 20];
    memset(text, 'x', size);
    text[size] = 0;
    if (size & 4096)
        return keep(strdup(text));
    return keep(strdup(text + 1));
}
#elif defined LIBRARY /* what it calls allocates for itself */
LONE void *fetch(size_t size)
{
    static struct hsearch_data tables[8];
    hcreate_r(size / 24, &tables[used++]);
    return tables;
}
#else
LONE void *fetch(size_t size)
{
    return keep(malloc(size));
}
#endif
#ifdef OWN_SIZE
#define SIZE(bytes) 3 << 20
#else
#define SIZE(bytes) bytes
#endif
#define CALLER(name, bytes) LONE void name(void) { fetch(SIZE(bytes)); __asm__ volatile(""); }
CALLER(one, 1 << 20)
CALLER(two, (2 << 20) + 4096)
CALLER(three, 5 << 20)
CALLER(four, 4096)
CALLER(five, 3 << 20)
int main(int argc, char **argv)
{
    one();
    two();
    if (argc > 1)
        three();
    if (argc > 2)
        four();
    if (argc > 3)
        five();
    return argv == NULL;
}
END_C
# offered WHAT [NAME], offered_not WHAT: whether the report of out.db names the largest caller (three), and --skip
# among its next steps
offered() {
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" report out.db --json >report.json
    contains "$1: the next step" report.txt ' --skip fetch   (counts what'
    contains "$1: a sentence" report.json " It allocates for its callers, the largest part for ${2:-three}"
    echo "  $1"
}
offered_not() {
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" report out.db --json >report.json
    contains "$1: the line" report.txt ' fetch '
    lacks "$1: no next step" report.txt '--skip'
    lacks "$1: no sentence" report.json 'It allocates for its callers'
    echo "  $1"
}
for options in '' -DTWO_LINES -DTWO_COPIES -DOWN_SIZE -DLIBRARY; do
    "$CC" -g -O1 -fno-builtin -fno-optimize-sibling-calls $options -o lines$options take.c
    cp lines$options names$options
    strip -g names$options
done
for app in lines names; do
    record_ok ./$app x x x
    offered "$app: five callers"
    "$MEMPROF" report out.db --skip fetch --by function --csv >skip.csv
    equal "$app: whose it is" '1048576 2101248 5242880 4096 3145728' "$(python3 -c 'import csv
held = {r["function"]: r["at_peak_bytes"] for r in csv.DictReader(open("skip.csv"))}
print(*(held[name] for name in ("one", "two", "three", "four", "five")))')"
    record_ok ./$app x
    offered "$app: three callers with sizes of theirs"
    record_ok ./$app
    offered "$app: two callers with sizes of theirs" two
    record_ok ./$app-DOWN_SIZE
    offered_not "$app: two callers of one size"
    record_ok ./$app-DLIBRARY
    offered_not "$app: two callers, of what a library keeps"
    record_ok ./$app-DOWN_SIZE x
    offered_not "$app: three callers of one size"
    record_ok ./$app-DOWN_SIZE x x x
    offered "$app: five callers of one size" five
    for how in TWO_LINES TWO_COPIES; do
        record_ok ./$app-D$how x x x
        offered_not "$app: $how"
    done
done
