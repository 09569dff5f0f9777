# A wrapper that everything goes through: its callers under it, the hint, and --skip, by arithmetic; with and without
# lines.
need strip
cat >app.c <<'END'
#include <stdlib.h>
static void *kept[64];
static int used;
__attribute__((noinline)) static void *xmalloc(size_t size)
{
    void *p = malloc(size);
    if (!p)
        abort();
    return kept[used++] = p;
}
__attribute__((noinline)) static void *xcalloc(size_t count, size_t size)
{
    return xmalloc(count * size);
}
#define CALLER(name, bytes) __attribute__((noinline)) static void name(void) { xmalloc(bytes); __asm__ volatile(""); }
CALLER(one, 1000)
CALLER(two, 2000)
CALLER(three, 3000)
CALLER(four, 4000)
__attribute__((noinline)) static void five(void)
{
    xcalloc(5, 1000);
    __asm__ volatile("");
}
int main(void)
{
    for (int i = 0; i < 10; i++) {
        one();
        two();
        three();
        four();
        five();
    }
    free(malloc(7));
    for (int i = 0; i < used; i++)
        free(kept[i]);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -fno-optimize-sibling-calls -o lines app.c
cp lines names && strip -g names

# bytes FILE NAME: allocated by the self line of a function
bytes() {
    python3 -c 'import csv, sys
print(sum(int(r["alloc_bytes"]) for r in csv.DictReader(open(sys.argv[1])) if r["function"] == sys.argv[2]))' "$1" "$2"
}
for app in lines names; do
    record_ok ./$app
    "$MEMPROF" report out.db >report.txt
    contains "$app: the hint, through both" report.txt ' --skip xmalloc --skip xcalloc   (counts what'
    contains "$app: whole stacks" report.txt 'memprof report --by stack --top 3'
    lacks "$app: nothing to list" report.txt 'memprof leaks$'
    contains "$app: the largest caller" report.txt '<- xcalloc'
    contains "$app: the next" report.txt '<- four'
    "$MEMPROF" report out.db --by line --csv >plain.csv
    equal "$app: xmalloc" 150000 "$(bytes plain.csv xmalloc)"
    "$MEMPROF" report out.db --skip xmalloc --by line --csv >skip.csv
    equal "$app: behind xmalloc" '0 10000 20000 30000 40000 0 50000' \
        "$(for name in xmalloc one two three four five xcalloc; do bytes skip.csv $name; done | paste -sd' ')"
    "$MEMPROF" report out.db --skip 'x*alloc' --by function --csv >both.csv
    equal "$app: behind both" '0 10000 20000 30000 40000 50000 0' \
        "$(for name in xmalloc one two three four five xcalloc; do bytes both.csv $name; done | paste -sd' ')"
    equal "$app: main's own" "$(bytes plain.csv main)" "$(bytes both.csv main)"
    equal "$app: all" "$(total alloc_bytes)" \
        "$(python3 -c 'import csv; print(sum(int(r["alloc_bytes"]) for r in csv.DictReader(open("both.csv"))))')"
    equal "$app: own peaks stay known" 50000 \
        "$(python3 -c 'import csv
print([r["own_peak_bytes"] for r in csv.DictReader(open("both.csv")) if r["function"] == "five"][0])')"
    "$MEMPROF" report out.db --skip xmalloc >skipped.txt
    lacks "$app: no hint for what is skipped" skipped.txt '--skip'
    "$MEMPROF" report out.db --by function -i --csv >with.csv
    "$MEMPROF" report out.db --by function -i --csv --skip xmalloc | cmp - with.csv ||
        fail "$app: --skip changed what functions hold with their callees"
done
# leaks, at an instant, and lines take it too
at=$(value "SELECT peak_active_ns FROM total WHERE device_id = 0 AND kind = 'heap'")
"$MEMPROF" report out.db --skip 'x*alloc' --at "${at}ns" --by function --csv >at.csv
equal "live at the peak" 50000 \
    "$(python3 -c 'import csv
print([r["live_bytes"] for r in csv.DictReader(open("at.csv")) if r["function"] == "five"][0])')"

# The finding names whom a wrapper gave most to; the hint has the small wrappers of the program as well, once each.
cat >many.c <<'END'
#include <stdlib.h>
#include <string.h>
static void *kept[64];
static int used;
__attribute__((noinline)) static void *xmalloc(size_t size)
{
    return kept[used++] = malloc(size);
}
__attribute__((noinline)) static void *xzalloc(size_t size)
{
    void *p = size & 1 ? malloc(size) : calloc(1, size);
    return kept[used++] = p;
}
__attribute__((noinline)) static void *once_alloc(size_t size)
{
    return kept[used++] = malloc(size);
}
#define CALLER(name, wrapper, bytes) \
    __attribute__((noinline)) static void name(void) { wrapper(bytes); __asm__ volatile(""); }
CALLER(one, xmalloc, 1 << 20)
CALLER(two, xmalloc, 5 << 20)
CALLER(three, xzalloc, 101)
CALLER(four, xzalloc, 102)
CALLER(five, xzalloc, 103)
CALLER(six, xzalloc, 104)
CALLER(seven, once_alloc, 50)
int main(void)
{
    for (int i = 0; i < 3; i++) {
        one();
        two();
        three();
        four();
        five();
        six();
    }
    seven();
    return used == 0;
}
END
"$CC" -O1 -g -fno-builtin -fno-optimize-sibling-calls -o many many.c
record ./many
"$MEMPROF" report out.db >report.txt
contains "both wrappers, and none that one function calls" report.txt ' --skip xmalloc --skip xzalloc   (counts what'
"$MEMPROF" report out.db --html=page.html >/dev/null
said='It allocates for its callers, the largest part for <code>two</code> (many.c:'
equal "the peak's finding and the end's" 2 "$(grep -cF "$said" page.html)"
equal "with its amount" 2 "$(grep -cF '): 15.00 MiB in 3 blocks.' page.html)"

# What the next step skips, no finding tells to change: neither where the wrapper has one caller alone, whose callers
# part, nor where its callers have no name.
only_skipped() { # WHAT NAME: the finding of the peak on the page, which is of the line that the next step skips
    "$MEMPROF" report out.db >report.txt
    contains "$1: the next step" report.txt " --skip $2"
    "$MEMPROF" report out.db --html=page.html >/dev/null
    sed 's/<[^>]*>//g' page.html | grep -o 'At its peak, .*its callers has what it was given' >finding.txt
    contains "$1: the finding" finding.txt "It allocates for its callers, the largest part for $3"
    lacks "$1: no advice against it" page.html 'Making this one line hold less'
}
cat >chain.c <<'END'
#include <stdlib.h>
static void *kept[64];
static int used;
__attribute__((noinline)) static void *xmalloc(size_t size)
{
    return kept[used++] = malloc(size);
}
__attribute__((noinline)) static void *make(size_t size)
{
    void *p = xmalloc(size);
    __asm__ volatile("");
    return p;
}
#define CALLER(name, bytes) __attribute__((noinline)) static void name(void) { make(bytes); __asm__ volatile(""); }
CALLER(one, 1 << 20)
CALLER(two, 5 << 20)
int main(void)
{
    one();
    two();
    return used == 0;
}
END
"$CC" -O1 -g -fno-optimize-sibling-calls -o chain chain.c
record ./chain
only_skipped "one caller, and its two" xmalloc 'two (chain.c:16): 5.00 MiB in 1 block.'
cat >deep.c <<'END'
#include <stdlib.h>
static void *kept[64];
static int used;
__attribute__((noinline)) void *deep_alloc(size_t size)
{
    return kept[used++] = malloc(size);
}
#define CALLER(name, bytes) \
    __attribute__((noinline)) static void name(void) { deep_alloc(bytes); __asm__ volatile(""); }
CALLER(one, 1 << 20)
CALLER(two, 5 << 20)
void deep_run(void)
{
    one();
    two();
}
END
"$CC" -shared -fPIC -O1 -fno-optimize-sibling-calls -o libdeep.so deep.c
strip libdeep.so
echo 'void deep_run(void); int main(void) { deep_run(); return 0; }' >main.c
"$CC" -o main main.c -L. -ldeep -Wl,-rpath,.
record ./main
only_skipped "callers without a name" deep_alloc 'libdeep+0x'

# A server's shared memory is most of its peak, and one wrapper gives most of what comes from malloc, for functions that
# are called like allocators: all of them are offered. Of a heap that is next to nothing, nothing is.
cat >pool.c <<'END'
#include <stdlib.h>
static void *kept[64];
static int used;
__attribute__((noinline)) static void *take(size_t size)
{
    return kept[used++] = malloc(size);
}
#define GIVER(name) __attribute__((noinline)) void *name(size_t size) \
    { void *p = take(size); __asm__ volatile(""); return p; }
GIVER(palloc) GIVER(palloc0) GIVER(palloc_extended) GIVER(repalloc)
END
cat >server.c <<'END'
#include <stdlib.h>
#include <sys/mman.h>
void *palloc(size_t), *palloc0(size_t), *palloc_extended(size_t), *repalloc(size_t);
int main(int argc, char **argv)
{
    size_t share = (size_t)atoi(argv[1]) << 20;
    void *shared = mmap(NULL, share, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    palloc(1 << 20);
    palloc0(1 << 20);
    palloc_extended(1 << 20);
    repalloc(1 << 20);
    return shared == MAP_FAILED;
}
END
"$CC" -shared -fPIC -O1 -fno-optimize-sibling-calls -o libpool.so pool.c
strip libpool.so
"$CC" -O1 -o server server.c -L. -lpool -Wl,-rpath,.
record_ok ./server 30
"$MEMPROF" report out.db >report.txt
offered=$(sed -n 's/^Next: memprof report\(.*\)   (counts what.*/\1/p' report.txt)
equal "a pool behind shared memory" palloc,palloc0,palloc_extended,repalloc \
    "$(echo "$offered" | tr ' ' '\n' | grep palloc | sort | paste -sd,)"
contains "and its code without a name" report.txt ' --skip libpool.so+0x'
"$MEMPROF" report out.db $offered --by function --csv >skip.csv
equal "behind all" "4194304" "$(python3 -c 'import csv
print(sum(int(r["at_peak_bytes"]) for r in csv.DictReader(open("skip.csv")) if r["function"] == "main") - (30 << 20))')"
record_ok ./server 300
"$MEMPROF" report out.db >report.txt
lacks "of 4 of 304 MiB" report.txt '--skip'

# A wrapper by its name has a word of it: an observer of allocations is none. What is offered is the one meant, and no
# other class's function of that name.
cat >scopes.cpp <<'END'
#include <cstdlib>
static void *kept[64];
static int used;
#define LONE __attribute__((noinline)) static
namespace app {
struct Zone {
    LONE void *Allocate(size_t size) { return kept[used++] = malloc(size); }
};
struct Table {
    LONE void *Allocate(size_t size) { void *p = malloc(size); kept[used++] = p; return p; }
};
LONE void AddAllocationObserver(size_t size) { kept[used++] = malloc(size); }
} // namespace app
#define CALLER(name, call) LONE void name() { call; __asm__ volatile(""); }
CALLER(one, app::Zone::Allocate(1 << 20))
CALLER(two, app::Zone::Allocate(5 << 20))
CALLER(three, app::Table::Allocate(3 << 20))
CALLER(four, app::AddAllocationObserver(1 << 10))
CALLER(five, app::AddAllocationObserver(1 << 20))
int main()
{
    one();
    two();
    three();
    four();
    five();
    return used == 0;
}
END
"$CXX" -O1 -g -fno-builtin -fno-optimize-sibling-calls -o scopes scopes.cpp
record ./scopes
"$MEMPROF" report out.db >report.txt
contains "its class's, and no observer" report.txt ' --skip Zone::Allocate   (counts what'
"$MEMPROF" report out.db --skip Zone::Allocate --by function --csv >skip.csv
functions=$(python3 -c 'import csv
print(*sorted(r["function"].split("(")[0] + " " + r["at_peak_bytes"] for r in csv.DictReader(open("skip.csv"))
    if int(r["at_peak_bytes"]) > 100000))')
equal "whose is what" "app::AddAllocationObserver 1049600 app::Table::Allocate 3145728 one 1048576 two 5242880" \
    "$functions"

# Where a finding says that a line allocates for its callers, the next steps offer it, however little of the peak it
# has.
cat >passes.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
static void *(*take)(size_t);
#define FUNCTION(name, size)                                                                                           \
    __attribute__((noinline)) static void name(void)                                                                   \
    {                                                                                                                  \
        memset(take(size), 1, size);                                                                                   \
        __asm__ volatile("");                                                                                          \
    }
FUNCTION(keeps_1, 1000000)
FUNCTION(keeps_2, 1100000)
FUNCTION(keeps_3, 1200000)
FUNCTION(keeps_4, 1300000)
FUNCTION(keeps_5, 1400000)
int main(void)
{
    take = *(void *(**)(size_t))dlsym(dlopen("./taker.so", RTLD_NOW), "taker");
    char *peak = malloc(60 << 20);
    memset(peak, 1, 60 << 20);
    keeps_1();
    keeps_2();
    keeps_3();
    keeps_4();
    keeps_5();
    free(peak);
    return 0;
}
END
cat >taker.c <<'END'
#include <stdlib.h>
static void *take(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("");
    return p;
}
void *(*const taker)(size_t) = take;
END
"$CC" -shared -fPIC -O1 -fno-builtin -o taker.so taker.c
strip taker.so
"$CC" -g -O1 -fno-builtin -o passes passes.c -ldl
record_ok ./passes
"$MEMPROF" report out.db >report.txt
contains "a leak through a line without a name" report.txt \
    "* Never freed: 5.72 MiB in 5 blocks of host were still live at the end"
contains "whose it is" report.txt "(<- keeps_5 "
contains "... not named twice" report.txt " It allocates for its callers, the largest part for that one (passes.c:"
at_least "what is offered" 1 "$(grep -c 'memprof report --skip taker\.so+0x[0-9a-f]*   (counts' report.txt)"
"$MEMPROF" report out.db --json >report.json
at_least "the same in JSON" 1 \
    "$(grep -c '"next": "With --skip each [^"]*: memprof report --skip taker.so+0x[0-9a-f]*"' report.json)"

# An arena takes whole blocks when somebody asks, and gives parts of them to others: that is said, too.
cat >arena.c <<'END'
#include <stdlib.h>
#include <string.h>
static char *at, *end;
static size_t many;
__attribute__((noinline)) static void *pool_alloc(size_t size)
{
    if (at == NULL || (size_t)(end - at) < size) {
        at = malloc(262144);
        end = at + 262144;
    }
    memset(at, 1, size);
    at += size;
    return at - size;
}
#define FUNCTION(name)                                                                                                 \
    __attribute__((noinline)) static void name(void)                                                                   \
    {                                                                                                                  \
        for (int i = 0; i < 200; i++)                                                                                  \
            many += pool_alloc(10000) != NULL;                                                                         \
    }
FUNCTION(a) FUNCTION(b) FUNCTION(c) FUNCTION(d) FUNCTION(e) FUNCTION(f) FUNCTION(g) FUNCTION(h) FUNCTION(i)
int main(void)
{
    a(), b(), c(), d(), e(), f(), g(), h(), i();
    return many != 1800;
}
END
"$CC" -g -O1 -fno-builtin -o arena arena.c
record_ok ./arena # 26 parts a block: 70 blocks
"$MEMPROF" report out.db >report.txt
contains "an arena" report.txt \
    "17.50 MiB in 70 blocks. It takes whole blocks, and may give its callers parts, most of them for"
