/*
 * process_parts.h: what each process had at its end, site by site, from the events around the ends: sites have sums of
 * all processes, which may be several programs that have a stack in common. What Python freed as it took itself down
 * is of it, as it is of a site's end_bytes.
 */
#ifndef MEMPROF_PROCESS_PARTS_H
#define MEMPROF_PROCESS_PARTS_H

#include "../../common/error.h"
#include "../../common/map.h"

#include <sqlite3.h>
#include <stdint.h>

struct process_part {
    int64_t bytes, count;
    int64_t torn_bytes, torn_count; /* of them: freed as the interpreter took itself down */
    uint32_t next;                  /* of the same site */
    uint16_t process_id;
};

struct process_parts {
    struct process_part *part;
    uint32_t count, capacity;
    struct map part_of;  /* (site, process) -> part */
    struct map first_of; /* site -> the newest of its parts */
};

/* What was not kept, or is damaged, and what processes had that were not seen to end, is in no part. 0, or -errno with
 * err. Free with process_parts_free in any case. */
int process_parts_load(sqlite3 *db, struct process_parts *parts, struct error *err);
void process_parts_free(struct process_parts *parts);

/* The next part of a site after one (NULL: the first); NULL: there is none. */
const struct process_part *process_parts_next(const struct process_parts *parts, int64_t site_id,
                                              const struct process_part *part);

#endif
