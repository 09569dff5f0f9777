/* A plugin: 5 blocks of 50 bytes, freed. */
#include <stdlib.h>
__attribute__((noinline)) void alloc_in_a(void)
{
    for (int i = 0; i < 5; i++)
        free(malloc(50));
}
void plugin_work(void)
{
    alloc_in_a();
}
