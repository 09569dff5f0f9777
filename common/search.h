/*
 * search.h: a place in what is sorted, by halves.
 */
#ifndef MEMPROF_SEARCH_H
#define MEMPROF_SEARCH_H

#include <stddef.h>

/* The first of count places, i, for which is_before no longer holds: it has to hold for all before it and for none
 * after it. count: there is no such place. */
#define SEARCH_FIRST(count, i, is_before)                                                                              \
    ({                                                                                                                 \
        size_t search_low = 0, search_high = (count);                                                                  \
        while (search_low < search_high) {                                                                             \
            const size_t i = search_low + (search_high - search_low) / 2;                                              \
            if (is_before)                                                                                             \
                search_low = i + 1;                                                                                    \
            else                                                                                                       \
                search_high = i;                                                                                       \
        }                                                                                                              \
        search_low;                                                                                                    \
    })

#endif
