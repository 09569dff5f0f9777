/*
 * drain_setup.h: a collector without a program: the session, what reads its rings, and the events that come out. A test
 * is the program, with ring_writer.h. Inside scratch_begin and scratch_end.
 */
#ifndef MEMPROF_TEST_DRAIN_SETUP_H
#define MEMPROF_TEST_DRAIN_SETUP_H

#include "../../profiler/collect/drain_private.h"

#include <stddef.h>
#include <stdint.h>

struct setup {
    struct clock clock;
    struct session session;
    struct store *store;
    struct stacks *stacks;
    struct watch *watch;
    struct processes processes;
    struct drain *drain;
    struct event *events;
    size_t count, room;
    uint64_t disorder; /* events earlier than the one before */
};

/* tsc: the clock, where the machine has it. */
struct setup *setup_begin(int tsc);
void setup_end(struct setup *s);

/* So many looks at all rings. */
void setup_rounds(struct setup *s, int count);
/* Rounds until the database says so; fails where that takes more than some seconds. */
void setup_wait_until(struct setup *s, const char *sql, int64_t value);
/* The first such event, and its place among all; NULL: none. */
const struct event *setup_find_event(const struct setup *s, enum event_op op, uint16_t process_id, size_t *at);

#endif
