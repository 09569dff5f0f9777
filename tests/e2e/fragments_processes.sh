# A heap that cannot shrink, of one process among several: the same is said of it as if it ran alone, and whose it is.
program=$PROGRAMS/fragments
known() { sed -n "s/^$1=//p" run.out; }
pid_of() { value "SELECT pid FROM process WHERE exe LIKE '%/$1' ORDER BY process_id DESC LIMIT 1"; }
# is_said WHAT NAME: the finding, the column, the table and the page's strips, of the last process that ran NAME
is_said() {
    whose="of $2, pid $(pid_of "$2")"
    "$MEMPROF" report out.db >report
    contains "$1: finding" report "* Free, but kept from the kernel: "
    contains "$1: whose" report "glibc's heap $whose. malloc_trim(0)"
    grep -q '^ *active *reserved *at end' report || fail "$1: no column of what is reserved at the end"
    contains "$1: whose the column is" report "(reserved at end: $whose, whose heap kept most)"
    contains "$1: table" report "What keeps memory from the kernel, at the end $whose"
    "$MEMPROF" report out.db --html=page.html >/dev/null
    contains "$1: strip" page.html "The heap at the end $whose</h2>"
    "$MEMPROF" report out.db --json >report.json
}
held_by() { # FUNCTION: of the table
    sed -n '/"lines_holding"/,/\]/p' report.json | tr '{' '\n' |
        sed -n "s/.*\"held_bytes\": \([0-9]*\),.*\"function\": \"$1\".*/\1/p"
}

record_ok "$program" keep
"$MEMPROF" report out.db >report
contains "alone" report "glibc's heap. malloc_trim(0)"
lacks "alone" report "whose heap kept most"

# what waits for it ends later
record_ok timeout 60 "$program" keep
is_said "below timeout" fragments
equal "below timeout: held" "$(known held)" "$(($(held_by keep_key) + $(held_by keep_tag)))"
# another that has nothing to do with it goes on for longer than it ran
record_ok sh -c "sleep 3 & '$program' keep; wait"
is_said "beside sleep" fragments
equal "beside sleep: held" "$(known held)" "$(($(held_by keep_key) + $(held_by keep_tag)))"

# MIB freed but for a small block in eight of 6,000 bytes, MS before its end; so many MiB at least are free pages, as
# each block that stays has but one or two of twelve pages
cat >edge.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { ROW = 6000, MOST = 20000 };
static char *rows[MOST], *keys[MOST / 8];
int main(int argc, char **argv)
{
    int count = argc > 2 ? (atoi(argv[1]) << 20) / ROW : 0;
    for (int i = 0; i < count; i++) {
        rows[i] = memset(malloc(ROW), 1, ROW);
        if (i % 8 == 0)
            keys[i / 8] = memset(malloc(48), 1, 48);
    }
    usleep(1000000);
    for (int i = 0; i < count; i++)
        free(rows[i]);
    usleep((useconds_t)atoi(argv[2]) * 1000);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o small edge.c
cp small large
for order in "small 30 1500 & ./large 60 1500" "large 60 1500 & ./small 30 1500"; do
    record_ok sh -c "./$order; wait"
    is_said "$order" large
    bytes=$(sed -n 's/.*"rule": "held".*"bytes": \([0-9]*\).*/\1/p' report.json)
    at_least "$order: bytes" $((45 << 20)) "${bytes:-0}"
    at_most "$order: bytes" $((60 << 20)) "${bytes:-0}"
done
# the largest freed all as it ended; another kept its heap
record_ok sh -c "./large 60 1 & ./small 30 1500; wait"
is_said "one that kept it" small
# and none did, though others ran on: no finding, but what was there at its end
record_ok sh -c "./large 60 1 & sleep 3; wait"
"$MEMPROF" report out.db >report
lacks "as it ended" report "Free, but kept"
contains "as it ended: what was there" report "from the kernel, at the end of large, pid $(pid_of large)"

# segments of another allocator
path=$(ldconfig -p | sed -n 's|.*libjemalloc.so.2 .*=> ||p' | head -n 1)
[ -n "$path" ] || skip "no libjemalloc.so.2"
LD_PRELOAD=$path
export LD_PRELOAD
record_ok timeout 60 "$PROGRAMS/sparse"
unset LD_PRELOAD
"$MEMPROF" report out.db >report
contains "segments: finding" report "* Free, but kept from the kernel: keep (sparse.c:"
contains "segments: whose" report "in jemalloc's segments of sparse, pid $(pid_of sparse). Of "
free=$("$MEMPROF" report --json out.db | sed -n 's/.*"rule": "held".*"bytes": \([0-9]*\).*/\1/p')
# as in fragments_others.sh: 61 MiB less two pages for each of 6,250 blocks
at_least "segments: free and there" $((61 * 1048576 - 6250 * 2 * 4096)) "${free:-0}"

# A child that was forked and executes nothing keeps its heap, too; one that only has its parent's keeps nothing.
cat >forked.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { ROWS = 300000, EACH = 500 };
static void *rows[ROWS], *keys[ROWS / EACH];
__attribute__((noinline)) static void *keep_key(void)
{
    return memset(malloc(48), 1, 48);
}
static void fill(void)
{
    for (int i = 0; i < ROWS; i++) {
        rows[i] = memset(malloc(100), 1, 100);
        if (i % EACH == 0)
            keys[i / EACH] = keep_key();
    }
    for (int i = 0; i < ROWS; i++)
        free(rows[i]);
}
int main(int argc, char **argv)
{
    int is_before = argc > 1;
    (void)argv;
    if (is_before)
        fill();
    pid_t child = fork();
    if (child == 0) {
        if (!is_before)
            fill();
        usleep(1500000);
        return 0;
    }
    waitpid(child, NULL, 0);
    return 0;
}
END
"$CC" -g -O1 -fno-builtin -o forked forked.c
record_ok ./forked
child=$(value "SELECT pid FROM process WHERE start_kind = 'fork'")
"$MEMPROF" report out.db >report.txt
contains "a forked child" report.txt \
    "* Free, but kept from the kernel: keep_key (forked.c:9): 28.12 KiB live in 600 blocks"
contains "... its heap" report.txt "below the top of glibc's heap of forked, pid $child"
contains "... and its lines" report.txt "What keeps memory from the kernel, at the end of forked, pid $child"
record_ok ./forked before
"$MEMPROF" report out.db >report.txt
parent=$(value "SELECT pid FROM process WHERE start_kind = 'exec'")
contains "what the parent keeps" report.txt "below the top of glibc's heap of forked, pid $parent"
