# A C library with debug information, as libc6-dbg gives glibc: what it allocates is charged to the line that asked,
# with and without options that count again; its frames stay in the stacks under the names that people call; what it has
# for threads is its own.
need objcopy
mkdir string
cat >string/copy.c <<'END'
#include <stdlib.h>
#include <string.h>
char *copy_text(const char *text) __asm__("__GI___copy_text");
static char *room(size_t size)
{
    char *p = malloc(size);
    return p ? p : NULL;
}
char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *p = room(size);
    if (p)
        memcpy(p, text, size);
    return p;
}
extern char *alias(const char *) __asm__("__copy_text") __attribute__((alias("__GI___copy_text")));
extern char *called(const char *) __asm__("copy_text") __attribute__((weak, alias("__GI___copy_text")));
void sort_with(void (*compare)(void), void **scratch)
{
    *scratch = malloc(3000);
    compare();
    __asm__ volatile("");
}
void *pthread_create_own(void)
{
    void *p = malloc(500);
    __asm__ volatile("");
    return p;
}
END
cat >app.c <<'END'
#include <stdlib.h>
char *copy_text(const char *text);
void sort_with(void (*compare)(void), void **scratch);
void *pthread_create_own(void);
void *kept[200];
static void compare(void)
{
    kept[150] = malloc(70); /* compares */
}
__attribute__((noinline)) static void load(void)
{
    for (int i = 0; i < 100; i++)
        kept[i] = copy_text("123456789"); /* loads */
    __asm__ volatile("");
}
__attribute__((noinline)) static void order(void)
{
    sort_with(compare, &kept[151]); /* sorts */
    __asm__ volatile("");
}
int main(void)
{
    load();
    order();
    kept[152] = pthread_create_own(); /* threads */
    for (int i = 0; i < 200; i++)
        free(kept[i]);
    return 0;
}
END
# as Debian builds it: from its own directory, which the debug information calls ./string
(cd string && "$CC" -shared -fPIC -O1 -g -fno-optimize-sibling-calls -fno-builtin -o ../libc.so.own copy.c \
    -ffile-prefix-map="$PWD/.."=.)
"$CC" -O1 -g -fno-optimize-sibling-calls -fno-builtin -o app app.c ./libc.so.own -Wl,-rpath,"$PWD"
line() { grep -n "/\* $1 \*/" app.c | cut -d: -f1; }
# bytes OPTION...: allocated by each line of app.c and the library
bytes() {
    "$MEMPROF" report out.db --by line --csv "$@" | python3 -c 'import csv, sys
for r in sorted(csv.DictReader(sys.stdin), key=lambda r: r["function"]):
    if int(r["alloc_bytes"]) in (1000, 3000, 70, 500):
        print(r["function"], r["line"], r["alloc_bytes"], r["alloc_count"], sep=" ", end=";")'
}
own=$(grep -n 'malloc(500)' string/copy.c | cut -d: -f1)
expected="compare $(line compares) 70 1;load $(line loads) 1000 100;order $(line sorts) 3000 1;"
expected="${expected}pthread_create_own $own 500 1;"
record_ok ./app
equal "by line" "$expected" "$(bytes)"
equal "counted again" "$expected" "$(bytes --process "$(sql "SELECT pid FROM process LIMIT 1")")"
# of a function that is left out, what asked the library for it
equal "left out" 3070 "$("$MEMPROF" report out.db --by function --csv --skip compare | python3 -c 'import csv, sys
print(sum(int(r["alloc_bytes"]) for r in csv.DictReader(sys.stdin) if r["function"] == "order"))')"
"$MEMPROF" report out.db --by stack --top 0 >stacks
contains "the library's frame by the name that is called" stacks ' copy_text '
contains "its path, its directory once" stacks ' string/copy.c:'
lacks "its path, its directory once" stacks 'string/string'
lacks "its own name" stacks '__GI_'
# a program without lines is charged by its functions
strip -g app
record_ok ./app
equal "a function without lines" "100|1000" "$(by_function load | cut -d'|' -f1-2)"
