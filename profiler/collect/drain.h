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
#include "process.h"

#include <stddef.h>
#include <stdint.h>

struct drain;
struct name_said;

struct drain_sync { /* a SYNC */
    uint32_t ring, number, thread_id;
    unsigned flags;
    int64_t time_ns;
    int is_refused; /* with WIRE_SYNC_POLICY: the thread's last policy was none */
    char name[WIRE_NAME_BYTES + 1];
};

struct drain_sink {
    void (*events)(void *arg, const struct event *events, size_t count); /* in time order */
    void *arg;
    /* What a program calls a block of its own, after all events so far; 0: none begins there. NULL: nobody asks. */
    int (*name)(void *arg, unsigned process_id, uint64_t time_ns, const struct name_said *said);
    /* When all events before it were given out; NULL: nobody is there to answer. */
    void (*sync)(void *arg, const struct drain_sync *sync);
    void (*epoch)(void *arg, uint64_t time_ns);
    /* A program's policy; 0: it is none. NULL: nobody takes it. */
    int (*policy)(void *arg, unsigned process_id, const char *text, size_t bytes);
};

struct drain *drain_open(struct session *session, struct store *store, struct clock *clock, struct processes *processes,
                         struct drain_sink sink);
void drain_close(struct drain *d);

/* One look at all rings: gives out what is certain to be in order. Returns the words read. */
uint64_t drain_round(struct drain *d);
/* The same, but nothing that came after a stamp is given out. */
uint64_t drain_round_until(struct drain *d, uint64_t stamp);
/* After all that was given out so far a pause begins or ends. In it births of blocks by malloc and its like are left
 * out; frees are given out, of blocks that were left out with EVENT_MAYBE_UNSEEN. */
void drain_pause(struct drain *d, int is_paused);
/* From the beginning on deaths say who did them, where the program told it. */
void drain_free_stacks(struct drain *d);
/* A mark that no thread made. process_id 0: of none. Returns its mark_id. */
int64_t drain_mark(struct drain *d, const char *domain, const char *name, uint32_t process_id, int64_t time_ns,
                   int is_range);
void drain_mark_end(struct drain *d, int64_t mark_id, int64_t time_ns);
/* Whether all that the process did up to a stamp was given out, */
int drain_is_in(const struct drain *d, const struct process *p, uint64_t stamp);
/* and whether that is so of all that it did until now: without a round. */
int drain_is_read(const struct drain *d, const struct process *p);
/* The recording ends: everything published so far is given out, processes that still run are abandoned. */
void drain_finish(struct drain *d);
/* Whether no ring holds more than an eighth of its words: the collector may sleep. */
int drain_may_sleep(const struct drain *d);
/* Gives events that are not from rings (samples) their place: time_ns is set here. */
void drain_emit(struct drain *d, struct event event);
/* Resident bytes of a process now (0: not known), and before that its new peak (0: none). */
void drain_emit_rss(struct drain *d, struct process *p, uint64_t peak_bytes, uint64_t now_bytes);

struct drain_state {
    uint64_t now_ns;    /* monotonic, of the newest round */
    uint64_t merged;    /* everything up to this stamp was given out */
    uint32_t pressure;  /* words of the fullest ring when that round began */
    uint32_t leaving;   /* processes whose end is awaited: come back soon */
    uint64_t announced; /* ends, so far */
    uint64_t bad_rings, bad_records, unknown_stacks;
    uint64_t unresolved_names; /* of memory that is no live block */
    const struct device_rows *devices;
    struct transfers *transfers;
};
struct drain_state drain_state(struct drain *d);

#endif
