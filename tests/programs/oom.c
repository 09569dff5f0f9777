/* Requests that cannot be met: 5 in `fails`, each with errno ENOMEM as without a profiler; then 10 that can. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

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

int main(void)
{
    if (!fails())
        return 1;
    for (int i = 0; i < 10; i++)
        free(malloc(1000));
    return 0;
}
