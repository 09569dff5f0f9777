/* Frees all but every 64th of 400,000 blocks of 160 bytes, and goes on for a while: with any allocator two pages of
 * three have no live byte then. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 400000, KEPT = 64 };
static char *blocks[COUNT];

static __attribute__((noinline)) void keep(void)
{
    for (int i = 0; i < COUNT; i++)
        blocks[i] = memset(malloc(160), 1, 160);
}

int main(void)
{
    keep();
    for (int i = 0; i < COUNT; i++)
        if (i % KEPT)
            free(blocks[i]);
    usleep(1500000); /* longer than the second for which pages must be kept */
    return 0;
}
