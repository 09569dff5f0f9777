/*
 * size_counts.h: how often something happened to blocks of one size of one stack; then summed by line, as what calls a
 * wrapper is told apart by the stacks alone. For find_churn.c and find_reuse.c.
 */
#ifndef MEMPROF_FINDING_SIZE_COUNTS_H
#define MEMPROF_FINDING_SIZE_COUNTS_H

#include "rules.h"

#define SIZE_CACHED_BYTES 1032 /* what glibc's threads keep by size; other allocators keep more */

struct size_count {
    int64_t count;
    uint64_t size_bytes;
    uint32_t site_id;          /* of a line's: the one that has most */
    int64_t freed_ns, waiting; /* find_reuse.c's */
};

struct size_counts {
    const struct rules *r;
    struct map of;
    struct size_count *item;
    uint32_t count, capacity;
};

/* For watches: opened for r, closed and freed. */
struct size_counts *size_counts_open(const struct rules *r);
void size_counts_close(struct size_counts *all);
/* NULL: there are too many. Until the next call. */
struct size_count *size_count_at(struct size_counts *all, uint32_t site_id, uint64_t size_bytes);
/* By line and size, those of r->device that come to least, most first; to be freed. */
struct size_count *size_counts_by_line(const struct size_counts *all, int64_t least, uint32_t *count);

/* Whether calls of malloc and free are worth saving: many ms of them, a part of the run that may be felt, and by code
 * that is not a library's own start or an import. Of a GPU, whose calls take longer: always. */
int size_count_is_worth(struct rules *r, const struct size_count *c);
/* What they took, as a sentence; nothing of a GPU. */
void size_count_say_cost(struct rules *r, struct finding *f, const struct size_count *c);

#endif
