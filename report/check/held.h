/*
 * held.h: what every site held at several instants: one pass over the events, which are decoded only where an instant
 * lies within their chunk; of other chunks what they did to each site is stored.
 */
#ifndef MEMPROF_CHECK_HELD_H
#define MEMPROF_CHECK_HELD_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct held_site {
    uint32_t site_id;
    int64_t bytes;
};

/* The sites that there were so far, in the order in which they came; borrowed for the call. Not 0: no more of them. */
typedef int held_take(void *arg, int instant, const struct held_site *sites, size_t count);

/* Instants in order of time; events of an instant's own time are before it. 0, what take returned, -ENODATA where the
 * events are not all there, or -errno with err. */
int held_at(sqlite3 *db, const int64_t *times_ns, int count, held_take *take, void *arg, struct error *err);

#endif
