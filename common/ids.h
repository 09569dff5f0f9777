/*
 * ids.h: numbers for the ids of a table that is read in ascending order: an id's number is its place + 1, and 0 is
 * none. Ids of a hostile database may be sparse; those that memprof writes begin at 1 without gaps, and cost no search.
 */
#ifndef MEMPROF_IDS_H
#define MEMPROF_IDS_H

#include <sqlite3.h>
#include <stdint.h>

struct ids { /* all zero: empty; freed by free(ids) */
    int64_t *ids;
    uint32_t count, capacity;
};

void ids_add(struct ids *a, int64_t id);
uint32_t ids_search(const struct ids *a, int64_t id);

static inline uint32_t ids_find(const struct ids *a, int64_t id)
{
    if (id >= 1 && (uint64_t)id <= a->count && a->ids[id - 1] == id)
        return (uint32_t)id;
    return ids_search(a, id);
}

/* The number of a column's id; 0 where it is NULL, too. */
static inline uint32_t ids_column(const struct ids *a, sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? 0 : ids_find(a, sqlite3_column_int64(s, column));
}

#endif
