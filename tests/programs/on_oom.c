/* Requests that cannot be met, and who is told of them: prints a line for each call, and what was as expected. */
#include <errno.h>
#include <malloc.h>
#include <memprof.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile size_t huge = PTRDIFF_MAX, no_power = SIZE_MAX / 2 + 2;
static jmp_buf away;
static int calls, is_answered;

static void tell(const char *device, size_t size, void *arg)
{
    struct memprof_device_figures f;
    printf("%s: %s %zu\n", (const char *)arg, device, size);
    calls++;
    is_answered += memprof_figures_now(device, &f) == MEMPROF_OK && memprof_sync() == MEMPROF_OK;
    free(malloc(100)); /* may allocate */
    if (malloc(huge))  /* and fail, without being told */
        abort();
    errno = EDOM; /* nobody's business */
}

static void leave(const char *device, size_t size, void *arg)
{
    (void)device, (void)size, (void)arg;
    calls++;
    longjmp(away, 1);
}

/* Deeper than the call that was left. */
static __attribute__((noinline)) int fail_below(unsigned depth, volatile char *above)
{
    volatile char frame[64];
    frame[0] = above ? above[0] : 0;
    return depth ? fail_below(depth - 1, frame) + frame[0] : !malloc(huge);
}

static void *in_thread(void *arg)
{
    if (malloc(huge - 1))
        abort();
    return arg;
}

static void handler(int number)
{
    (void)number;
    if (malloc(huge - 2))
        abort();
}

int main(void)
{
    void *p = malloc(16), *q;
    pthread_t thread;
    int good = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    good += !malloc(huge); /* nobody is told */
    if (memprof_on_oom(tell, (void *)"first"))
        puts("not recorded");
    errno = 0, good += !malloc(huge) && errno == ENOMEM;
    errno = 0, good += !calloc(huge, 4) && errno == ENOMEM;
    errno = 0, good += !realloc(p, huge) && errno == ENOMEM;
    errno = 0, good += !reallocarray(p, huge, 4) && errno == ENOMEM;
    errno = 0, good += !memalign(64, huge) && errno == ENOMEM;
    good += posix_memalign(&q, 64, huge) == ENOMEM;
    errno = 0, good += mmap(NULL, 1ul << 62, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
    good += errno == ENOMEM;
    /* not a lack of memory */
    errno = 0, good += !memalign(no_power, 10) && errno == EINVAL;
    memprof_on_oom(tell, (void *)"second");
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    signal(SIGUSR1, handler); /* no allocation is under way: as anywhere */
    raise(SIGUSR1);
    memprof_on_oom(leave, NULL);
    for (int i = 0; i < 3; i++)
        if (!setjmp(away))
            free(malloc(huge));
    memprof_on_oom(tell, (void *)"deeper");
    good += fail_below(30, NULL);
    memprof_on_oom(NULL, NULL);
    good += !malloc(huge);
    if (memprof_pause() == MEMPROF_OK) {
        memprof_on_oom(tell, (void *)"in a pause");
        good += !malloc(huge);
        memprof_resume();
        memprof_on_oom(NULL, NULL);
    }
    free(p);
    printf("good %d, calls %d, answered %d\n", good, calls, is_answered);
    return 0;
}
