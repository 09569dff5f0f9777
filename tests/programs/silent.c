/* silent: lets nobody look at it, fails to become another program, does nothing for a while, then allocates 300,000
 * blocks of 10 bytes in `later`. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static __attribute__((noinline)) void later(void)
{
    for (int i = 0; i < 300000; i++)
        free(malloc(10));
}

int main(void)
{
    char *arguments[] = {"nothing", NULL};
    prctl(PR_SET_DUMPABLE, 0);
    execv("/nonexistent", arguments);
    usleep(300000);
    later();
    return 0;
}
