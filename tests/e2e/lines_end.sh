# Where `memprof lines` and the page's source end: with the function, and not with what follows it.
need python3
cat >job.py <<'EOF'
class Table:
    def rows(self):
        kept = [bytearray(100000) for i in range(3)]
        return kept

    name = "a table"


def agg(table):
    total = bytearray(400000)

    return total
cache = []
cache.append(agg(None))
cache.append(Table().rows())
EOF
record_ok python3 job.py
"$MEMPROF" lines --func agg >agg.txt
contains "its last line" agg.txt "return total"
lacks "what follows it" agg.txt "cache = []"
"$MEMPROF" lines --func rows >rows.txt
contains "its last line" rows.txt "return kept"
lacks "the class goes on" rows.txt "a table"
"$MEMPROF" lines --func '<module>' --file job.py >module.txt
contains "a module has no end" module.txt "cache.append(Table().rows())"

cat >app.c <<'EOF'
#include <stdlib.h>
void *volatile kept[4];
static int make(int n)
{
    int rc = 1;
    if (n < 0)
        goto out;
    for (int i = 0; i < n; i++) {
        kept[i] = malloc(100000);
    }
#ifndef NEVER
    rc = 0;
out:
    return rc;
#endif
}
static int after;
#define BODY                                                                                                           \
    { kept[3] = malloc(5000); }
static void one_line(void) BODY
static int last;
int main(void)
{
    one_line();
    return make(3) + after + last;
}
EOF
"$CC" -O0 -g -fno-builtin -o app app.c
record_ok ./app
"$MEMPROF" lines --func make >make.txt
contains "a preprocessor's line and what follows it" make.txt "rc = 0;"
lacks "what follows a function" make.txt "after"
"$MEMPROF" lines --func main >main.txt
contains "its end" main.txt "}"
