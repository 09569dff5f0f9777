# A heap that cannot shrink: which lines pin its pages and hold free ones below its top, against the program's own count
# of pages and what malloc_trim(0) gives back.
program=$PROGRAMS/fragments
known() { sed -n "s/^$1=//p" run.out; }
# column LINE FUNCTION: a number of lines.csv
column() { awk -F, -v name="$2" -v column="$1" '$6 == name { print $column }' lines.csv; }
lines() { "$MEMPROF" report out.db --segments --by line --csv "$@" >lines.csv; }
sum() { awk -F, -v column="$1" 'NR > 1 { sum += $column } END { printf "%d\n", sum }' lines.csv; }
# all KEY [AT]: its sum over the heaps of glibc and the segments of others
all() {
    {
        "$MEMPROF" report out.db --segments --json "${2:---at=end}"
        "$MEMPROF" report out.db --segments --by heap --json "${2:---at=end}"
    } | grep -o "\"$1\": [0-9]*" |
        awk '{ sum += $2 } END { printf "%d\n", sum }'
}
pages_add_up() {
    equal "$1: lines against heaps" \
        "$(($(all pinned_page_bytes "$2") + $(all shared_page_bytes "$2")))|$(all held_page_bytes "$2")" \
        "$(sum 3)|$(sum 4)"
}

for mode in keep thread; do
    record_ok "$program" $mode
    lines
    equal "$mode: pinned by keep_key" "$(known key)" "$(column 3 keep_key)"
    equal "$mode: pinned by keep_tag" "$(known tag)" "$(column 3 keep_tag)"
    equal "$mode: shared" "$(known shared)" "$(column 3 '(shared by several lines)')"
    equal "$mode: held" "$(known held)" "$(($(column 4 keep_key) + $(column 4 keep_tag)))"
    equal "$mode: live" "48000|1000|2000|100" \
        "$(column 1 keep_key)|$(column 2 keep_key)|$(column 1 keep_tag)|$(column 2 keep_tag)"
    pages_add_up $mode --at=end
    "$MEMPROF" report out.db --segments >segments
    contains "$mode: the heaps" segments "Heaps of glibc"
    if [ $mode = thread ]; then contains "arena of a thread" segments "arena 0x"; fi
    "$MEMPROF" report out.db >report
    # the most that was reserved, in the report, on the page and in the database
    "$MEMPROF" report out.db --html=page.html >page.out
    shown=$(sed -n 's/^host *all .* >= \([0-9.]* [KMG]iB\) .*/\1/p' report)
    equal "$mode: peak reserved, of the page" "&gt;= $shown" \
        "$(sed -n 's/.*<dt>Peak reserved<.dt><dd>\([^<]*[^< ]\) *<.*/\1/p' page.html | head -1)"
    equal "$mode: peak reserved, of the database" "$shown" "$(value "SELECT printf('%.2f MiB', peak_reserved_bytes /
        1048576.0) FROM v_total WHERE device = 'host' AND kind = 'all'")"
    shared=$(sed -n 's/^ *\([0-9.]* [KM]*i*B\) .*(shared by several lines).*/\1/p' segments)
    contains "$mode: shared, of the page" page.html \
        "heap-key ls\"></span></td><td></td><td>$shared</td><td></td><td>(shared by several lines)</td>"
    contains "$mode: finding" report "* Free, but kept from the kernel: keep_key (fragments.c:"
    lacks "$mode: the peak that is no help" report "The peak is short"
    [ $mode != keep ] || ! command -v python3 >/dev/null || same_findings
    contains "$mode: table" report "What keeps memory from the kernel, at the end"
    grep -q '^ *active *reserved *at end' report || fail "$mode: no column of what is reserved at the end"
    # what the heap could not give back is in the timeline up to the end, 300 ms after the last block was freed
    at_least "$mode: reserved at the end, by the timeline" $((47 << 20)) \
        "$(value "SELECT reserved_last_bytes FROM timeline WHERE device_id = 0 AND level = 0 AND reserved_last_bytes > 0
        ORDER BY time_ns DESC LIMIT 1")"
    at_least "$mode: up to, in %" 90 \
        "$(value "SELECT 100 * max(time_ns) / (SELECT value FROM meta WHERE key = 'duration_ns') FROM timeline
        WHERE device_id = 0 AND level = 0 AND reserved_last_bytes > $((40 << 20))")"
done

# what is said to come back does
held=$(($(all held_page_bytes) + $(all top_page_bytes)))
"$program" trim >plain
fell=$(sed -n 's/^fell=//p' plain)
at_least "malloc_trim gave back, in %" 95 $((100 * fell / held))
at_most "malloc_trim gave back, in %" 102 $((100 * fell / held))

# at the peak no page is free; in the middle of it the sums hold as well
lines --at peak
pages_add_up "at the peak" --at=peak
at_most "held at the peak" 100000 "$(sum 4)"
lines --at "$(value "SELECT (SELECT peak_active_ns FROM v_total WHERE kind = 'all') / 2000") us"
at_most "held on the way there" 100000 "$(sum 4)"

# the page: a finding and the heap by address
"$MEMPROF" report out.db --html >/dev/null
contains "page" out.html '<section id="heap"'
contains "page" out.html 'class="lh"'
"$MEMPROF" report out.db --json >report.json
contains "JSON" report.json '"lines_holding"'
contains "JSON" report.json '"rule": "held"'

# a file of an older version
cp out.db old.db
sqlite3 old.db 'DROP TABLE heap_range'
"$MEMPROF" report old.db >report || fail "a file without heap_range"
lacks "older" report "Free, but kept"
contains "older" report "keep_key"

# the program had it trimmed: nothing is there any more, whatever the addresses say
record_ok "$program" trim
"$MEMPROF" report out.db >report
lacks "trimmed" report "Free, but kept"
"$MEMPROF" report --segments out.db >segments
contains "trimmed, its heap" segments "malloc_trim had given it back"
gone=$(sed -n 's/^Of the free pages of .* at least \([0-9]*\)\.\([0-9]\).* MiB took no memory .*/\1\2/p' segments)
at_least "trimmed, in % of what fell" 95 $((100 * gone * 1048576 / 10 / fell))
at_most "trimmed, in % of what fell" 102 $((100 * gone * 1048576 / 10 / fell))
record_ok "$program" keep
"$MEMPROF" report --segments out.db >segments
lacks "not trimmed" segments "took no memory"
# what the program frees as it ends was there when its pages were last looked at
cat >freed.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *rows[5000], *top, *volatile small;
__attribute__((destructor)) static void end(void)
{
    for (int i = 0; i < 5000; i++)
        free(rows[i]);
}
int main(void)
{
    for (int i = 0; i < 5000; i++) {
        rows[i] = malloc(3000);
        memset(rows[i], 1, 3000);
    }
    top = strdup("keeps the heap's top");
    for (int i = 0; i < 60; i++) {
        usleep(10000);
        small = malloc(100);
        free(small);
    }
    return !top;
}
END
$CC -O1 -o freed freed.c
record_ok ./freed
# as where a look at the very end would have cost too much, and the last one was when all was there
last=$("$MEMPROF" sql --csv out.db "SELECT max(time_ns) FROM v_event WHERE size_bytes = 100" | tail -n 1 | tr -d '\r')
sqlite3 out.db "UPDATE resident_scan SET is_last = is_peak; UPDATE resident_scan SET time_ns = $last WHERE is_peak"
"$MEMPROF" report --segments out.db >segments
at_least "free at its end" 14000000 "$(all held_page_bytes)"
at_least "... which a look saw in use" 14000000 "$(value "SELECT sum(live_bytes) FROM resident_site JOIN resident_scan
    USING(scan_id) WHERE is_last")"
lacks "freed as it ended" segments "took no memory"
# so many free chunks that glibc is not asked again before the end: what it maps then is reserved all the same
cat >late.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { COUNT = 500000, LARGE = (20 << 20) - 24 };
static char *blocks[COUNT + 1];
int main(void)
{
    char *start = sbrk(0); /* nothing was allocated yet */
    for (int i = 0; i < COUNT; i++)
        blocks[i] = malloc(200);
    for (int i = 0; i < COUNT; i += 2)
        free(blocks[i]);
    for (int i = 0; i < COUNT / 4; i++)
        free(malloc(16));
    blocks[COUNT] = memset(malloc(LARGE), 1, LARGE);
    dprintf(1, "reserved=%zd\n", (char *)sbrk(0) - start + LARGE + 24);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o late late.c
record_ok ./late
equal "mapped late: peak" "$(known reserved)" \
    "$(value "SELECT peak_reserved_bytes FROM v_total WHERE device = 'host' AND kind = 'heap'")"
equal "mapped late: at the end" "$(known reserved)" "$(value "SELECT reserved_last_bytes FROM timeline WHERE
    device_id = 0 AND level = 0 AND reserved_last_bytes > 0 ORDER BY time_ns DESC LIMIT 1")"
"$MEMPROF" report out.db --segments --by heap --json >heaps.json
equal "mapped late: the heaps" "$(known reserved)" \
    "$(grep -o '"size_bytes": [0-9]*' heaps.json | awk '{ sum += $2 } END { print sum }')"

# parts of pages lay idle, and the pages were free for the program's last moment alone
cat >parts.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { COUNT = 9000, SIZE = 1300 }; /* three on a page */
static void *blocks[COUNT];
int main(void)
{
    for (int i = 0; i < COUNT; i++)
        blocks[i] = memset(malloc(SIZE), 1, SIZE);
    for (int i = 0; i < COUNT; i++)
        if (i % 3 < 2)
            free(blocks[i]);
    sleep(1);
    for (int i = 2; i < COUNT - 1; i += 3)
        free(blocks[i]);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o parts parts.c
record_ok ./parts
"$MEMPROF" report out.db >report
lacks "free at the end alone" report "Free, but kept"
contains "free at the end alone: what is so then" report "What keeps memory from the kernel"
grep -q '^ *active *reserved *at end' report || fail "free at the end alone: no column of what is reserved then"
# What was freed before the last hundredth of the allocations was kept while the program worked, however short that was
# by the clock; what was freed as it ended, not. On both sides of a tenth of the run.
cat >edge.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { ROWS = 8000, ROW = 6000 };
static char *rows[ROWS], *keys[ROWS / 8];
static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
/* edge SERVED MS: 48 MB, freed but for a small block in eight rows, then so many requests; ms: how long they take.
 * edge idle MS: it frees at once, and then sleeps, twice as long as it ran at least, whatever held it up. */
int main(int argc, char **argv)
{
    double start_ms = now_ms();
    int served = argc > 2 ? atoi(argv[1]) : 0, ms = argc > 2 ? atoi(argv[2]) : 0;
    int is_idle = argc > 2 && strcmp(argv[1], "idle") == 0;
    for (int i = 0; i < ROWS; i++) {
        rows[i] = memset(malloc(ROW), 1, ROW);
        if (i % 8 == 0)
            keys[i / 8] = memset(malloc(48), 1, 48);
    }
    if (!is_idle)
        usleep(1000000);
    for (int i = 0; i < ROWS; i++)
        free(rows[i]);
    double ran_ms = now_ms() - start_ms;
    if (is_idle)
        usleep((useconds_t)(1000 * (2 * ran_ms > ms ? 2 * ran_ms : ms)));
    for (int i = 0; i < served; i++) {
        free(malloc(100));
        usleep((useconds_t)(ms * 1000 / served));
    }
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o edge edge.c
held() { # SERVED MS: whether there is a finding
    record_ok ./edge "$@"
    "$MEMPROF" report out.db --json | grep -c '"rule": "held"'
}
equal "a twentieth of the run" 1 "$(held 200 50 | tail -n 1)"
equal "a fifth of the run" 1 "$(held 200 250 | tail -n 1)"
equal "as it ended" 0 "$(held 3 6 | tail -n 1)"
equal "as it ended, where the machine stops it for long" 0 "$(held 1 600 | tail -n 1)"
equal "for most of the run, though less than a second" 1 "$(held idle 700 | tail -n 1)"
equal "and for longer than that" 1 "$(held 1 1500 | tail -n 1)"

# and nothing where nothing is wrong
record_ok true
"$MEMPROF" report out.db >report
lacks "true" report "Free, but kept"
lacks "true" report "What keeps memory from the kernel"
"$MEMPROF" report out.db --segments >segments

# an allocator whose mappings are seen: the same figures by line
for library in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
    path=$(ldconfig -p | sed -n "s|.*$library .*=> ||p" | head -n 1)
    if [ -z "$path" ]; then echo "  no $library"; continue; fi
    record env LD_PRELOAD="$path" "$program" keep
    lines
    at_least "$library: live" 48000 "$(column 1 keep_key)"
    at_least "$library: pinned pages" 12 "$(($(column 3 keep_key) / 4096))"
    pages_add_up "$library" --at=end
    "$MEMPROF" report out.db >report
    lacks "$library: malloc_trim is glibc's" report "malloc_trim"
    # what has no block is pinned by none, and says so
    "$MEMPROF" report out.db --segments --top 0 >segments
    "$MEMPROF" report out.db --segments --csv --top 0 >segments.csv
    equal "$library: segments without a block" \
        "$(sqlite3 :memory: ".import --csv segments.csv s" "SELECT count(*) FROM s WHERE live_count = 0")" \
        "$(grep -c ' (no block)' segments)"
done

# What lines have of pages that they share: blocks of 24 and of 88 bytes by turns, with the 16 before each, so 40 and
# 104 parts of 144 of 10,000 times 128 bytes, but for a page at each end; and the lines' parts are all that is shared.
cat >turns.c <<'END'
#include <stdlib.h>
static void *kept[20000];
__attribute__((noinline)) static void *small(void)
{
    return malloc(24);
}
__attribute__((noinline)) static void *large(void)
{
    return malloc(88);
}
int main(void)
{
    for (int i = 0; i < 20000; i += 2) {
        kept[i] = small();
        kept[i + 1] = large();
    }
    return kept[19999] == NULL;
}
END
"$CC" -O1 -g -fno-builtin -fno-optimize-sibling-calls -o turns turns.c
record_ok ./turns
"$MEMPROF" report out.db --segments --by line --csv --top 0 >lines.csv
sqlite3 :memory: ".import --csv lines.csv l" "SELECT
    (SELECT CAST(pinned_bytes AS INTEGER) FROM l WHERE function LIKE '(shared%') -
    (SELECT CAST(sum(shared_bytes) AS INTEGER) FROM l),
    (SELECT abs(sum(shared_bytes) - 1280000 * 40 / 144) <= 8192 FROM l WHERE function = 'small'),
    (SELECT abs(sum(shared_bytes) - 1280000 * 104 / 144) <= 8192 FROM l WHERE function = 'large')" >parts.txt
equal "parts of shared pages" "0|1|1" "$(cat parts.txt)"
contains "the column" "$("$MEMPROF" report out.db --segments >segments.txt; echo segments.txt)" "of shared"
