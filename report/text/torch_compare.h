/*
 * torch_compare.h: PyTorch's own history of its blocks against ours: both say of each address when it was given and
 * taken back, so address by address the two must tell the same.
 */
#ifndef MEMPROF_TORCH_COMPARE_H
#define MEMPROF_TORCH_COMPARE_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

struct torch_comparison {
    int64_t blocks; /* allocations that agree: address, order, and a size that is ours when it is rounded up */
    int64_t frees;  /* frees likewise */
    int64_t only_ours, only_theirs; /* allocations and frees that the other does not have, or has otherwise */
    int64_t ours_outside; /* ours before the first, and after the last one that agrees: it was not recording then */
    char first[256];      /* the first difference, in words; "": none */
};

/* ours: a recording, of which process pid counts; theirs: an imported snapshot. 0 or -errno with err. */
int torch_compare(sqlite3 *ours, sqlite3 *theirs, int64_t pid, struct torch_comparison *result, struct error *err);

#endif
