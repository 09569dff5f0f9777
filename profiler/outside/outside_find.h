/*
 * outside_find.h: which recordings go on, and the file of one. Those of this user, and of all where root asks.
 */
#ifndef MEMPROF_OUTSIDE_FIND_H
#define MEMPROF_OUTSIDE_FIND_H

#include <stddef.h>

struct outside_found {
    int collector;
    char *file; /* its path now, as this process sees it */
};

/* By their collectors' numbers. The caller frees it with outside_found_free. */
size_t outside_find(struct outside_found **found);
void outside_found_free(struct outside_found *found, size_t count);

/* The recording that this collector writes; to free. NULL: it has none open that can be reached. */
char *outside_file(int collector);

#endif
