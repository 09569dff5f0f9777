/* Another plugin, of the same shape, so that it is mapped where the first one was: 5 blocks of 60 bytes, freed. */
#include <stdlib.h>
__attribute__((noinline)) void alloc_in_b(void)
{
    for (int i = 0; i < 5; i++)
        free(malloc(60));
}
void plugin_work(void)
{
    alloc_in_b();
}
