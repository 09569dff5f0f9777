# A program that ends without giving back what it holds, as runtimes and compilers do: a line in grey, and no finding;
# but a leak of 48 bytes a step beside 40 MiB of that is one, and so is what little a small program leaves.
need python3
cat >server.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
enum { STEPS = 20000, BLOCK = 48, PART = 2 << 20 };
static void *kept[STEPS + 64];
static int used;
#define PARTS(n) OWN static void part##n(void) { kept[used++] = memset(malloc(PART), 1, PART); }
#define TEN(n) PARTS(n##0) PARTS(n##1) PARTS(n##2) PARTS(n##3) PARTS(n##4) PARTS(n##5) PARTS(n##6) PARTS(n##7) \
    PARTS(n##8) PARTS(n##9)
TEN(1)
TEN(2)
#define CALL(n) part##n##0(), part##n##1(), part##n##2(), part##n##3(), part##n##4(), part##n##5(), part##n##6(), \
    part##n##7(), part##n##8(), part##n##9()
OWN static void request(void)
{
    free(memset(malloc(1000), 1, 1000));
}
OWN static void serve(void)
{
    kept[used++] = malloc(BLOCK); /* leak */
}
OWN static void cache(void)
{
    for (int i = 0; i < STEPS; i++)
        kept[used++] = malloc(BLOCK);
}
int main(int argc, char **argv)
{
    char mode = argc > 1 ? argv[1][0] : 0;
    if (mode != 's') {
        CALL(1);
        CALL(2);
    }
    if (mode == 'c')
        cache();
    for (int i = 0; i < STEPS; i++) {
        request();
        if (mode == 'l' || mode == 's')
            serve();
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
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" report out.db --json >report.json
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

record_ok ./server leak
equal "leaks beside it" "warning Never freed,info Live at the end" "$(found)"
contains "leaks beside it: the line" report.txt "$alarm"
contains "leaks beside it: all" report.txt "Live at the end: 40.92 MiB in 20,020 blocks of host"

# as many blocks at the start are a cache
record_ok ./server cache
equal "a cache" "info Live at the end" "$(found)"
lacks "a cache: no alarm" report.txt "Never freed"

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
