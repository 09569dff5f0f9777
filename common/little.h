/*
 * little.h: what is wrong by that little that no figure of a report shows it: nobody is warned of it.
 */
#ifndef MEMPROF_LITTLE_H
#define MEMPROF_LITTLE_H

#include <stdint.h>

#define LITTLE_BYTES (64 << 10) /* fewer than these, */
#define LITTLE_SHARE 100        /* and than this part of the peak */

/* bytes 0: not known. */
static inline int little_is(int64_t bytes, int64_t peak_bytes)
{
    return bytes > 0 && bytes < LITTLE_BYTES && bytes < peak_bytes / LITTLE_SHARE;
}

#endif
