/*
 * tally_row.h: a tally as columns of a row: of a site, of a thread's account.
 */
#ifndef MEMPROF_TALLY_ROW_H
#define MEMPROF_TALLY_ROW_H

#include "tally.h"

#include <sqlite3.h>

#define TALLY_COLUMNS                                                                                                  \
    "alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes, at_peak_bytes, "              \
    "at_peak_count, at_kind_peak_bytes, own_peak_bytes, end_bytes, end_count, active_peak_bytes, "                     \
    "reserved_peak_bytes, largest_bytes, lifetime_ns"
#define TALLY_VALUES "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"

/* Binds the values, from parameter `first` on, in the order of TALLY_COLUMNS. */
static inline void tally_bind(sqlite3_stmt *q, int first, const struct tally *t, const struct tally_peaks *peaks)
{
    const uint64_t values[] = {t->alloc_count - t->moved_count,
                               t->alloc_bytes - t->moved_bytes,
                               t->left_count - t->end_count - t->moved_count,
                               t->left_bytes - t->end_bytes - t->moved_bytes,
                               t->temporary_count,
                               t->temporary_bytes,
                               peaks->bytes,
                               peaks->count,
                               peaks->kind_bytes,
                               t->own_peak_bytes,
                               t->end_bytes,
                               t->end_count,
                               t->active_peak_bytes,
                               t->reserved_peak_bytes,
                               t->largest_bytes,
                               t->lifetime_ns};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        sqlite3_bind_int64(q, first + (int)i, (int64_t)values[i]);
}

#endif
