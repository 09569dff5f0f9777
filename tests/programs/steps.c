/*
 * steps EXECUTIONS LEAK [THREADS [LATER [FROM [UNTIL]]]]: executions of a range "step". Each makes a parcel of 1,000 to
 * 1,999 bytes, replaces the one of the execution before, and, but in the first FROM and behind UNTIL, holds on to LEAK
 * bytes more (0: none). A table of 4,096 bytes is made in the second execution: it warms up. A book of 8,192 is made
 * halfway, once. THREADS others, started before, fill and empty places at random. LATER bytes are freed behind each.
 */
#include <memprof.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int is_over, warm;

static char *make(size_t size)
{
    char *p = malloc(size);
    if (p)
        p[0] = 1;
    return p;
}

static char *hold(size_t size)
{
    char *p = malloc(size);
    if (p)
        p[0] = 1;
    return p;
}

static char *keep(size_t size)
{
    char *p = malloc(size);
    if (p)
        p[0] = 1;
    return p;
}

static void *other(void *seed)
{
    char *places[16] = {NULL};
    unsigned state = (unsigned)(size_t)seed;
    for (int round = 0; !is_over; round++) {
        warm += round == 2000;
        int i = rand_r(&state) % 16;
        free(places[i]);
        places[i] = rand_r(&state) % 2 ? make((size_t)rand_r(&state) % 5000 + 1) : NULL;
    }
    for (int i = 0; i < 16; i++)
        free(places[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    int executions = argc > 1 ? atoi(argv[1]) : 200, leak = argc > 2 ? atoi(argv[2]) : 0;
    int threads = argc > 3 ? atoi(argv[3]) : 0, later = argc > 4 ? atoi(argv[4]) : 0;
    int from = argc > 5 ? atoi(argv[5]) : 0, until = argc > 6 ? atoi(argv[6]) : executions;
    pthread_t thread[8];
    char *parcel = NULL, *table = NULL, *book = NULL, *kept = NULL;
    if (threads > 8)
        return 2;
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, other, (void *)(size_t)(i + 1));
    while (warm < threads)
        usleep(1000);
    for (int i = 0; i < executions; i++) {
        memprof_range_push("step");
        char *next = make(1000 + (size_t)i * 37 % 1000);
        free(parcel);
        parcel = next;
        if (i == 1)
            table = make(4096);
        if (i == executions / 2)
            book = make(8192);
        if (leak && i >= from && i < until)
            hold((size_t)leak);
        if (later)
            kept = keep((size_t)later);
        if (threads) /* the others shall have done something in the meantime */
            usleep(200);
        memprof_range_pop();
        free(kept);
        kept = NULL;
        memprof_range_push("rest");
        memprof_range_pop();
    }
    is_over = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    free(parcel);
    free(table);
    free(book);
    return 0;
}
