/*
 * devices.h: what a process does with the memory of its GPUs and with sub-allocators: turns the calls of wire.h into
 * events of blocks, segments and samples.
 *
 * - An allocation of the driver is a block and a segment at once. Of pools, physical memory (cuMemCreate) and arrays,
 * what is reserved is a sum that is sent as a sample whenever it changes (EVENT_RESERVED); a pool is taken to hold at
 * least its blocks, and exactly what its attributes say when they are read.
 * - A pool's free is pending until its stream is known to have got there: a wait for the stream, attributes that say
 * so, or another block at its address.
 * - What a sub-allocator hands out parts of is a segment and no block. Its blocks are of kind 'sub', on the device of
 * the memory that they lie in.
 * - Memory that another process owns is counted on a device of its own ("foreign:0"), and reserved nowhere.
 * - A call that the driver refused does nothing. Where that turns out too late (UNDO without is_refused), what it ended
 *   is born again.
 */
#ifndef MEMPROF_DEVICES_H
#define MEMPROF_DEVICES_H

#include "../account/event.h"

#include <stddef.h>
#include <stdint.h>

struct devices; /* of one process */

struct devices_call {
    unsigned call;   /* enum wire_call */
    unsigned device; /* the process's ordinal, WIRE_DEVICE_* */
    unsigned flags;  /* WIRE_CALL_* */
    unsigned kind;   /* of memory: the hook's */
    uint32_t stack_id;
    uint32_t thread_id;
    const uint64_t *words; /* from w3 */
    size_t word_count;
    int is_refused; /* the driver refused what it would take away: an UNDO follows */
    int is_segment; /* of what it allocates, a sub-allocator hands out parts right away: never a block */
};

/* What the model needs from outside. arg goes with each. */
struct devices_sink {
    void *arg;
    /* op, address, size, kind, device, stack of births and is_sampled are set; the rest is the caller's to fill. */
    void (*event)(void *arg, const struct event *event);
    /* The row of a device. uuid: two words or NULL; model: text or NULL. */
    unsigned (*device)(void *arg, unsigned ordinal, const uint64_t *uuid, uint64_t total_bytes, const char *model);
    /* The row of memory on that device which another process owns. */
    unsigned (*foreign)(void *arg, unsigned device_id);
    /* The start of the host's map that holds the address; 0: none. */
    uint64_t (*host_map)(void *arg, uint64_t address);
    /* The program calls the memory at the address by that name from now on. */
    void (*name)(void *arg, uint64_t address, const char *name);
    /* count copies or fills, with so many bytes in all. */
    void (*transfer)(void *arg, uint32_t stack_id, unsigned device_id, unsigned direction, uint64_t count,
                     uint64_t bytes);
};

struct devices_counts {
    uint64_t alloc_retries; /* an allocation failed, frees followed, and the thread's next one of that size succeeded */
    uint64_t refused;       /* calls that would have taken something away */
    uint64_t lost_frees;    /* memory given out again, or reused, whose free was not seen */
};

struct devices *devices_open(void);
void devices_close(struct devices *d);
/* What the process calls the device of this row; -1: it has not met it. */
int devices_ordinal(const struct devices *d, unsigned device_id);
int devices_takes_away(unsigned call); /* 1: an UNDO may follow */
/* Returns 0, or -EINVAL for a call that makes no sense (nothing was done). */
int devices_apply(struct devices *d, const struct devices_call *call, const struct devices_sink *sink);

/* What leaves a device with its process. */
struct devices_holding {
    uint64_t reserved_bytes; /* blocks, and what pools hold beside them */
    uint64_t managed_bytes;
    uint64_t foreign_bytes; /* another process's */
    uint64_t context_count; /* that own blocks */
};
/* Of each device_id. */
void devices_holdings(const struct devices *d, struct devices_holding holdings[256]);
void devices_counts(const struct devices *d, struct devices_counts *counts);

#endif
