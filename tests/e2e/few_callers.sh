# Findings about a wrapper's line say whom it allocated for, however few call it: of growth whom what grew was for, not
# who holds most.
cat >grow.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static struct node {
    struct node *next;
    char bytes[4096 - sizeof(void *)];
} *head;
static void *kept;
static void *my_alloc(size_t size)
{
    void *p = malloc(size);
    memset(p, 1, size);
    return p;
}
static void remember(void)
{
    struct node *n = my_alloc(sizeof *n);
    n->next = head;
    head = n;
}
static void configure(void)
{
    kept = my_alloc(4 << 20);
}
int main(int argc, char **argv)
{
    (void)argv;
    configure();
    for (int i = 0; i < 1200; i++) { /* 4.69 MiB */
        remember();
        usleep(1000);
    }
    if (argc > 1)
        free(kept);
    return 0;
}
END
"$CC" -g -O0 -fno-builtin -o grow grow.c
line=$(grep -n 'my_alloc(sizeof' grow.c | cut -d: -f1)
finding() { # RULE: its text
    python3 -c 'import json, sys
print(*(f["text"] for f in json.load(open("report.json"))["findings"] if f["rule"] == sys.argv[1]), sep="\n")' "$1"
}
record_ok ./grow free
"$MEMPROF" report out.db --json >report.json
finding growth >growth.txt
contains "growth: whose it is" growth.txt " It allocated all of this for remember (grow.c:$line)."
lacks "growth: not who holds most" growth.txt configure
finding leaks >leaks.txt
contains "a leak: what" leaks.txt "4.69 MiB in 1,200 blocks"
contains "a leak: whose it is" leaks.txt " It allocated all of this for remember (grow.c:$line)."
"$MEMPROF" report out.db >report.txt
contains "on the terminal" report.txt " It allocated all of this for remember (grow.c:$line)."
"$MEMPROF" advise out.db >advise.txt
contains "advise" advise.txt " It allocated all of this for remember (grow.c:$line)."
# and on a page that is too large for what reads all events
sqlite3 out.db "UPDATE meta SET value = 2000000 WHERE key = 'event_count'"
"$MEMPROF" report out.db --html=page.html >/dev/null
contains "a large page: it is one" page.html "is so large that the page does not"
equal "a large page: of growth, and of the leak" 2 \
    "$(grep -o "It allocated all of this for <code>remember</code> (grow.c:$line)" page.html | wc -l)"
# of a line that is none's, nothing
sed 's/my_alloc/fill/' grow.c >other.c
"$CC" -g -O0 -fno-builtin -o other other.c
record_ok ./other free
"$MEMPROF" report out.db --json >report.json
contains "another name: the line" report.json "fill (other.c:"
lacks "another name" report.json "It allocated"
# What a line called of the C library is no caller of it: puts() takes its buffer by a function with alloc in its name.
cat >calls.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *kept;
int main(void)
{
    memset(kept = malloc(4 << 20), 1, 4 << 20), puts("kept");
    return 0;
}
END
"$CC" -g -O0 -fno-builtin -o calls calls.c
record_ok ./calls
"$MEMPROF" report out.db --json >report.json
finding leaks >leaks.txt
contains "a line that calls the C library: what it left" leaks.txt "main (calls.c:7)"
lacks "a line that calls the C library: for nobody" leaks.txt "It allocated"
