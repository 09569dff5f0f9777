/* busy SECONDS [STATUS [REST]]: allocates and frees without a pause, or REST microseconds after each thousand; prints
 * one line a tenth of a second, then "done". Keeps 1,000 blocks of 1,000 bytes live from the start in `keep`. SIGINT
 * ends it with status 3 after printing "interrupted".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number)
{
    interrupted = number;
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static void *kept[1000];
static __attribute__((noinline)) void keep(void)
{
    for (int i = 0; i < 1000; i++)
        kept[i] = malloc(1000);
}
static __attribute__((noinline)) void churn(void)
{
    for (int i = 0; i < 1000; i++)
        free(malloc(i % 100 + 1));
}

int main(int argc, char **argv)
{
    static char out[512];
    setvbuf(stdout, out, _IOLBF, sizeof out);
    signal(SIGINT, on_interrupt);
    useconds_t rest = argc > 3 ? (useconds_t)atoi(argv[3]) : 0;
    double end = now() + (argc > 1 ? atof(argv[1]) : 3), next = 0;
    keep();
    for (int line = 1; now() < end && !interrupted;) {
        churn();
        if (rest)
            usleep(rest);
        if (now() >= next) {
            printf("line %d\n", line++);
            next = now() + 0.1;
        }
    }
    puts(interrupted ? "interrupted" : "done");
    return interrupted ? 3 : argc > 2 ? atoi(argv[2]) : 0;
}
