# Figures of scopes (MEMPROF_SCOPE_FIGURES of memprof.h) against a program's own ledger, and how they end.
. "$ROOT/tests/lib.sh"
"$PROGRAMS/figures" >got || fail 'alone'
equal 'not recorded' 'asked seldom|differs 2|forked -1' "$(paste -s -d '|' got)"
record_ok "$PROGRAMS/figures"
# in a forked child the old scope is unknown (2), one of its own is known (1)
equal 'with memprof' 'asked often|differs 0|forked 1' "$(paste -s -d '|' run.out)"
equal 'ranges' 0 "$(value "SELECT count(*) FROM mark WHERE is_range = 1 AND end_ns IS NULL")"
equal 'ranges around a fork' 1 "$(value "SELECT count(*) FROM mark WHERE name = 'around a fork'")"
# children that are not recorded know nothing
"$MEMPROF" run -q --no-follow -o alone.db "$PROGRAMS/figures" >got
equal 'a child that is not followed' 'asked often|differs 0|forked 0' "$(paste -s -d '|' got)"
# a signal handler that asks gets an answer or none, and does no harm
cat >handler.cpp <<'END'
#include <memprof.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <vector>
static volatile unsigned long asked, known;
static void handler(int)
{
    struct memprof_figures f;
    MEMPROF_SCOPE_FIGURES("in a handler");
    known += memprof_scope_figures(&f) && f.alloc_count == 0;
    asked++;
}
int main()
{
    struct memprof_figures f;
    struct itimerval timer = {{0, 200}, {0, 200}};
    signal(SIGALRM, handler);
    MEMPROF_SCOPE_FIGURES("outer");
    setitimer(ITIMER_REAL, &timer, nullptr);
    unsigned long news = 0;
    for (; asked < 1000; news++)
        delete new int[10 + news % 90];
    timer = {};
    setitimer(ITIMER_REAL, &timer, nullptr);
    std::vector<char> kept(1000);
    int is_known = memprof_scope_figures(&f);
    printf("%d %d %d %d %d\n", is_known, f.alloc_count == news + 1, f.free_count == news, f.live_bytes == 1000,
           known > 0);
    fflush(stdout);
    return 0;
}
END
"$CXX" -std=c++17 -g -O1 -fno-builtin -I"$ROOT/include" -o handler handler.cpp
record ./handler
equal 'status' 0 $status
if [ "$(value "SELECT sum(value) FROM counter WHERE name = 'lost_event'")" = 0 ]; then
    equal 'beside a handler' '1 1 1 1 1' "$(cat run.out)"
else # the handler's own records may find no room where the collector is late: then nothing is known, and that is said
    equal 'beside a handler that lost events' 0 "$(cut -c 1 run.out)"
fi
