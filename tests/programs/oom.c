/* Requests that cannot be met: 5 in `fails`, each with errno ENOMEM as without a profiler; then 10 that can. With an
 * argument: 3 small ones in `fails_small`, as the process may have no more addresses. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

static volatile size_t huge = PTRDIFF_MAX;
static __attribute__((noinline)) int fails(void)
{
    int good = 0;
    void *p = malloc(16), *q = NULL;
    errno = 0, good += !malloc(huge) && errno == ENOMEM;
    errno = 0, good += !calloc(huge, 4) && errno == ENOMEM;
    errno = 0, good += !realloc(p, huge) && errno == ENOMEM;
    errno = 0, good += !reallocarray(p, huge, 4) && errno == ENOMEM;
    good += posix_memalign(&q, 64, huge) == ENOMEM;
    errno = EAGAIN; /* a call that succeeds leaves errno alone */
    free(p);
    free(malloc(10));
    return good == 5 && errno == EAGAIN;
}

/* Not a lack of memory: the alignment is no power of two that could be. */
static __attribute__((noinline)) int refused(void)
{
    volatile size_t alignment = SIZE_MAX / 2 + 2;
    void *q = NULL;
    int good = 0;
    errno = 0, good += !memalign(alignment, 10) && errno == EINVAL;
    errno = 0, good += !aligned_alloc(alignment, 10) && errno == EINVAL;
    good += posix_memalign(&q, alignment, 10) == EINVAL;
    return good == 3;
}

static __attribute__((noinline)) int fails_small(void)
{
    int good = 0;
    void *p = malloc(16);
    good += setrlimit(RLIMIT_AS, &(struct rlimit){0, RLIM_INFINITY}) == 0;
    errno = 0, good += !malloc(1000000) && errno == ENOMEM;
    errno = 0, good += !calloc(1000, 1000) && errno == ENOMEM;
    errno = 0, good += !realloc(p, 1000000) && errno == ENOMEM;
    free(p);
    return good == 4;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return !fails_small();
    if (!refused())
        return 2;
    if (!fails())
        return 1;
    for (int i = 0; i < 10; i++)
        free(malloc(1000));
    return 0;
}
