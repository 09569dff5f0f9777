/* On lib_bump.so, where it does no harm: frees of addresses that are no blocks. 10 blocks of 100 bytes; 10 frees of
 * them, 3 second frees, 2 of the middle of a block, 1 of a static array. */
#include <stdlib.h>

static char array[64];
int main(void)
{
    char *blocks[10];
    for (int i = 0; i < 10; i++)
        blocks[i] = malloc(100);
    for (int i = 0; i < 10; i++)
        free(blocks[i]);
    for (int i = 0; i < 3; i++)
        free(blocks[i]);
    for (int i = 0; i < 2; i++)
        free(blocks[i] + 16);
    free(array + 16);
    return 0;
}
