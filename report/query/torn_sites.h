/*
 * torn_sites.h: what an interpreter freed of each site as it took itself down (table site_teardown), by the site's id.
 * Where the file has sites packed it comes from there, far faster than rows by SQL.
 */
#ifndef MEMPROF_QUERY_TORN_SITES_H
#define MEMPROF_QUERY_TORN_SITES_H

#include "../../common/error.h"
#include "../../common/packed.h"

#include <sqlite3.h>
#include <stdint.h>

struct torn {
    int64_t bytes, count;
};

struct torn_sites {
    sqlite3 *db;
    struct packed *packed; /* NULL: plain rows, from s */
    const struct packed_values *bytes, *counts;
    long last;
    sqlite3_stmt *s;
    int step;
};

/* What windows put before it counts. Returns 0 or -errno with err; close in both cases. */
int torn_sites_open(sqlite3 *db, struct torn_sites *torn, struct error *err);
/* Of sites in ascending order of their ids; of one without 0. */
struct torn torn_sites_of(struct torn_sites *torn, int64_t site_id);
/* Returns 0 or the error that it met. */
int torn_sites_close(struct torn_sites *torn, struct error *err);
/* Of all of them; 0 where that is not to be had, or too much. */
struct torn torn_sites_sum(sqlite3 *db);

#endif
