/*
 * drain.h: from the rings to one stream of events in time order over all threads and processes. The collector's thread
 * calls it; drain_round is the hot path. What is not an event of memory (stacks, modules, names, ends) goes to
 * stacks.h, process.h and the database.
 */
#ifndef MEMPROF_DRAIN_H
#define MEMPROF_DRAIN_H

#include "../account/event.h"
#include "../devices/transfer.h"
#include "../store/device_row.h"
#include "../store/store.h"
#include "clock.h"
#include "process.h"
#include "session.h"

#include <stddef.h>
#include <stdint.h>

#define DRAIN_BATCH  512u
#define DRAIN_RANGES 32u    /* nested ranges of a thread that get their ends */
#define DRAIN_SPANS  65536u /* open ranges with ids, of all processes, that do */

struct ring {           /* our side of a ring in use: one thread of the program */
    uint64_t position;  /* words read so far; at the record that comes next */
    uint64_t end;       /* words that this round may read */
    uint64_t key;       /* stamp of what comes next, never less than newest */
    uint64_t newest;    /* stamp of what came last */
    uint64_t clear;     /* everything stamped up to here has been published */
    uint64_t published; /* position as the program knows it (tail) */
    const uint64_t *words;
    struct process *process;
    uint32_t index;
    uint32_t thread_id;
    uint8_t second_half; /* the allocation of the REALLOC (REMAP) at position is still to come */
    uint8_t busy;
    uint8_t bad;         /* wrote what it must not: read no more */
    uint8_t passed_over; /* busy for so long that the order went on without it */
    /* seldom used */
    uint8_t range_depth;
    uint8_t named;       /* by the thread itself */
    uint64_t retry_size; /* of its newest failed allocation, + 1; 0: none */
    int tid;
    uint64_t scanned;    /* definitions of stacks and modules were looked for up to here */
    uint64_t ahead_end;  /* where it ended when that look began */
    uint64_t used_words; /* most of the data that was ever written */
    uint64_t active_ns;  /* when it last had words; monotonic */
    uint64_t busy_head;  /* its head when it was first seen in the record that it is busy with, */
    uint64_t busy_ns;    /* and when that was; monotonic */
    uint32_t busy_rounds;
    uint32_t absent;     /* number of the look at the process's threads that did not find it; 0: none */
    uint64_t closing_ns; /* when it was first asked after; monotonic */
    uint64_t check_ns;   /* when to look whether the thread is gone; monotonic */
    struct open_range {
        int64_t mark_id;
        uint64_t domain; /* hash of its name */
    } ranges[DRAIN_RANGES];
    char name[16];
};

struct drain_sink {
    void (*events)(void *arg, const struct event *events, size_t count); /* in time order */
    void *arg;
};

struct drain {
    struct session *session;
    struct store *store;
    struct clock *clock;
    struct processes *processes;
    struct drain_sink sink;
    struct device_rows device_rows;
    struct transfers transfers;
    struct event batch[DRAIN_BATCH];
    size_t batch_count;
    struct ring **rings; /* in use, WIRE_RINGS of room */
    uint32_t ring_count;
    struct heap_entry {
        uint64_t key;
        struct ring *ring;
    } * heap; /* rings with words to read, by key */
    uint32_t heap_count;
    uint64_t limit;    /* no event stamped later may be given out in this round */
    uint64_t settle;   /* stamps that a store of another core takes at most to be seen here */
    uint64_t merged;   /* everything up to here was given out */
    uint64_t stall_ns; /* since when an event waits for the definition of its stack; monotonic, 0: none */
    uint64_t now_ns;   /* monotonic, of this round */
    uint64_t thread_check_ns;
    uint32_t pops_seen, adopted;
    uint32_t ring_end;          /* rings below were in use at some time */
    uint8_t in_use[WIRE_RINGS]; /* 1: among rings */
    uint64_t adopt_retry_ns, adopt_fast_until_ns;
    uint32_t pressure; /* words of the fullest ring when this round began */
    uint8_t is_last;   /* the recording ends: nothing waits */
    uint32_t leaving;  /* processes whose end is awaited: come back soon */
    uint32_t thread_rows;
    struct span {
        uint64_t id;
        int64_t mark_id;
        uint32_t process_id;
    } * spans; /* ranges begun by START */
    size_t span_count, span_room;
    /* totals */
    uint64_t words, bad_rings, bad_records, unknown_stacks, discarded_words, mark_rows, rounds, untracked_rows,
        name_rows;
    int64_t last_ns; /* time of the last event */
};

void drain_open(struct drain *d, struct session *session, struct store *store, struct clock *clock,
                struct processes *processes, struct drain_sink sink);
void drain_close(struct drain *d);

/* One look at all rings: gives out what is certain to be in order. Returns the words read. */
uint64_t drain_round(struct drain *d);
/* The recording ends: everything published so far is given out, processes that still run are abandoned. */
void drain_finish(struct drain *d);
/* Whether no ring holds more than an eighth of its words: the collector may sleep. */
int drain_may_sleep(const struct drain *d);
/* Gives events that are not from rings (samples) their place: time_ns is set here. */
void drain_emit(struct drain *d, struct event event);

/* --- between drain.c, records.c and threads.c --- */

void drain_flush(struct drain *d);
static inline struct event *drain_next(struct drain *d)
{
    if (d->batch_count == DRAIN_BATCH)
        drain_flush(d);
    return &d->batch[d->batch_count++];
}
/* Words of the record at position; 0: damaged. */
uint64_t drain_record_words(const struct ring *r, uint64_t position, uint64_t end);
/* Whether the record at r->position can be taken now: what allocates a device's memory or frees it waits for what
 * its thread does next, so that a segment of a sub-allocator is one from birth, and a call that the driver refused is
 * none. Lowers d->limit where not. */
int records_may_take(struct drain *d, struct ring *r, uint64_t words);
/* Records that are not simply an allocation or a free. Lowers d->limit where the order must wait. */
void records_handle(struct drain *d, struct ring *r, uint64_t word1, uint64_t words);
/* The global id of a stack that was not defined when its event came: looks ahead in the process's rings. 0: not there.
 */
uint32_t records_find_stack(struct drain *d, struct process *p, uint32_t id);
unsigned drain_kind(unsigned hook); /* enum kind */

void threads_adopt(struct drain *d);
void threads_check(struct drain *d);
void threads_close(struct drain *d, struct ring *r, int64_t end_ns); /* frees r */
void threads_read_name(struct ring *r);

#endif
