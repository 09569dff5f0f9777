/*
 * For tests/bench/bench_python.py: nanoseconds that a malloc and its free take, the least of several rounds. The calls
 * are made from C, so that what differs between two depths of Python is what recording does with the Python frames.
 */
#include <stdlib.h>
#include <time.h>

double churn(long rounds, long count)
{
    double least = 1e18;
    for (long r = 0; r < rounds; r++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (long i = 0; i < count; i++) {
            void *volatile p = malloc(64);
            free(p);
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        double ns = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / (double)count;
        least = ns < least ? ns : least;
    }
    return least;
}
