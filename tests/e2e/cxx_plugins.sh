# C programs with C++ plug-ins: each gets the operator new that it would have without memprof, and what comes to malloc
# is recorded. Plug-ins: with the shared C++ library; with one inside, exported or not; with operators of their own.
source=$ROOT/tests/programs/cxx_plugin.inc
plugin() {
    out=$1
    shift
    "$CXX" -std=c++17 -O1 -g -fno-builtin -fPIC -shared -x c++ -o "$out" "$source" "$@"
}
echo '{ global: plugin_*; local: *; };' >only.map
plugin ./shared.so
plugin ./exported.so -static-libstdc++
plugin ./hidden.so -static-libstdc++ -Wl,--version-script="$PWD/only.map"
plugin ./own.so -DOWN -static-libstdc++
nm -D --defined-only exported.so >symbols
contains "its own operator new, exported" symbols _Znwm

# check PLUGINS: the same output as without memprof; new in plugin_blocks: 100 of 64 bytes, twice, in three rounds
check() {
    echo "$*"
    want=$(($1 * 600))
    shift
    "$PROGRAMS/cxx_host" "$@" >plain
    record_ok "$PROGRAMS/cxx_host" "$@"
    equal "output" "$(cat plain)" "$(cat run.out)"
    equal "blocks" "$want|$((want * 64))|$want" "$(by_function plugin_blocks | cut -d'|' -f1-3)"
}
check 1 ./shared.so
contains "no operator new but theirs" run.out "for all: no"
contains "new-handler" run.out "1: handled 1 own 0"
check 1 ./exported.so
contains "new-handler" run.out "1: handled 1 own 0"
check 1 ./hidden.so
contains "new-handler" run.out "1: handled 1 own 0"
echo "own operators"
"$PROGRAMS/cxx_host" ./own.so >plain
record_ok "$PROGRAMS/cxx_host" ./own.so
equal "output" "$(cat plain)" "$(cat run.out)"
contains "all of them were its own" run.out "1: handled 1 own 201"
check 3 ./own.so ./shared.so ./exported.so ./hidden.so
check 3 ./hidden.so ./exported.so ./own.so ./shared.so
path=$(ldconfig -p | sed -n 's|.*libtcmalloc_minimal.so.4 .*=> ||p' | head -n 1)
if [ -n "$path" ]; then # its operators are there for all, but for those that have hidden ones
    LD_PRELOAD=$path
    export LD_PRELOAD
    check 2 ./shared.so ./hidden.so
    echo "a library that loads it for itself, before the recorder starts"
    cat >before.c <<END
#include <dlfcn.h>
#include <stdio.h>
__attribute__((constructor)) static void before(void)
{
    if (!dlopen("$path", RTLD_NOW | RTLD_LOCAL))
        puts("not loaded");
}
END
    "$CC" -shared -fPIC -o before.so before.c
    LD_PRELOAD=$PWD/before.so
    check 3 ./own.so ./shared.so ./exported.so ./hidden.so
    unset LD_PRELOAD
    contains "their own operators" run.out "1: handled 1 own 201"
else
    echo "libtcmalloc-minimal4 is not installed: plug-ins under another allocator are not tested"
fi

# Who asks whether there is an operator new, before all others, gets one that works.
record_ok "$PROGRAMS/weak_new"
[ -s run.out ] || equal "blocks of nobody's operator new" "20|3000|20" "$(by_function use | cut -d'|' -f1-3)"
