/*
 * records_private.h: records that are not simply an allocation or a free, by what they say: definitions of stacks,
 * modules and code (records_define.c), calls of devices and sub-allocators (records_call.c), marks and ranges
 * (records_mark.c), all others (records.c).
 */
#ifndef MEMPROF_RECORDS_PRIVATE_H
#define MEMPROF_RECORDS_PRIVATE_H

#include "drain.h"

/* Of the record that comes next, or the one at a position. */
static inline uint64_t record_word(const struct ring *r, uint64_t index)
{
    return __atomic_load_n(&r->words[(r->position + index) & (WIRE_RING_WORDS - 1)], __ATOMIC_RELAXED);
}

static inline uint64_t record_word_at(const struct ring *r, uint64_t position, uint64_t index)
{
    return __atomic_load_n(&r->words[(position + index) & (WIRE_RING_WORDS - 1)], __ATOMIC_RELAXED);
}

static inline int64_t record_ns(const struct drain *d, const struct ring *r)
{
    return clock_ns(d->clock, r->key);
}

/* Definitions: in order, or ahead of it for an event that needs them. */
void records_define_stack(const struct ring *r, uint64_t position, uint64_t words);
void records_define_code(struct drain *d, const struct ring *r, uint64_t position, uint64_t words);
void records_load_module(struct drain *d, const struct ring *r, uint64_t position, uint64_t words, int64_t time_ns);
/* The global id of a stack by its own: looked for ahead where it was not defined yet. */
uint32_t record_stack(struct drain *d, const struct ring *r, uint32_t id);

/* Whose record the events come from. */
struct record_target {
    struct drain *d;
    const struct ring *r;
    unsigned hook;
};

/* arg: a struct record_target. */
void records_emit(void *arg, const struct event *event);

void records_call(struct drain *d, struct ring *r, uint64_t word1, uint64_t words);
void records_mark(struct drain *d, struct ring *r, uint64_t word1, uint64_t words);

#endif
