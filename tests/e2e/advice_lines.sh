# Code without lines, and programs that only start another: what is said of them, and which next step is not offered.
need strip python3
cat >plain.c <<'EOF'
#include <stdlib.h>
void *(*take)(void);
static void *inner(void)
{
    return malloc(BYTES);
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
int main(void)
{
    kept[0] = malloc(10000);
    kept[1] = take();
    return 0;
}
EOF
# code that is called through a pointer is nobody's but its own: 990,000 of 1,000,000 bytes have no line
library() { "$CC" -O1 -fPIC -shared -fno-builtin -DBYTES="$1" -o libplain.so plain.c && strip -s libplain.so; }
library 990000
"$CC" -O1 -g -fno-builtin -o app app.c ./libplain.so -Wl,-rpath,"$PWD"
"$CC" -O1 -fno-builtin -o bare app.c ./libplain.so -Wl,-rpath,"$PWD"
record_ok ./app
"$MEMPROF" lines >lines.txt
at_least "percent without lines" 90 \
    "$(sed -n 's/^! \([0-9]*\) % of the peak is in code without line information, .*/\1/p' lines.txt)"
contains "and where it is" lines.txt "'memprof report --by function' shows it"
"$MEMPROF" lines --func main >lines.txt
lacks "lines that were asked for" lines.txt '! '
"$MEMPROF" report >report.txt
contains "what to do" report.txt " most of it in libplain.so: compile it with -g"
# of a GPU's driver, or a library of its maker, nobody has any
cp libplain.so libcublas.so.12
"$CC" -O1 -g -fno-builtin -o vendor app.c ./libcublas.so.12 -Wl,-rpath,"$PWD"
record_ok ./vendor
"$MEMPROF" report >report.txt
contains "a GPU's library" report.txt " libcublas.so.12+0x"
lacks "a GPU's library" report.txt "! "
library 1000
record_ok ./app
"$MEMPROF" lines --kind heap >lines.txt
contains "where most has lines" lines.txt "kept[0] = malloc(10000)"
# 71 KiB are libstdc++'s in a program of C++ alone
lacks "where most has lines" lines.txt '! '
record_ok ./bare
if "$MEMPROF" lines >lines.txt 2>lines.err; then fail "lines of a program without"; fi
contains "lines of a program without" lines.err "'memprof report --by function' shows"

# a program of which one object has lines: what counts is whose code held the peak, not whether its file has DWARF
cat >with.c <<'EOF'
#include <stdlib.h>
void *with(size_t size) { return malloc(size); }
EOF
cat >without.c <<'EOF'
#include <stdlib.h>
void *with(size_t size);
void *volatile kept[2];
int main(void)
{
    kept[0] = with(1000000 - BYTES);
    kept[1] = malloc(BYTES);
    return 0;
}
EOF
"$CC" -O1 -g -fno-builtin -c with.c
for bytes in 990000 10000; do
    "$CC" -O1 -fno-builtin -DBYTES=$bytes -o mixed without.c with.o
    record_ok ./mixed
    "$MEMPROF" report >$bytes.txt
done
contains "most has no line" 990000.txt 'most of it in mixed: compile all of it with -g, and record again'
lacks "most has one" 10000.txt '! '

# of a package of the system
if [ -x /bin/dash ] && command -v readelf >/dev/null; then
    id=$(readelf -n /bin/dash | sed -n 's/.*Build ID: \(..\)\(.*\)/\1\/\2/p')
    if [ ! -e "/usr/lib/debug/.build-id/$id.debug" ]; then
        record_ok /bin/dash -c ':'
        "$MEMPROF" report >report.txt
        lacks "a package's, of 30 KiB" report.txt '! '
        record_ok /bin/dash -c 'x=1234567; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do x=$x$x; done'
        "$MEMPROF" report >report.txt
        contains "a package's" report.txt "most of it in dash: install its -dbgsym package, or set DEBUGINFOD_URLS, and"
    fi
fi

# a wrapper that starts what holds the memory is neither what to look at nor what to say of: 256 MiB beside its arenas,
# and beside the 1.3 MB that its import takes where nothing was imported before
cat >wrapper.py <<'EOF'
import subprocess
subprocess.run(["./bare"])
EOF
library '(256 << 20)'
record_ok python3 wrapper.py
"$MEMPROF" report >report.txt
lacks "a wrapper's lines" report.txt "--file wrapper.py"
lacks "a wrapper's arenas" report.txt "inside its arenas"

# programs with an allocator of their own have their names: none, one, more than are named
cat >own.c <<'EOF'
#include <stddef.h>
static char arena[1 << 16];
static size_t used;
void *malloc(size_t size)
{
    used += 64 + size;
    return arena + used - size;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t size) { (void)p; return malloc(size); }
int main(void) { return malloc(100) == NULL; }
EOF
"$CC" -O0 -fno-builtin -rdynamic -o first own.c
for name in second third fourth; do cp first $name; done
said() { # EXPECTED PROGRAM...
    expected=$1
    shift
    for program; do printf './%s\n' "$program"; done >all
    record_ok sh all
    "$MEMPROF" report >report.txt
    contains "own malloc" report.txt "! the program$expected own: what "
}
said " first has a malloc of its" first
said "s first and second have a malloc of their" first second
said "s first, second and third have a malloc of their" first second third
said "s first, second, third and 1 more have a malloc of their" first second third fourth

# the next step names one function where others are called alike: 9 MB of 10 MB
cat >alike.cpp <<'END'
#include <cstdlib>
void *volatile kept[2];
struct Pool {
    __attribute__((noinline)) void fill(size_t size) { kept[0] = malloc(size); }
};
struct Cache {
    __attribute__((noinline)) void fill(size_t size) { kept[1] = malloc(size); }
};
int main()
{
    Pool().fill(9000000);
    Cache().fill(1000000);
}
END
"$CXX" -O1 -g -fno-builtin -o alike alike.cpp
record_ok ./alike
"$MEMPROF" report >report.txt
contains "the function's own name is another's too" report.txt "Next: memprof lines --func Pool::fill"
"$MEMPROF" lines --func Pool::fill >lines.txt
lacks "and it is the one" lines.txt Cache

# what a runtime has to offer is a sentence of its own in a finding
mkdir -p runtime
cat >jvm.c <<'END'
#include <sys/mman.h>
#include <string.h>
void *reserve(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memset(p, 1, size);
}
END
echo 'void *reserve(unsigned long); int main(void) { return !reserve(16 << 20); }' >java.c
"$CC" -O1 -fPIC -shared -fno-builtin -o runtime/libjvm.so jvm.c
"$CC" -O1 -o java java.c runtime/libjvm.so -Wl,-rpath,"$PWD/runtime"
record_ok ./java
"$MEMPROF" report --json >report.json
contains "with its full stop" report.json 'counts them by class, and -Xmx bounds them."'
