/* probe [STATUS [more]]: requests that fail and are met in another way. Three favours that the kernel may refuse, then
 * failures that are made good; with more one that is not. Prints how many failed with ENOMEM. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MIB = 1 << 20 };

static int fails(size_t size, int protection, int flags)
{
    errno = 0;
    void *p = mmap(NULL, size, protection, MAP_ANONYMOUS | flags, -1, 0);
    if (p != MAP_FAILED)
        munmap(p, size);
    return p == MAP_FAILED && errno == ENOMEM;
}

__attribute__((noinline)) static void *probe(size_t size)
{
    return malloc(size);
}

int main(int argc, char **argv)
{
    const size_t most = SIZE_MAX / 4;
    int failed = fails(most, PROT_NONE, MAP_PRIVATE);
    failed += fails(most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE);
    failed += fails((size_t)1 << 46, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_HUGETLB);
    void *kept = malloc(10);
    struct rlimit limit, low = {256 * MIB, RLIM_INFINITY};
    getrlimit(RLIMIT_DATA, &limit);
    low.rlim_max = limit.rlim_max;
    setrlimit(RLIMIT_DATA, &low);
    for (int i = 0; i < 3; i++)
        failed += !probe(512 * MIB);
    if (argc > 2)
        failed += !probe(700 * MIB);
    setrlimit(RLIMIT_DATA, &limit);
    void *fallback = mmap(NULL, 600 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%d\n", failed + (fallback == MAP_FAILED ? 100 : 0));
    free(kept);
    return argc > 1 ? atoi(argv[1]) : 0;
}
