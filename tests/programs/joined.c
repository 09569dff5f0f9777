/* On lib_joined.so: three blocks of 768 KiB and one of 2 MiB, less 16 bytes each, so that they take 4.25 MiB of its
 * segments of 1 MiB from the first byte on. */
#include <stdlib.h>
#include <string.h>

static char *blocks[4];

int main(void)
{
    for (int i = 0; i < 4; i++) {
        size_t size = (i < 3 ? 768u << 10 : 2048u << 10) - 16;
        blocks[i] = malloc(size);
        if (!blocks[i])
            return 1;
        memset(blocks[i], 1, size);
    }
    return 0;
}
