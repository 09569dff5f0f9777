/*
 * drain_private.h: what drain.c, drain_event.c, threads.c and records*.c share, nobody else. They are stages over one
 * struct drain, and each calls only those named behind it here: drain.c the loop over the rings and their order;
 * threads.c which rings there are; records.c the records that are not simply an allocation or a free: records_call.c
 * calls of devices and sub-allocators, records_mark.c marks and ranges, records_define.c definitions of stacks, modules
 * and code; drain_event.c a record's length and kind, and events on their way out.
 */
#ifndef MEMPROF_DRAIN_PRIVATE_H
#define MEMPROF_DRAIN_PRIVATE_H

#include "drain.h"

#define DRAIN_BATCH  512u
#define DRAIN_RANGES 32u    /* nested ranges of a thread that get their ends */
#define DRAIN_SPANS  65536u /* open ranges with ids, of all processes, that do */

enum { SECOND_HALF_LEFT_OUT = 2 }; /* its first half was a free in a pause */

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
    uint8_t second_half; /* the allocation of the REALLOC (REMAP) at position is still to come, or left out */
    uint8_t busy;
    uint8_t bad;         /* wrote what it must not: read no more */
    uint8_t passed_over; /* busy for so long that the order went on without it */
    /* seldom used */
    uint8_t range_depth;
    uint8_t named;          /* by the thread itself */
    uint8_t policy_refused; /* the last one that it said */
    uint64_t retry_size;    /* of its newest failed allocation, + 1; 0: none */
    int tid;
    struct stack_path *path; /* the thread's last STACK_NEXT; NULL: there was none */
    uint64_t scanned;        /* definitions of stacks and modules were looked for up to here */
    uint64_t ahead_end;      /* where it ended when that look began */
    uint64_t used_words;     /* most of the data that was ever written */
    uint64_t active_ns;      /* when it last had words; monotonic */
    uint64_t busy_head;      /* its head when it was first seen in the record that it is busy with, */
    uint64_t busy_ns;        /* and when that was; monotonic */
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
    uint8_t in_use[WIRE_RINGS]; /* 1: among rings */
    uint64_t adopt_retry_ns, adopt_fast_until_ns;
    uint32_t pressure; /* words of the fullest ring when this round began */
    uint8_t is_last;   /* the recording ends: nothing waits */
    uint8_t is_paused;
    uint8_t lacks_blocks; /* it was, or the recording is thinned */
    uint8_t free_stacks;  /* deaths say who did them */
    uint32_t leaving;     /* processes whose end is awaited: come back soon */
    uint64_t announced;   /* ends, so far */
    uint32_t thread_rows;
    struct span {
        uint64_t id;
        int64_t mark_id;
        uint32_t process_id;
    } * spans; /* ranges begun by START */
    size_t span_count, span_room;
    int64_t epoch_mark_id; /* the running epoch's row; 0: none was begun */
    /* totals */
    uint64_t words, bad_rings, bad_records, unknown_stacks, discarded_words, mark_rows, rounds, untracked_rows,
        name_rows, unresolved_names;
    int64_t last_ns; /* time of the last event */
};

/* --- drain_event.c --- */

extern const uint8_t drain_kinds[WIRE_HOOK_COUNT]; /* enum kind */

static inline unsigned drain_hook(uint64_t word1)
{
    return WIRE_HOOK(word1) < WIRE_HOOK_COUNT ? WIRE_HOOK(word1) : 0;
}

/* Words of the record at position; 0: damaged. */
uint64_t drain_record_words(const struct ring *r, uint64_t position, uint64_t end);

void drain_flush(struct drain *d);
static inline struct event *drain_next(struct drain *d)
{
    if (d->batch_count == DRAIN_BATCH)
        drain_flush(d);
    return &d->batch[d->batch_count++];
}

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

/* Whose record the events come from. */
struct record_target {
    struct drain *d;
    const struct ring *r;
    unsigned hook;
};

/* arg: a struct record_target. */
void records_emit(void *arg, const struct event *event);

/* --- records_define.c --- */

/* A definition in its turn (STACK, STACK_NEXT, CODE, MODULE_LOAD), unless it was found ahead. */
void records_define(struct drain *d, struct ring *r, unsigned op, uint64_t words);
/* A SOURCE record. */
void records_source(struct drain *d, const struct ring *r, uint64_t words);
/* The global id of a stack by its own: looked for ahead where it was not defined yet. */
uint32_t record_stack(struct drain *d, const struct ring *r, uint32_t id);
/* The global id of a stack that was not defined when its event came: looks ahead in the process's rings. 0: not there.
 */
uint32_t records_find_stack(struct drain *d, struct process *p, uint32_t id);

/* --- records_call.c, records_name.c, records_mark.c, records.c --- */

/* Whether the record at r->position can be taken now: what allocates a device's memory or frees it waits for what
 * its thread does next, so that a segment of a sub-allocator is one from birth, and a call that the driver refused is
 * none. Lowers d->limit where not. */
int records_may_take(struct drain *d, struct ring *r, uint64_t words);
void records_call(struct drain *d, struct ring *r, uint64_t word1, uint64_t words);
/* Names of memory; of VIEW and CATEGORY: the arguments. */
void records_name(struct drain *d, const struct ring *r, uint64_t address, const char *name);
void records_view(struct drain *d, const struct ring *r, const uint64_t *words, uint64_t count);
void records_category(struct drain *d, const struct ring *r, const uint64_t *words, uint64_t count);
void records_mark(struct drain *d, struct ring *r, uint64_t word1, uint64_t words);
/* Records that are not simply an allocation or a free. Lowers d->limit where the order must wait. */
void records_handle(struct drain *d, struct ring *r, uint64_t word1, uint64_t words);

/* --- threads.c --- */

void threads_adopt(struct drain *d);
void threads_check(struct drain *d);
void threads_close(struct drain *d, struct ring *r, int64_t end_ns); /* frees r */

#endif
