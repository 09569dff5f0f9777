/* For deep.c: allocates and frees, its own blocks and those of others. */
#include <stdlib.h>
#include <string.h>

void *own(size_t size)
{
    return malloc(size);
}
void give_back(void *p)
{
    free(p);
}
char *copy(const char *text)
{
    return strdup(text);
}
