# A heap that could not shrink while the program ran, of one that frees all as it ends: by containers that are destroyed
# at exit, or at the end of main, before which it may have rested. At the very end nothing is live any more.
cat >index.cpp <<'CODE'
#include <map>
#include <string>
#include <unistd.h>
#include <vector>
static std::map<int, std::string> names;
__attribute__((noinline)) static void keep(int i)
{
    names[i] = "a name that is longer than what a string holds itself " + std::to_string(i);
}
int main()
{
    {
        std::vector<std::string> rows;
        for (int i = 0; i < 20000; i++) {
            rows.emplace_back(1000, 'x');
            if (i % 10 == 0)
                keep(i);
        }
    }
    for (int i = 0; i < 200; i++) {
        std::string step(200, 'y');
        usleep(5000);
    }
    return names.empty();
}
CODE
cat >rows.c <<'CODE'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noclone))
enum { ROWS = 40000, STEP = 10 };
static char *rows[ROWS], *kept[ROWS / STEP];
ALONE static void load(void)
{
    for (int i = 0; i < ROWS; i++) {
        rows[i] = memset(malloc(1000), 1, 1000);
        if (i % STEP == 0)
            kept[i / STEP] = memset(malloc(64), 1, 64);
    }
}
ALONE static void drop(char **blocks, int count)
{
    for (int i = 0; i < count; i++)
        free(blocks[i]);
}
static long resident(void)
{
    char text[100] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fgets(text, sizeof text, f))
        fclose(f);
    return atol(strchr(text, ' ') + 1) * 4096;
}
int main(int argc, char **argv)
{
    char mode = argc > 1 ? argv[1][0] : 'a';
    if (mode == 'f' && fork()) { /* in a child alone */
        wait(NULL);
        return 0;
    }
    load();
    if (mode == 'w' || mode == 's') { /* all is in use up to the end, or freed slowly: no page was free for long */
        for (int i = 0; i < 200; i++) {
            free(memset(malloc(200), 1, 200));
            usleep(5000);
        }
        for (int i = 0; i < ROWS; i += 100) {
            drop(rows + i, 100);
            if (mode == 's')
                usleep(2000);
        }
    } else {
        drop(rows, ROWS);
        for (int i = 0; i < 200; i++) {
            if (mode != 'r') /* else it rests */
                free(memset(malloc(200), 1, 200));
            usleep(5000);
        }
    }
    if (mode == 't') {
        long before = resident();
        malloc_trim(0);
        printf("fell=%ld\n", before - resident());
    }
    if (mode == 'm') /* above all that was, as it is larger than what is free between */
        memset(malloc(100000), 1, 100000);
    for (int i = ROWS / STEP; mode == 'b' && i--;) /* from above: the buffer comes there */
        drop(kept + i, 1);
    if (mode != 'b')
        drop(kept, ROWS / STEP);
    for (int i = 0; mode == 'o' && i < 20; i++) /* outputs, each with a buffer of its own */
        fclose(fopen("/dev/null", "w"));
    if (mode == 'l') /* it goes on without them */
        usleep(1000000);
    puts("all was freed"); /* a buffer comes after that */
    return 0;
}
CODE
# rows that are freed one after another, with work between; only near the end few of their pages' bytes are live
cat >queue.c <<'CODE'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { ROWS = 8000 };
static char *rows[ROWS], *kept[ROWS];
int main(int argc, char **argv)
{
    for (int i = 0; i < ROWS; i++) {
        rows[i] = memset(malloc(6000 + i % 512), 1, 6000);
        kept[i] = malloc(48);
        if (i % 40 == 0)
            usleep(5000);
    }
    for (int i = 0; i < ROWS; i++) {
        free(rows[i]);
        if (i % 40)
            continue;
        for (int step = 0; step < 2; step++)
            free(memset(malloc(200), 1, 200));
        usleep(5000);
    }
    if (argc > 1)
        _exit(0);
    for (int i = 0; i < ROWS; i++)
        free(kept[i]);
    return argv[0] == NULL;
}
CODE
"$CXX" -O1 -g -o index index.cpp
"$CC" -O1 -g -fno-builtin -o rows rows.c
"$CC" -O1 -g -fno-builtin -o queue queue.c
fell=$(./rows trim | sed -n 's/^fell=//p')
now='at [0-9.]* m\{0,1\}s, before it freed what it had as it ended'
# told FUNCTION: the finding, its column and table, and what it says of when
told() {
    "$MEMPROF" report out.db >report.txt
    equal "$1: one finding" 1 "$(grep -c "^\* Free, but kept from the kernel: $1 " report.txt)"
    grep -q "^\* Free, but .* would stay\. That is $now\.$" report.txt || fail "$1: when, in the finding"
    grep -q "^What keeps memory from the kernel, $now" report.txt || fail "$1: when, above the table"
    grep -q "^ *active *reserved *at [0-9.]* m*s " report.txt || fail "$1: when, above the column"
    "$MEMPROF" report out.db --html=page.html >page.out
    grep -q "<h2 id=\"heap-title\">The heap $now</h2>" page.html || fail "$1: when, on the page"
    # as --segments has it of the last step, before which nothing of what is kept was freed
    last=$("$MEMPROF" sql --csv out.db "SELECT max(time_ns) / 1000 FROM v_event WHERE op = 'alloc' AND
        size_bytes <= 201" | tail -n 1 | tr -d '\r')
    "$MEMPROF" report out.db --segments --by line --csv --at "$((last + 1)) us" >lines.csv
    equal "$1: what it holds" \
        "$(awk -F, -v name="$1" '$6 == name || $6 == name "(int)" { printf "%.2f MiB\n", $4 / 1048576 }' lines.csv)" \
        "$(sed -n 's/^\* Free, but .* holds \([0-9.]* MiB\) .*/\1/p' report.txt)"
}
# silent NAME: nothing was kept for long
silent() {
    "$MEMPROF" report out.db >report.txt
    lacks "$1: no finding" report.txt "kept from the kernel"
    lacks "$1: no finding of few bytes" report.txt "Few bytes live"
    lacks "$1: not that it was before its frees" report.txt "freed what it had"
}

record_ok ./rows all
told load
! command -v python3 >/dev/null || same_findings
# what it says would come back does
would=$(sed -n 's/^\* Free, but .* malloc_trim(0) would have given up to \([0-9.]*\) MiB .*/\1/p' report.txt)
percent=$(awk -v would="$would" -v fell="$fell" 'BEGIN { printf "%d", 100 * would * 1048576 / fell }')
at_least "malloc_trim gives back, in %" 95 "$percent"
at_most "malloc_trim gives back, in %" 103 "$percent"

# without an allocation while it goes on
record_ok ./rows rest
"$MEMPROF" report out.db >report.txt
equal "at rest: one finding" 1 "$(grep -c "^\* Free, but .* That is $now\.$" report.txt)"

# what it does after that is no work: outputs that it opens, a buffer that keeps the heap at its end; nor
# what it made shortly before: that kept nothing while it went on
for mode in outputs buffer made; do
    record_ok ./rows "$mode"
    "$MEMPROF" report out.db >report.txt
    equal "$mode: one finding" 1 "$(grep -c "^\* Free, but .*: load .* That is $now\.$" report.txt)"
done

# a container of the program's own, destroyed at exit
record_ok ./index
told keep

# one of several processes is named
record_ok sh -c './rows all; true'
"$MEMPROF" report out.db >report.txt
one='at [0-9.]* m\{0,1\}s, before rows, pid [0-9]*, freed what it had as it ended'
grep -q "^\* Free, but .* That is $one\.$" report.txt || fail "several processes: which"

# a forked worker
record_ok ./rows fork
"$MEMPROF" report out.db >report.txt
grep -q "^\* Free, but .*: load .* That is $one\.$" report.txt || fail "a worker"

record_ok ./rows trim # what stays are pages with a live byte
"$MEMPROF" report out.db >report.txt
lacks "given back before its frees" report.txt "kept from the kernel"
for how in "" quit; do
    record_ok ./queue $how
    silent "freed step by step $how"
done
record_ok ./rows work
silent "at work up to its end"
record_ok ./rows slow
silent "freed slowly"
record_ok ./rows later
silent "freed before its end"
