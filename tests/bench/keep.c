/* keep BLOCKS: allocates BLOCKS blocks of 16 to 271 bytes from 8 callers, writes to each, then frees every second and
 * ends. */
#include <stdint.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252u;
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
#define F(n)                                                                                                           \
    static __attribute__((noinline)) char *caller##n(size_t size)                                                      \
    {                                                                                                                  \
        char *p = malloc(size + n);                                                                                    \
        p[0] = n;                                                                                                      \
        return p;                                                                                                      \
    }
F(0)
F(1)
F(2)
F(3)
F(4)
F(5)
F(6)
F(7)
static char *(*const callers[8])(size_t) = {caller0, caller1, caller2, caller3, caller4, caller5, caller6, caller7};

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 2000000;
    char **blocks = malloc(count * sizeof *blocks);
    for (long i = 0; i < count; i++) {
        uint64_t r = next();
        blocks[i] = callers[r % 8](16 + (r >> 32) % 256);
    }
    for (long i = 0; i < count; i += 2)
        free(blocks[i]);
    return 0;
}
