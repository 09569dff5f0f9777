# Sentences above the tables, in JSON and on the page: growth, a leak, a short peak, with their numbers; a wrapper that
# --skip is offered for; and nothing where nothing is wrong.
cat >app.c <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
static void *kept[4096];
static int used;
OWN static void *take(size_t size)
{
    void *p = malloc(size); /* take */
    memset(p, 1, size);
    return p;
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
OWN static void grow_over(int pause)
{
    double begin = now(), last = begin, longest = 0;
    for (int i = 0; i < 2000; i++) {
        void *p = malloc(4096); /* grow */
        kept[used++] = p;
        free(take(100));
        usleep(pause);
        double t = now();
        longest = t - last > longest ? t - last : longest;
        last = t;
    }
    printf("%d\n", longest * 14 < last - begin); /* no stop took as long as lies between two looks at the growth */
}
static void grow(void) { grow_over(getenv("PAUSE") ? atoi(getenv("PAUSE")) : 200); }
OWN static void grow_beside(void)
{
    void *p = take(16 << 20);
    grow();
    free(p);
}
OWN static void fill(void)
{
    double begin = now();
    grow();
    double grown = now();
    while (used)
        free(kept[--used]);
    if ((now() - grown) * 14 >= grown - begin)
        printf("the end took too long\n");
}
OWN static void leak(void)
{
    for (int i = 0; i < 80; i++) {
        void *p = malloc(65536); /* leak */
        kept[used++] = memset(p, 1, 65536);
    }
    for (int i = 0; i < 500; i++)
        usleep(200);
}
OWN static void spike(void)
{
    for (int i = 0; i < 2000; i++) {
        void *p = i == 1000 ? malloc(8 << 20) : NULL;
        free(take(1000));
        usleep(200);
        free(p);
    }
}
OWN static void *obtain(size_t size)
{
    void *p = malloc(size);
    return kept[used++] = p;
}
OWN static void *obtain_two(size_t size)
{
    void *p = size & 1 ? malloc(size) : NULL;
    if (!p)
        p = malloc(size);
    return kept[used++] = p;
}
OWN static void *buffer_alloc(size_t size)
{
    void *p = malloc(size);
    return kept[used++] = p;
}
#define CALLER(name, by, size) OWN static void name(void) { by(size); __asm__ volatile(""); }
CALLER(one, obtain, 1000) CALLER(two, obtain, 2000) CALLER(three, obtain, 3000) CALLER(four, obtain, 4000)
CALLER(one_2, obtain_two, 1001) CALLER(two_2, obtain_two, 2000) CALLER(three_2, obtain_two, 3001)
CALLER(four_2, obtain_two, 4000)
CALLER(left, buffer_alloc, 1000) CALLER(right, buffer_alloc, 1000)
OWN static void forks(void)
{
    for (int i = 0; i < 100; i++)
        kept[used++] = take(100);
    if (fork() == 0) {
        for (int i = 0; i < 100; i++)
            free(kept[i]);
        _exit(0);
    }
    wait(NULL);
    for (int i = 0; i < 100; i++)
        free(kept[i]);
}
OWN static void hold(int count, size_t size)
{
    for (int i = 0; i < count; i++)
        kept[used++] = take(size);
}
/* Two children at once, each with the parent's 30 MiB and 3 of its own. */
OWN static void pre_fork(void)
{
    hold(300, 100000);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            hold(30, 100000);
            usleep(200000);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
}
/* One that has 10 MiB of its parent's, and makes holes of 30 MiB in its own 60. */
OWN static void holes(void)
{
    hold(100, 100000);
    usleep(100000); /* the next sample is due */
    free(take(100));
    if (fork() == 0) {
        hold(1200, 50000);
        for (int i = 100; i < 1300; i += 2)
            free(kept[i]);
        hold(300, 100000);
        usleep(100000);
        free(take(100));
        _exit(0);
    }
    wait(NULL);
}
OWN static void *gain(size_t size)
{
    void *p = malloc(size);
    return kept[used++] = memset(p, 1, size);
}
/* By 15 functions through one, which makes more and more of them. */
#define KEEPER(n) CALLER(keep_##n, gain, 1 << 19)
KEEPER(1) KEEPER(2) KEEPER(3) KEEPER(4) KEEPER(5) KEEPER(6) KEEPER(7) KEEPER(8) KEEPER(9) KEEPER(10) KEEPER(11)
KEEPER(12) KEEPER(13) KEEPER(14) KEEPER(15)
OWN static void keep_all(void)
{
    static void (*const keepers[])(void) = {keep_1, keep_2, keep_3, keep_4, keep_5, keep_6, keep_7, keep_8, keep_9,
                                            keep_10, keep_11, keep_12, keep_13, keep_14, keep_15};
    for (int i = 0; i < 60; i++) {
        keepers[i / 4]();
        for (int k = 0; k < 10; k++) {
            free(take(100));
            usleep(200);
        }
    }
}
int main(int argc, char **argv)
{
    switch (argv[argc - 1][0]) {
    case 'g': grow(); break;
    case 'G': grow_over(6500); break;
    case 'i': grow_beside(); break;
    case 'l': leak(); break;
    case 'e': fill(); break;
    case '2':
        if (fork() == 0) {
            leak();
            _exit(0);
        }
        wait(NULL);
        leak();
        break;
    case 's': spike(); break;
    case 'p': pre_fork(); break;
    case 'h': holes(); break;
    case 'f': forks(); break;
    case 'k': keep_all(); break;
    case 'w': one(), two(), three(), four(); break;
    case 't': one_2(), two_2(), three_2(), four_2(); break;
    case 'b': left(), right(); break;
    default: return 2;
    }
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -fno-optimize-sibling-calls -o app app.c
line() { grep -n "/\* $1 \*/" app.c | cut -d: -f1; }
# record_steady MODE: more slowly where a busy machine stopped the program for long
record_steady() {
    for PAUSE in 200 400 1000 3000; do
        export PAUSE
        record_ok ./app "$1"
        [ "$(cat run.out)" = 1 ] && return
    done
}
# said: the sentences above the tables, by their titles; those that are information with a (
said() {
    sed -n '/^$/q; s/^\* \([^:]*\): .*/\1/p; s/^\([A-Z][a-z]* [^:]*\): .*/(\1/p' report.txt | grep -v '^(Ended' |
        paste -sd, -
}
# found KEY...: of each finding of the JSON
found() {
    python3 -c 'import json, sys
for f in json.load(open("report.json"))["findings"]:
    if not f["minor"]: print(*(f[k] for k in sys.argv[1:]))' "$@"
}
reports() {
    same_findings ${1:+--skip "$1"}
}
# Whatever --skip shows as whose, what there is to say and how bad it is stays.
same_with_skip() {
    reports "$1"
    mv report.json skipped.json
    reports
    python3 - <<'END' || fail "--skip $1 changed the findings"
import json
plain, skipped = ([(f["rule"], f["severity"], f["minor"], f["device"]) for f in json.load(open(name))["findings"]]
                  for name in ("report.json", "skipped.json"))
assert plain == skipped, (plain, skipped)
END
}
need python3

"$MEMPROF" run -q -o long.db -- ./app G >long.out 2>&1 & # 13 seconds of growth, looked at in the end
record_steady g
reports
equal "growth: what is said" "Never freed,(Growth all the way" "$(said)"
equal "growth: in JSON" "leaks warning grow_over $PWD/app.c $(line grow)
growth info grow_over $PWD/app.c $(line grow)" "$(found rule severity function file line)"
# 85 % of the way of 8,000 KiB lies between its two instants
grown=$(found rule bytes | sed -n 's/^growth //p')
at_least "growth: bytes" $((2000 * 4096 * 7 / 10)) "$grown"
at_most "growth: bytes" $((2000 * 4096)) "$grown"
contains "growth: the line" report.txt "Growth all the way: grow_over (app.c:$(line grow)) held "
lacks "growth: no rate of so short a run" report.txt " a second."
contains "growth: on the page" page.html "<h3>Growth all the way</h3>"
# with the wrapper left out, it is its callers'
"$MEMPROF" report out.db --skip grow_over >skipped.txt
contains "growth: of the caller" skipped.txt "Growth all the way: grow (app.c:"
# a part of the recording is not what they are about
for part in "--kind heap" "--process $(value 'SELECT pid FROM process')"; do
    "$MEMPROF" report out.db $part >part.txt
    lacks "with $part" part.txt 'Growth all'
done

# 15 functions' lines behind a wrapper's one: no more of them is said to grow, and no fewer to leak
record_ok ./app k
same_with_skip gain
contains "a wrapper's leak: what is said" report.txt "* Never freed: 30.00 MiB in 60 blocks of host"

# beside more than it, the growth of so short a run is for the page: 7.8 of 23.8 MiB
record_steady i
reports
equal "growth beside more: what is said" "Never freed" "$(said)"
equal "growth beside more: in JSON" "" "$(found rule | grep growth || true)"
contains "growth beside more: on the page" page.html "<h3>Growth all the way</h3>"

record_ok ./app l
reports
equal "leak: what is said" "Never freed" "$(said)"
contains "leak: the sentence" report.txt "* Never freed: 5.00 MiB in 80 blocks of host were still live at the end. All\
 of it: leak (app.c:$(line leak)), 5.00 MiB in 80 blocks."
equal "leak: in JSON" "leaks $((80 * 65536)) host" "$(found rule bytes device)"
# names that a program gave its own code are none of C++'s, and what has no name is called as in every table
cp out.db made.db
sqlite3 made.db "UPDATE line SET file_id = NULL, module_key_id = NULL WHERE function_id = (SELECT function_id FROM
    function WHERE name = 'leak'); UPDATE function SET name = 'Eval:~leak x.js <b>' WHERE name = 'leak';
    UPDATE address SET module_id = NULL"
"$MEMPROF" report made.db >report.txt
contains "leak: a made name" report.txt " of it: Eval:~leak x.js <b>, 5.00 MiB"
sqlite3 made.db "UPDATE line SET function_id = NULL WHERE file_id IS NULL AND module_key_id IS NULL"
"$MEMPROF" report made.db >report.txt
contains "leak: no name" report.txt " of it: ??, 5.00 MiB"
# with three allocations that failed before its end it is the fourth, and a line says that there is one more
sqlite3 out.db "WITH v(value) AS (VALUES(1), (2), (3))
    INSERT INTO oom(time_ns, device_id, kind, process_id, size_bytes, active_bytes)
    SELECT end_ns - value, 0, 'heap', process_id, 1000000 + value, 0 FROM process, v"
reports
equal "failures first" "Out of memory,Out of memory,Out of memory" "$(said)"
contains "and one more" report.txt "(1 more like this: --html and --json have all)"

# the same twice, of two processes, is no sum that was ever live
record_ok ./app 2
reports
contains "leaks of two processes" report.txt \
    "* Never freed: 10.00 MiB in 160 blocks of host were still live at the ends of their processes; of 2 processes the"
contains "the larger of them" report.txt "; of 2 processes the largest, app, had 5.00 MiB. All of it: leak (app.c:"
equal "what weighs is one of them" "leaks $((80 * 65536))" "$(found rule bytes | grep leaks)"

# what is told of the largest process is without what libraries keep, as the sum is (libstdc++ takes 72,704 bytes in
# each), and it is not the one with the line that has most of all
cat >team.cpp <<'END'
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) static void grab() { kept = malloc(2 << 20); }
__attribute__((noinline)) static void hoard() { kept = malloc(5 << 20); }
int main(int argc, char **argv)
{
    for (int i = 0; argc == 1 && i < 4; i++) {
        if (vfork() == 0) {
            execl(argv[0], argv[0], i ? "grab" : "hoard", nullptr);
            _exit(1);
        }
        wait(nullptr);
    }
    if (argc > 1)
        argv[1][0] == 'g' ? grab() : hoard();
    if (argc > 1)
        memset(kept, 1, argv[1][0] == 'g' ? 2 << 20 : 5 << 20);
}
END
"$CXX" -O1 -g -fno-builtin -o team team.cpp -Wl,--no-as-needed -lstdc++
record_ok ./team
reports
contains "several processes: the largest" report.txt "; of 5 processes the largest, team, had 5.00 MiB. The largest\
 part: grab (team.cpp:6), 6.00 MiB in 3 blocks. The largest of team: hoard (team.cpp:7), 5.00 MiB in 1 block."

# what a helper of another program leaves is no leak of the program that runs it
cat >helper.c <<'END'
#include <stdlib.h>
#include <string.h>
static void *volatile kept;
int main(void)
{
    kept = malloc(6 << 20);
    memset(kept, 1, 6 << 20);
    return 0;
}
END
cat >runs.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) static void own(size_t size) { kept = memset(malloc(size), 1, size); }
int main(int argc, char **argv)
{
    (void)argv;
    own(argc > 1 ? 5 << 20 : 3 << 10);
    for (int i = 0; i < 2; i++) {
        if (vfork() == 0) {
            execl("./helper", "helper", NULL);
            _exit(1);
        }
        wait(NULL);
    }
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o helper helper.c
"$CC" -O1 -g -fno-builtin -o runs runs.c
others="Live at the ends of other programs: 12.00 MiB in 2 blocks of host, at the ends of the programs that this one\
 ran: the largest of 2 processes, helper, had 6.00 MiB. All of it: main (helper.c:6), 12.00 MiB in 2 blocks."
record_ok ./runs
reports
lacks "a helper's leak" report.txt "Never freed"
contains "a helper's leak: whose it is" report.txt "$others"
"$MEMPROF" advise out.db >advice.txt
lacks "a helper's leak: nothing to be done" advice.txt "freed"
# run by what executes it in its place, whose memory was gone then
cat >first.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    void *volatile kept = memset(malloc(7 << 20), 1, 7 << 20);
    return kept ? execl("./runs", "runs", "all", NULL) : 1;
}
END
"$CC" -O1 -g -fno-builtin -o first first.c
record_ok ./first
reports
contains "its own leak beside a helper's" report.txt \
    "* Never freed: 5.00 MiB in 1 block of host was still live at the end. All of it: own (runs.c:6), 5.00 MiB in 1"
contains "... and the helper's" report.txt "$others"
contains "... and what was before it" report.txt \
    "Live as another program was executed: 7.00 MiB in 1 block of host, as first executed runs in its place. All of\
 it: main (first.c:6), 7.00 MiB in 1 block."
"$MEMPROF" leaks out.db >leaks.txt
contains "leaks: of others" leaks.txt "Not counted: 12.00 MiB in 2 blocks of another program (helper); --process PID"
contains "leaks: of what was before it" leaks.txt \
    "Not counted: 7.00 MiB in 1 block of what executed another program in its place (first); --all shows everything."

# children of a server that has named itself are of its program: the title is one word of their command line
cat >titled.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
    size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    memset(argv[0], 0, room);
    strncpy(argv[0], "served: the first", room - 1);
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            kept = malloc(5 << 20);
            memset(kept, 1, 5 << 20);
            exit(0);
        }
        wait(NULL);
    }
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o titled titled.c
record_ok ./titled room for a title
reports
contains "a title: whose" report.txt "; of 3 processes the largest, served: the first, had 5.00 MiB"

# the mappings of an allocator within the program are no leak of it
cat >arena.c <<'END'
#include <string.h>
#include <sys/mman.h>
__attribute__((noinline)) static void *pages_map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, size);
    return p;
}
int main(void)
{
    return pages_map(8 << 20) == NULL;
}
END
"$CC" -O1 -g -fno-builtin -o arena arena.c
record_ok ./arena
"$MEMPROF" report out.db >report.txt
lacks "an allocator's mappings" report.txt "* Never freed"
"$MEMPROF" leaks out.db --error-exitcode 9 >leaks.txt || fail "leaks: an allocator's mappings"
contains "an allocator's mappings" leaks.txt "Not shown: 8.00 MiB in 1 block of an allocator within the program"

# forked processes have their parent's heap once more, its blocks count once
record_ok ./app p
reports
equal "forked processes: what is said" "Never freed" "$(said)"
# 300 + 2 * 30 blocks of 100,000 bytes, and the last ones' pages
at_most "forked processes: reserved" 37500000 "$(value "SELECT peak_reserved_bytes FROM v_total WHERE kind = 'heap'")"
record_ok ./app h
reports
idle=$(found rule bytes | sed -n 's/^gap //p')
at_least "its holes" 29000000 "$idle"
at_most "its holes, and no heap of the parent" 32000000 "$idle"
sqlite3 out.db "DELETE FROM meta WHERE key = 'forked_heap'"
"$MEMPROF" report out.db >report.txt
lacks "where the parent's part is not known" report.txt "Reserved, but not in use"

# what is given back at the end did stop to grow
record_steady e
reports
equal "filled: what is said" "(Growth nearly to the end" "$(said)"
equal "filled: in JSON" "growth info grow_over $(line grow)" "$(found rule severity function line)"
contains "filled: the sentence" report.txt ", growing nearly all the way. It was given back then."

record_ok ./app s
reports
equal "short peak: what is said" "(The peak is short" "$(said)"
equal "short peak: when" "spike info $(total peak_active_ns all)" "$(found rule severity time_ns)"
lacks "short peak: no link in the sentence" report.txt "Look at that moment"
contains "short peak: but on the page" page.html ">Look at that moment</a>"
# one that lasts to the end may have lasted longer
sqlite3 out.db "UPDATE timeline SET active_max_bytes = 8388608 WHERE device_id = 0 AND (level, time_ns) IN
    (SELECT level, max(time_ns) FROM timeline WHERE device_id = 0 GROUP BY level)"
reports
equal "a peak to the end" "" "$(found rule | grep spike || true)"

# a wrapper is known by what it does (one line, many callers), or by its name (two are enough)
record_ok ./app w
reports
contains "a wrapper without a name for it" report.txt "memprof report --skip obtain   ("
record_ok ./app b
reports
contains "a wrapper with two callers" report.txt "memprof report --skip buffer_alloc   ("
# 2,000 bytes, though all of the peak
cp out.db other.db
"$MEMPROF" report other.db --html=other.html >/dev/null
contains "the page's command has the file" other.html "<code>memprof report other.db --skip buffer_alloc</code>"
contains "little that is left: for information" page.html '<li class="finding info" data-rule="leaks"><h3>Never freed'
record_ok ./app t
reports
lacks "two lines, four callers" report.txt "--skip"
equal "wrappers: what is said" "" "$(said)"

# blocks of a parent that a child frees are a fact of every fork, and no number is wrong
record_ok ./app f
reports
lacks "fork: on the terminal" run.err "not whole"
"$MEMPROF" info out.db >info.txt
contains "fork: the fact" info.txt "100  frees of a parent's blocks in a forked child"
equal "fork: what is said" "" "$(said)$(grep '^!' report.txt || true)"
equal "fork: in JSON" "" "$(found rule)"

# Python whose frames are not understood: stacks lack them, no number is wrong
sqlite3 out.db "INSERT INTO counter VALUES(NULL, 'python_unknown', 1, 'x')"
reports
contains "not understood: said" report.txt "the frames of this Python are not understood"
lacks "not understood: on the page" page.html "<strong>Not whole"
# numbers that are wrong, with how much
events=$(value "SELECT value FROM meta WHERE key = 'event_count'")
sqlite3 out.db "INSERT INTO counter VALUES(NULL, 'lost_event', $events, 'x'), (NULL, 'unmatched_free', 3, 'x')"
reports
contains "lost: how much" report.txt "events (50.0 %) were not recorded, and no count has them"
contains "lost: on the page" page.html "<strong>Not whole:</strong>"
contains "unmatched: how much" report.txt "! 3 frees of addresses that are no live block"

for quiet in 'true' 'ls /' 'sqlite3 :memory: .exit' 'sh -c true'; do
    record_ok $quiet
    reports
    equal "$quiet: what is said" "" "$(said)"
    equal "$quiet: in JSON" "" "$(found rule)"
    lacks "$quiet: on the terminal" run.err "not whole"
done

# what libraries keep is told beside it, however little: both together are the tables' sum
cat >kept.cpp <<'EOT'
#include <cstdlib>
#include <cstring>
#include <string>
char *kept;
int main(int argc, char **)
{
    for (int i = 0; i < 100; i++)
        *(char *volatile *)&kept = (char *)std::memset(std::malloc(65536 * 2), argc, 65536 * 2);
    return std::string(argc, 'x').empty();
}
EOT
"$CXX" -g -O1 -fno-builtin -o kept kept.cpp
record ./kept
"$MEMPROF" report out.db >report.txt
kept=$(($(total end_count) - 100))
at_least "blocks of libraries" 1 "$kept"
contains "leak: what libraries keep beside it" report.txt "* Never freed: 12.50 MiB in 100 blocks of host were"
contains "leak: how many blocks" report.txt " in $kept block"
contains "leak: whose they are" report.txt \
    " that libraries, interpreters and allocators keep for themselves. All of it: "

# of a run that is long enough, with what it is a second: 8,000 KiB in 13 seconds or more
wait
"$MEMPROF" report long.db >report.txt
"$MEMPROF" report long.db --json >report.json
equal "long growth" "growth warning" "$(found rule severity | head -n 1)"
contains "long growth: the line" report.txt "* Growth that does not stop: grow_over (app.c:$(line grow)) held "
"$MEMPROF" report long.db --html=long.html
contains "long growth: as bad on the page" long.html '<li class="finding warn" data-rule="growth">'
rate=$(sed -n 's/.* nearly all the way: about \([0-9]*\)\(\.[0-9]*\)* KiB a second\.$/\1/p' report.txt)
at_most "long growth: KiB a second" $((8000 / 13)) "${rate:-9999}"
at_least "long growth: KiB a second" 1 "${rate:-0}"

# Reallocs and mremaps of a block that lives on are no short-lived blocks, and its memory never is 0 between two sizes.
cat >steps.c <<'END'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
    size_t size = 1 << 20;
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2000; i++, size += 4096)
        map = mremap(map, size, size + 4096, MREMAP_MAYMOVE);
    char *block = malloc(100);
    for (int i = 1; i <= 3000; i++)
        block = realloc(block, (size_t)(100 + i * 16));
    free(block);
    for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 0); i++) {
        char *volatile p = malloc(2048);
        free(p);
    }
    munmap(map, size);
    return 0;
}
END
"$CC" -O1 -g -o steps steps.c
said() {
    "$MEMPROF" report out.db --html=page.html >/dev/null
    sed 's/<[^>]*>//g' page.html | grep -o '[0-9,]* blocks of [0-9.]* [KMi]*B that[^.]* again' || true
}
record ./steps
equal "grown, not short-lived" "" "$(said)"
# the block of 3,000 reallocs is freed before its thread allocates again
equal "temporary: the last of it, as docs/accuracy.md has it" "5002|1|5000" \
    "$(sql "SELECT alloc_count || '|' || temporary_count || '|' || realloc_count FROM v_total WHERE device = 'host' AND
        kind = 'all'")"
at_least "the least while it is there" $((1 << 20)) "$(sql "SELECT min(active_min_bytes) FROM timeline WHERE level = 0
    AND time_ns > (SELECT min(time_ns) FROM timeline WHERE level = 0 AND active_last_bytes >= 1048576) AND
    time_ns <= (SELECT max(time_ns) FROM timeline WHERE level = 0 AND active_last_bytes >= 1048576)")"
"$MEMPROF" report out.db >report.txt
equal "temporaries of the table" "host all 1" "$("$MEMPROF" report out.db --csv | python3 -c 'import csv, sys
print(*(r["device"] + " " + r["kind"] + " " + r["temporary_count"] for r in csv.DictReader(sys.stdin)
    if r["kind"] == "all"))')"
record ./steps 300000 # that are freed, and the realloced block's last one
equal "with short-lived blocks beside it" \
    "300,000 blocks of 2.00 KiB that were freed before their thread allocated again" "$(said)"
