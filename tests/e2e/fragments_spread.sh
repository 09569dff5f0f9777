# One of ten blocks stays, on each page: no page is free, and no call gives any back. glibc's heap and the segments of
# other allocators have the same row and the same finding of it; one that keeps its blocks side by side has none.
cat >app.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { COUNT = 200000, SIZE = 208 };
static char *blocks[COUNT];
__attribute__((noinline)) static char *keep(int i)
{
    return blocks[i] = memset(malloc(SIZE), 1, SIZE); /* keep */
}
int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < COUNT; i++)
        keep(i);
    for (int i = 0; i < COUNT; i++)
        if (argc > 1 ? i % 10 >= 9 : i % 10 != 0)
            free(blocks[i]);
    usleep(1500000);
    return 0;
}
END
"$CC" -g -O1 -fno-builtin -o app app.c
line=$(grep -n '/\* keep' app.c | cut -d: -f1)
for name in glibc: jemalloc:libjemalloc.so.2 tcmalloc:libtcmalloc_minimal.so.4 mimalloc:libmimalloc.so.2; do
    path=
    [ "$name" = glibc: ] || path=$(ldconfig -p | sed -n "s|.*${name#*:}[.0-9]* .*=> ||p" | head -n 1)
    [ "$name" = glibc: ] || [ -n "$path" ] || continue
    name=${name%:*}
    LD_PRELOAD=$path
    [ -z "$path" ] || export LD_PRELOAD
    record_ok ./app
    unset LD_PRELOAD
    "$MEMPROF" report out.db >report.txt
    contains "$name: the finding" report.txt \
        "* Few bytes live on many pages: keep (app.c:$line): 3.97 MiB live in 20,000 blocks, pins "
    contains "$name: its column" report.txt "reserved"
    "$MEMPROF" report out.db --json >report.json
    # 20,000 blocks of 208 bytes live on all pages that 200,000 of them took
    spread=$(sed -n 's/.*"rule": "held".*"bytes": \([0-9]*\).*/\1/p' report.json)
    at_least "$name: between live blocks" $((9 * 20000 * 208 * 9 / 10)) "${spread:-0}"
    reserved=$(grep -o '"heap_end_reserved_bytes": [0-9]*' report.json | head -n 1 | sed 's/.* //')
    at_least "$name: reserved at the end" $((spread + 20000 * 208)) "${reserved:-0}"
    at_most "$name: no more than at the peak" "$(total peak_reserved_bytes)" "$reserved"
    lacks "$name: no call" report.txt 'malloc_trim(0) would'
    "$MEMPROF" report out.db --html=page.html >/dev/null
    contains "$name: the page" page.html '<section id="heap"'
    LD_PRELOAD=$path
    [ -z "$path" ] || export LD_PRELOAD
    record_ok ./app most
    unset LD_PRELOAD
    "$MEMPROF" report out.db >report.txt
    lacks "$name: nine of ten stay" report.txt "Few bytes live"
done
