/*
 * ownpeak_chunk.h: the exact course of sets of sites within one chunk of events. Several workers may run at the same
 * time, each on a chunk of its own; they raise the same sets.
 */
#ifndef MEMPROF_OWNPEAK_CHUNK_H
#define MEMPROF_OWNPEAK_CHUNK_H

#include "finish_private.h"

struct ownpeak_input { /* borrowed for the lives of the workers */
    const struct ownpeak_range *ranges;
    struct ownpeak_set *sets; /* low_bytes: any worker, atomic, only ever raised */
    const uint32_t *site_of;  /* by site id: index + 1, 0: unknown */
    size_t site_ids;          /* entries of site_of */
    size_t site_count;
};

struct ownpeak_worker;
struct ownpeak_worker *ownpeak_worker_open(const struct ownpeak_input *input); /* NULL: no memory for the decoder */
void ownpeak_worker_close(struct ownpeak_worker *w);

void ownpeak_worker_clear(struct ownpeak_worker *w);
/* A set to be followed, with its live bytes at the chunk's start. */
void ownpeak_worker_follow(struct ownpeak_worker *w, uint32_t set, int64_t live_bytes);
size_t ownpeak_worker_followed(const struct ownpeak_worker *w);
/* Raises low_bytes of the followed sets to their peaks in the chunk. Returns 0 or -EBADMSG. */
int ownpeak_worker_run(struct ownpeak_worker *w, const void *data, size_t length);

/* The best value known of a set. */
static inline int64_t ownpeak_best(const struct ownpeak_set *s)
{
    return __atomic_load_n(&s->low_bytes, __ATOMIC_RELAXED);
}

#endif
