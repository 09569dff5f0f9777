# Free pages that take no memory are nothing that a trim gives back: the program has had it trimmed before. What it
# allocated and freed after that does. Beside it stands what the program itself sees fall by another trim.
cat >rows.c <<'CODE'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noclone))
enum { ROWS = 40000, STEP = 100, TOP = 6000 };
static char *rows[ROWS], *kept[ROWS / STEP], *above[TOP];
ALONE static void fill(char **blocks, int count, int size)
{
    for (int i = 0; i < count; i++)
        blocks[i] = memset(malloc(size), 1, size);
}
ALONE static void load(void)
{
    for (int i = 0; i < ROWS; i += STEP) {
        fill(rows + i, STEP, 1000);
        kept[i / STEP] = memset(malloc(200), 1, 200);
    }
}
ALONE static void drop(char **blocks, int count)
{
    for (int i = 0; i < count; i++)
        free(blocks[i]);
}
static void work(int steps)
{
    for (int i = 0; i < steps; i++) {
        free(memset(malloc(100), 1, 100));
        usleep(4000);
    }
}
static long resident(void)
{
    char text[100] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fgets(text, sizeof text, f))
        fclose(f);
    return atol(strchr(text, ' ') + 1) * 4096;
}
/* Each letter is a step. */
int main(int argc, char **argv)
{
    for (const char *step = argc > 1 ? argv[1] : ""; *step; step++) {
        if (*step == 'l')
            load();
        else if (*step == 'a') /* above all that, and live */
            fill(above, TOP, 8000);
        else if (*step == 'd')
            drop(rows, ROWS);
        else if (*step == 'w')
            work(150);
        else if (*step == 't')
            malloc_trim(0);
        else if (*step == 's')
            usleep(150000);
        else if (*step == 'r') /* a part of it once more */
            fill(rows, ROWS / 2, 1000), drop(rows, ROWS / 2);
        else if (*step == 'A')
            drop(above, TOP);
        else if (*step == 'K')
            drop(kept, ROWS / STEP);
    }
    if (argc > 2) {
        long before = resident();
        malloc_trim(0);
        printf("fell=%ld\n", before - resident());
    }
    return 0;
}
CODE
"$CC" -O1 -g -fno-builtin -o rows rows.c
found() {
    sed -n 's/^\* Free, but .* malloc_trim(0) would \(give\|have given up to\) \([0-9.]*\) MiB back .*/\2/p' report.txt
}
# gives STEPS: what a trim gives after these, in KiB, as the program sees it without a recording
gives() { echo $(($(./rows "$1" fell | sed -n 's/^fell=//p') / 1024)); }
# told STEPS ENDING: as much as a trim would give before the ending
told() {
    record_ok ./rows "$1$2"
    "$MEMPROF" report out.db >report.txt
    equal "$1$2: one finding" 1 "$(grep -c '^\* Free, but kept from the kernel: load ' report.txt)"
    percent=$(awk -v told="$(found)" -v gives="$(gives "$1")" 'BEGIN { printf "%d", 102400 * told / gives }')
    at_least "$1$2: what would come back, in %" 95 "$percent"
    at_most "$1$2: what would come back, in %" 105 "$percent"
}
# silent STEPS ENDING
silent() {
    record_ok ./rows "$1$2"
    at_most "$1$2: a trim gives" 1024 "$(gives "$1")"
    "$MEMPROF" report out.db >report.txt
    lacks "$1$2: nothing is there" report.txt "kept from the kernel"
}

# live blocks above, so that the RSS is more than all that is free
told ladw ""
silent ladwtss ""
# --segments says the same of that file
"$MEMPROF" report out.db --segments >segments.txt
gone=$(sed -n 's/^Of the free pages .* at least \([0-9]*\).* MiB took no memory .*/\1/p' segments.txt)
at_least "gone, in MiB" $(($(gives ladw) / 1024 - 1)) "$gone"

# a part came back since: so much is told, and what is not there
told ldtrwww K
grep -q '^\* Free, but .*, as [0-9.]* MiB of the free pages took no memory; ' report.txt || fail "what is not there"

# freed as it ends, so that the heap's top falls over what was free: what stays tells of that, and the RSS before
told ladw AK
for ending in AK sAK; do
    silent ladwt "$ending"
done

# A look that fell into the frees sees a part of the pages, and the heap's size is sampled after it. The recording is
# made so: 16 MiB of free pages are there.
told ldw K
shrank=$(value "SELECT max(time_ns) FROM heap_range")
sqlite3 out.db "UPDATE resident_rest SET resident_bytes = 1 << 24 WHERE what = 'heap' AND scan_id = (SELECT scan_id FROM
    resident_scan WHERE is_last); UPDATE resident_scan SET time_ns = $shrank - 1 WHERE is_last"
before=$(found)
"$MEMPROF" report out.db >report.txt
equal "with a look into the frees" "$before" "$(found)"

# a lone free of its work, a short rest before, is none of those at the end: what the RSS says in between counts, and
# the instant is told so
silent ldwts K
record_ok ./rows ldwsK
"$MEMPROF" report out.db >report.txt
free_ms=$("$MEMPROF" sql --csv out.db "SELECT max(time_ns) / 1000000 FROM v_event WHERE op = 'free' AND time_ns <
    (SELECT max(time_ns) - 100000000 FROM v_event WHERE op = 'free')" | tail -n 1 | tr -d '\r')
told_ms=$(sed -n 's/^\* Free, but .* That is at \([0-9.]*\) \(m*s\), before .*/\1 \2/p' report.txt |
    awk '{ printf "%d", $1 * ($2 == "s" ? 1000 : 1) }')
at_least "the instant, in ms" $((free_ms + 100)) "$told_ms"
