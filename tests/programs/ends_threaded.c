/* Allocates for a tenth of a second, and exits: "alone" without another thread, "joined" after one has ended,
 * "detached" while one sleeps, with what exit left of the program. What runs as it exits tells lib_mallinfo.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int mallinfo_ending __attribute__((weak));
static void *volatile kept;

static void ending(void)
{
    if (&mallinfo_ending)
        mallinfo_ending = 1;
}

static void *work(void *is_detached)
{
    kept = malloc(100000);
    while (is_detached)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "alone";
    int is_detached = strcmp(how, "detached") == 0;
    pthread_t thread;
    atexit(ending);
    if (strcmp(how, "alone") != 0 && pthread_create(&thread, NULL, work, is_detached ? &thread : NULL) != 0)
        return 1;
    if (is_detached)
        pthread_detach(thread);
    else if (strcmp(how, "alone") != 0)
        pthread_join(thread, NULL);
    for (int i = 0; i < 100; i++) {
        free(kept);
        kept = malloc(1000);
        usleep(1000);
    }
    return 0;
}
