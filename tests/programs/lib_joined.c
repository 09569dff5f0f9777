/* An allocator for tests: large blocks lie one behind the other, 16 bytes apart, in segments of 1 MiB that it takes
 * from the kernel one directly behind the other, each when it is reached. Small ones come from an array of its own. One
 * thread. */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 16, LARGE = 64 << 10, SEGMENT = 1 << 20 };

static _Alignas(1 << 16) char large[64u << 20];
static _Alignas(HEADER) char small[16u << 20];
static size_t large_used, large_taken, small_used;

static char *take(char *from, size_t *used, size_t size)
{
    char *p = from + *used + HEADER;
    *used += HEADER + (size + HEADER - 1) / HEADER * HEADER;
    return p;
}

void *malloc(size_t size)
{
    if (size > sizeof small - small_used - 2 * HEADER || size > sizeof large - large_used - 2 * HEADER)
        return NULL;
    char *p = size < LARGE ? take(small, &small_used, size) : take(large, &large_used, size);
    for (; large_taken < large_used; large_taken += SEGMENT)
        if (mmap(large + large_taken, SEGMENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) == MAP_FAILED)
            return NULL;
    memcpy(p - HEADER, &size, sizeof size);
    return p;
}
void free(void *p)
{
    (void)p;
}
void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* nothing is used twice */
}
void *realloc(void *p, size_t size)
{
    void *q = malloc(size);
    if (p && q) {
        size_t old;
        memcpy(&old, (char *)p - HEADER, sizeof old);
        memcpy(q, p, old < size ? old : size);
    }
    return q;
}
