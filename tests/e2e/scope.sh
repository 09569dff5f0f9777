# MEMPROF_SCOPE of memprof.h: a range to the end of its block, in C and in C++, however the block is left.
. "$ROOT/tests/lib.sh"
cat >scope.c <<'END'
#include <memprof.h>
#include <stdlib.h>
static int twice(int early)
{
    MEMPROF_SCOPE("outer");
    free(malloc(10));
    {
        MEMPROF_SCOPE("inner");
        if (early)
            return 1;
    }
    memprof_mark("behind inner");
    return 0;
}
int main(void)
{
    for (int i = 0; i < 3; i++) {
        MEMPROF_SCOPE("turn"); MEMPROF_SCOPE("same line");
    }
    return twice(0) + twice(1) - 1;
}
END
cat >scope.cpp <<'END'
#include <memprof.h>
#include <new>
static void thrower() { MEMPROF_SCOPE("thrown through"); throw std::bad_alloc(); }
int main()
{
    try { thrower(); } catch (const std::bad_alloc &) { memprof_mark("caught"); }
    MEMPROF_SCOPE("last"); memprof_mark("end");
}
END
"$CC" -std=gnu17 -Wall -Wextra -Werror -g -I"$ROOT/include" -o scope scope.c
"$CXX" -std=c++17 -Wall -Wextra -Werror -g -I"$ROOT/include" -o scopes scope.cpp
./scope || fail 'alone'
./scopes || fail 'C++ alone'
ranges() { sql "SELECT group_concat(name) FROM (SELECT name FROM mark WHERE is_range = 1 ORDER BY start_ns)"; }
open() { value "SELECT count(*) FROM mark WHERE is_range = 1 AND end_ns IS NULL"; }
record_ok ./scope
equal 'ranges' 'turn,same line,turn,same line,turn,same line,outer,inner,outer,inner' "$(ranges)"
equal 'open ones' 0 "$(open)"
equal 'behind inner, within outer' 1 "$(value "SELECT count(*) FROM mark m
    JOIN mark o ON o.name = 'outer' AND m.start_ns BETWEEN o.start_ns AND o.end_ns
    JOIN mark i ON i.name = 'inner' AND i.start_ns >= o.start_ns AND i.end_ns <= m.start_ns
    WHERE m.name = 'behind inner'")"
record_ok ./scopes
equal 'C++' 'thrown through,last' "$(ranges)"
equal 'open ones' 0 "$(open)"
equal 'an exception ended it' 1 "$(value "SELECT count(*) FROM mark m JOIN mark t ON t.name = 'thrown through'
    AND t.end_ns <= m.start_ns WHERE m.name = 'caught'")"
