/* A parent of 1,000 blocks of 1,000 bytes, and two children, each with 2,000 of 500 and one of 1 MiB of its own. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char *keep[1000], *own[2000], *volatile big;

static void child(const char *name)
{
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < 2000; i++)
        memset(own[i] = malloc(500), 2, 500);
    for (int i = 0; i < 500; i++)
        free(keep[i]);
    memset(big = malloc(1 << 20), 1, 1 << 20);
    exit(0);
}

int main(void)
{
    for (int i = 0; i < 1000; i++)
        memset(keep[i] = malloc(1000), 1, 1000);
    if (fork() == 0)
        child("first");
    if (fork() == 0)
        child("second");
    while (wait(NULL) > 0)
        ;
    return 0;
}
