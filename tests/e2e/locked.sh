# A program that locks its memory has no more of the recorder's read in than its threads use: 300 threads, each of which
# maps a ring of its own, locked or not. (A ring that was mapped with all before it took 5 GiB.)
cat >locked.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
static pthread_barrier_t all;
static void *work(void *x)
{
    void *volatile p = malloc(100);
    free(p);
    pthread_barrier_wait(&all);
    return x;
}
int main(void)
{
    pthread_t threads[300];
    pthread_attr_t small;
    if (mlockall(MCL_CURRENT))
        return 77;
    pthread_barrier_init(&all, NULL, 301);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < 300; i++)
        if (pthread_create(&threads[i], &small, work, NULL))
            return 1;
    pthread_barrier_wait(&all);
    for (int i = 0; i < 300; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -pthread -o locked locked.c
code=0
./locked || code=$?
[ $code != 77 ] || skip "no memory may be locked here"
record ./locked
[ "$status" != 77 ] || skip "the limit of locked memory (ulimit -l) leaves no room for a recorder's"
equal status 0 "$status"
sound
equal "blocks of 100 bytes" 300 \
    "$(value "SELECT sum(alloc_count) FROM v_line WHERE kind = 'heap' AND function = 'work'")"
at_most "peak RSS, MiB" 150 "$(value "SELECT max(peak_rss_bytes) / 1048576 FROM process")"
