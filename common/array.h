/*
 * array.h: arrays that double.
 */
#ifndef MEMPROF_ARRAY_H
#define MEMPROF_ARRAY_H

#include "error.h"

/* Room for one more element. */
#define ARRAY_GROW(array, count, capacity)                                                                             \
    do {                                                                                                               \
        if ((count) == (capacity)) {                                                                                   \
            (capacity) = (capacity) ? (capacity)*2 : 64;                                                               \
            (array) = xrealloc((array), (capacity) * sizeof *(array));                                                 \
        }                                                                                                              \
    } while (0)

#endif
