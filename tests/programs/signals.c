/* signals: on an allocator that permits it (lib_bump.so), timer signals every 200 us interrupt a loop of 300,000
 * malloc/free pairs of 24 bytes in `work`, and the handler allocates and frees 48 bytes in `handler`. Prints the
 * handler's count of pairs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile int pairs;

static void handler(int number)
{
    (void)number;
    char *p = malloc(48);
    if (p) {
        p[0] = 1;
        pairs++;
    }
    free(p);
}
static __attribute__((noinline)) void work(void)
{
    for (int i = 0; i < 300000; i++)
        free(malloc(24));
}

int main(void)
{
    static char out[256];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval interval = {{0, 200}, {0, 200}};
    setitimer(ITIMER_PROF, &interval, NULL);
    work();
    while (pairs < 20)
        work();
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &none, NULL);
    printf("%d\n", pairs);
    return 0;
}
