/*
 * Joins paths in a loop, each through two short-lived strings. The heap stays small; the allocator does all the work.
 *
 * What memprof must show:
 *   join     200,000 allocations of 48 bytes (9,600,000 bytes), each freed before the next allocation: all temporaries.
 *   pretty   100,000 allocations of 64 bytes; a join lies between its birth and its death: not one is a temporary.
 *   peak     112 bytes.
 */
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 100000, JOIN_BYTES = 48, PRETTY_BYTES = 64 };

static unsigned join(int i)
{
    char *path = malloc(JOIN_BYTES);
    snprintf(path, JOIN_BYTES, "/tmp/%d", i);
    unsigned last = (unsigned char)path[5];
    free(path);
    return last;
}

static unsigned pretty(int i)
{
    char *text = malloc(PRETTY_BYTES);
    unsigned sum = join(i) + join(i + 1);
    snprintf(text, PRETTY_BYTES, "%u", sum);
    sum += (unsigned char)text[0];
    free(text);
    return sum;
}

int main(void)
{
    unsigned long sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        sum += pretty(i);
    fprintf(stderr, "sum %lu\n", sum);
    return 0;
}
