# A program that ends without giving back what it holds, as runtimes and compilers do: a line in grey, and no finding;
# but a leak of 48 bytes a step beside 40 MiB of that is one, and so is what little a small program leaves.
need python3
cat >server.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
enum { STEPS = 20000, BLOCK = 48, PART = 2 << 20, SMALL = 65536 };
static void *kept[STEPS + 256];
static int used;
#define PARTS(n) OWN static void part##n(void) { kept[used++] = memset(malloc(PART), 1, PART); }
#define TEN(n) PARTS(n##0) PARTS(n##1) PARTS(n##2) PARTS(n##3) PARTS(n##4) PARTS(n##5) PARTS(n##6) PARTS(n##7) \
    PARTS(n##8) PARTS(n##9)
TEN(1)
TEN(2)
#undef PARTS
#define PARTS(n) OWN static void part##n(void) { kept[used++] = memset(malloc(SMALL), 1, SMALL); }
TEN(a) TEN(b) TEN(c) TEN(d) TEN(e) TEN(f) TEN(g) TEN(h) TEN(i) TEN(j)
#define CALL(n) part##n##0(), part##n##1(), part##n##2(), part##n##3(), part##n##4(), part##n##5(), part##n##6(), \
    part##n##7(), part##n##8(), part##n##9()
OWN static void *buffer_alloc(size_t size)
{
    return kept[used++] = memset(malloc(size), 1, size);
}
#define BUFFER(n) OWN static void buffer##n(void) { buffer_alloc(PART); __asm__ volatile(""); }
BUFFER(1) BUFFER(2) BUFFER(3) BUFFER(4) BUFFER(5) BUFFER(6) BUFFER(7) BUFFER(8) BUFFER(9) BUFFER(10) BUFFER(11)
BUFFER(12) BUFFER(13)
OWN static void buffers(void)
{
    buffer1(), buffer2(), buffer3(), buffer4(), buffer5(), buffer6(), buffer7(), buffer8(), buffer9(), buffer10();
    buffer11(), buffer12(), buffer13();
}
OWN static void serve_buffer(void)
{
    buffer_alloc(BLOCK);
    __asm__ volatile("");
}
OWN static void request(void)
{
    free(memset(malloc(1000), 1, 1000));
}
OWN static void serve(void)
{
    kept[used++] = malloc(BLOCK); /* leak */
}
OWN static void serve_little(void)
{
    kept[used++] = malloc(BLOCK / 3);
}
OWN static void cache(void)
{
    for (int i = 0; i < STEPS; i++)
        kept[used++] = malloc(BLOCK);
}
/* A hundred lines, and much more that was had meanwhile; of one line as much as of all of them. */
OWN static void many(void)
{
    CALL(a), CALL(b), CALL(c), CALL(d), CALL(e), CALL(f), CALL(g), CALL(h), CALL(i), CALL(j);
    free(memset(malloc(32 << 20), 1, 32 << 20));
}
int main(int argc, char **argv)
{
    char mode = argc > 1 ? argv[1][0] : 0;
    if (mode == 'b')
        buffers();
    for (int i = 0; i < 13 && mode == 'o'; i++)
        buffer13();
    if (mode == 'm' || mode == 'M')
        many();
    for (int i = 0; i < 4 && mode == 'M'; i++)
        part10();
    if (strchr("sbomM", mode) == NULL || !mode) {
        CALL(1);
        CALL(2);
    }
    if (mode == 'c')
        cache();
    for (int i = 0; i < STEPS; i++) {
        request();
        if (mode == 'l' || mode == 's')
            serve();
        if (mode == 't')
            serve_little();
        if (mode == 'b' && argc > 2)
            serve_buffer();
        if (i % 50 == 0)
            usleep(1000);
    }
    return used < 0;
}
END
"$CC" -O1 -g -fno-builtin -o server server.c
leak=$(grep -n '/\* leak \*/' server.c | cut -d: -f1)
# found: rule and severity of what a terminal could show of what is live at the end
found() {
    same_findings
    python3 -c 'import json
print(*(f["severity"] + " " + f["title"] for f in json.load(open("report.json"))["findings"] if f["rule"] == "leaks"),
    sep=",")'
}
grey="Live at the end: 40.00 MiB in 20 blocks of host, and its peak was 40.0"
alarm="* Never freed: 937.50 KiB in 20,000 blocks of host came evenly over the run, and were still live at the end. All\
 of it: serve (server.c:$leak), 937.50 KiB in 20,000 blocks."

record_ok ./server
equal "keeps its heap" "info Live at the end" "$(found)"
contains "keeps its heap: what it held" report.txt "$grey"
lacks "keeps its heap: no finding" report.txt "* Live"
lacks "keeps its heap: no alarm" report.txt "Never freed"
"$MEMPROF" report out.db --color=always >colored.txt
esc=$(printf '\033')
contains "in grey" colored.txt "$esc[2mLive at the end: "

# less than half of its peak, of very many lines; but one that made most of it is told
record_ok ./server many
equal "many lines keep" "info Live at the end" "$(found)"
contains "many lines keep: what" report.txt "Live at the end: 6.25 MiB in 100 blocks of host, and its peak was 38.2"
record_ok ./server Many
equal "one of them most of it" "warning Never freed" "$(found)"
contains "one of them: which" report.txt "The largest part: part10 (server.c:"

# of 600 lines nearly nothing is given back: what one of them has had from the start (brushes, fonts) is no leak, as
# little as theirs is; what it had late may be
{
    printf '#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nvoid *volatile kept[700];\n'
    echo '#define ALONE __attribute__((noinline, noclone))'
    seq 0 599 | sed 's/.*/ALONE static void at&(void) { kept[&] = memset(malloc(8192), 1, 8192); }/'
    echo 'static void load(void) { kept[650] = memset(malloc(12 << 20), 1, 12 << 20); }'
    echo 'int main(int argc, char **argv) { (void)argv; if (argc == 1) load();'
    seq 0 599 | sed 's/.*/at&();/'
    echo 'for (int i = 0; i < 100; i++) { usleep(4000); free(malloc(32 << 20)); }'
    echo 'if (argc > 1) load(); usleep(40000); return 0; }'
} >large.c
"$CC" -O1 -g -fno-builtin -o large large.c
record_ok ./large
equal "a large program's data" "info Live at the end" "$(found)"
record_ok ./large late
equal "a large program's late block" "warning Never freed" "$(found)"

record_ok ./server leak
equal "leaks beside it" "warning Never freed,info Live at the end" "$(found)"
contains "leaks beside it: the line" report.txt "$alarm"
contains "leaks beside it: all" report.txt "Live at the end: 40.92 MiB in 20,020 blocks of host"

# what is less than 1 MiB and than a hundredth of the peak, as classes that are loaded: 312.5 KiB of 40.3 MiB
record_ok ./server tiny
equal "next to nothing beside it" "info Live at the end,info Never freed" "$(found)"
lacks "next to nothing beside it: on the terminal" report.txt "Never freed"
contains "next to nothing beside it: on the page" page.html '<li class="finding info" data-rule="leaks"><h3>Never freed'

# as many blocks at the start are a cache
record_ok ./server cache
equal "a cache" "info Live at the end" "$(found)"
lacks "a cache: no alarm" report.txt "Never freed"

# as many callers of a wrapper are as many lines, whatever --skip shows; a leak of one of them is told, and one line
# that calls it is no runtime
record_ok ./server buffers
equal "through a wrapper" "info Live at the end" "$(found)"
contains "through a wrapper: what it held" report.txt "Live at the end: 26.00 MiB in 13 blocks of host, and its peak"
"$MEMPROF" report out.db --skip buffer_alloc >skipped.txt
contains "through a wrapper that is skipped" skipped.txt "Live at the end: 26.00 MiB in 13 blocks of host"
record_ok ./server buffers leak
equal "through a wrapper, and leaks" "warning Never freed,info Live at the end" "$(found)"
contains "through a wrapper, and leaks: how much" report.txt "* Never freed: 937.50 KiB in 20,000 blocks of host came"
# whose part is largest is not known of these alone
contains "through a wrapper, and leaks: in JSON" report.json ' It allocates for its callers."'
record_ok ./server one
equal "one line through a wrapper" "warning Never freed" "$(found)"
contains "one line through a wrapper: how much" report.txt "* Never freed: 26.00 MiB in 13 blocks of host"

# one line alone is no runtime
record_ok ./server small
"$MEMPROF" report out.db --html=page.html >/dev/null
contains "of one line" page.html "<h3>Never freed"

# where no instant is known, nothing tells a leak from what is kept
RUN_OPTIONS=--aggregate
record_ok ./server
equal "without events" "warning Never freed" "$(found)"

# compilers that end one after another: the sum of their ends is above the peak, and none of them leaks
RUN_OPTIONS=
record_ok sh -c './server; ./server; ./server'
equal "one after another" "info Live at the end" "$(found)"
contains "one after another: how many, the shell with them" report.txt \
    " of host at the ends of 4 processes, of which the largest, server, had 40.00 MiB: programs that end "

# what Python took down in a child is nothing that the larger process beside it kept or leaked
record_ok sh -c './server; python3 -c "held = [bytes(100000) for i in range(10)]"'
equal "beside Python" "info Live at the end,info Live when Python began to end" "$(found)"
contains "beside Python: how much, of the server alone" report.txt "Live at the end: 40.00 MiB in 20 blocks of host, "
at_least "which took itself down" 1 "$(value "SELECT count(*) FROM teardown")"

# what libraries keep (libstdc++: 72,704 bytes for exceptions without memory) is in the tables, and in the sentence too
"$CC" -O1 -g -fno-builtin -o server server.c -Wl,--no-as-needed -lstdc++
record_ok ./server
equal "with a library's" "info Live at the end" "$(found)"
contains "which are said beside" report.txt " of host, beside 71.00 KiB in 1 block that libraries, "
equal "and add up to the total" "$(total end_count)" \
    $(($(sed -n 's/^Live at the end: [^ ]* MiB in \([0-9,]*\) blocks of host, .*/\1/p' report.txt | tr -d ,) + 1))
