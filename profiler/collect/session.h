/*
 * session.h: the collector's side of the shared memory of wire.h: one memfd that lives as long as the collector does.
 */
#ifndef MEMPROF_SESSION_H
#define MEMPROF_SESSION_H

#include "../../common/error.h"
#include "../wire.h"

#include <stdint.h>

struct session {
    struct wire_control *control;
    struct wire_proc *procs;
    struct wire_ring *rings;
    uint64_t *data;
    uint32_t ring_count; /* mapped: as many as control says, or fewer where our address space is limited */
    uint64_t mapped_bytes;
    int fd;
    int owned;            /* control->owner is held, by the thread that opened this, which must close it */
    uint32_t pushes;      /* rings given to the free list so far; the list's tag counts pops as well */
    uint32_t ring_end;    /* session_ring_end, as it was seen last */
    uint64_t spare_bytes; /* pages behind free rings that keep them for their next thread */
    uint32_t *kept_words; /* per ring: words of data that have pages, while it is free */
};

struct session_options {
    const char *library; /* absolute path */
    unsigned depth;
    int follow;
    int use_tsc;
    int is_attached; /* to a process that runs already */
    int is_paused;   /* from the beginning on */
    int has_orders;  /* a policy may give programs orders: each has its thread for them from its start */
    int free_stacks; /* who frees is recorded; of a heap's blocks those that can hold so many: */
    uint64_t free_least_bytes;
    uint64_t sample_bytes, least_bytes, sample_seed; /* as of wire_control */
    uint64_t sample_interval;                        /* stamps between two samples of the heap; 0: none */
    uint32_t ring_count;                             /* at most; 0: WIRE_RINGS */
};

int session_open(struct session *s, const struct session_options *options, struct error *err);
void session_close(struct session *s);

/* Whether a process other than this one has the memory mapped. Only while no ring is in use, and under watch_hold: our
 * own mapping is away for a moment. */
int session_is_shared(struct session *s);

static inline const uint64_t *session_ring_words(const struct session *s, uint32_t ring)
{
    return s->data + (uint64_t)ring * WIRE_RING_WORDS;
}

/* Rings that programs have taken so far: while this does not move, there is no new one to look for. */
uint32_t session_pops(const struct session *s);
/* Rings below were taken at some time, whether or not their threads have got on to say so; those from here on never. */
uint32_t session_ring_end(struct session *s);
/* Gives a drained ring of a gone thread back. words_used: how far into the data it was written (pages to keep or drop).
 */
void session_free_ring(struct session *s, uint32_t ring, uint64_t words_used);
void session_ring_taken(struct session *s, uint32_t ring); /* found in use: its pages are no longer spare */

#endif
