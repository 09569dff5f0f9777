# What stands beside a line without source in `report` stands there in `leaks --by line` and in the tables of what keeps
# heaps from shrinking, too: the module of a function, the caller of code without a symbol.
need strip
cat >plain.c <<'EOF'
#include <stdlib.h>
void *(*take)(void);
static void *inner(void)
{
    return malloc(3000);
}
__attribute__((constructor)) static void ready(void)
{
    take = inner;
}
EOF
cat >app.c <<'EOF'
#include <stdlib.h>
extern void *(*take)(void);
void *volatile kept[2];
__attribute__((noinline)) static void ask(void)
{
    kept[1] = take();
    __asm__ volatile("");
}
int main(void)
{
    kept[0] = malloc(10000);
    ask();
    return 0;
}
EOF
"$CC" -O1 -fPIC -shared -fno-builtin -o libplain.so plain.c && strip -s libplain.so
"$CC" -O1 -fno-builtin -o app app.c ./libplain.so -Wl,-rpath,"$PWD"
record_ok ./app
"$MEMPROF" leaks --by line >leaks.txt
contains "the module" leaks.txt "main                [app]"
grep -q 'libplain.so+0x[0-9a-f]*  <- ask$' leaks.txt || { cat leaks.txt; fail "the caller"; }
"$MEMPROF" leaks --by line --csv >leaks.csv
lacks "for programs" leaks.csv "[app]"
for at in peak 1h; do
    "$MEMPROF" leaks --by line --at $at >at.txt 2>&1 || continue
    grep -q '<- ask$' at.txt || { cat at.txt; fail "the caller at $at"; }
done

cp "$PROGRAMS/fragments" frag && strip -g frag
record_ok ./frag
"$MEMPROF" report --segments --by line >lines.txt
contains "what keeps heaps from shrinking" lines.txt "[frag]"
"$MEMPROF" report --segments --by line --csv >lines.csv
lacks "for programs" lines.csv "[frag]"
