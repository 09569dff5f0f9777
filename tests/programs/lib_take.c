/* A library for python_trail.py: a block of the heap of so many bytes, gone at once. */
#include <stdlib.h>

void take(int bytes);
void take(int bytes)
{
    free(malloc((size_t)bytes));
}
