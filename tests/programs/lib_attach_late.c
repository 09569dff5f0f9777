/* Loaded into a process that memprof is attached to. */
#include <stdlib.h>

unsigned long allocate(unsigned count)
{
    unsigned long bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        char *volatile p = malloc(1000 + i);
        p[0] = 1;
        bytes += 1000 + i;
    }
    return bytes;
}
