/*
 * account_model.h: a naive model of the accounts: arrays, searched from front to back.
 */
#ifndef MEMPROF_TEST_ACCOUNT_MODEL_H
#define MEMPROF_TEST_ACCOUNT_MODEL_H

#include "../../common/kind.h"
#include "account_run.h"

#define MODEL_STACKS    24u
#define MODEL_THREADS   84u
#define MODEL_DEVICES   2u
#define MODEL_SITES     (MODEL_STACKS * MODEL_DEVICES * KIND_COUNT)
#define MODEL_SNAPSHOTS 40u

struct stats {
    uint64_t alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes, live_bytes, live_count;
    uint64_t at_peak_bytes, at_peak_count, at_kind_peak_bytes, own_peak_bytes, end_bytes, end_count;
    uint64_t active_peak_bytes, reserved_peak_bytes, largest_bytes, lifetime_ns;
};

struct block {
    uint64_t address, size, time_ns, number; /* number: of its thread's allocations */
    unsigned process, thread, stack, device, kind, space;
    unsigned is_part;       /* of a block that was split: those of one block have one thread and number */
    uint64_t birth_address; /* of the block */
};

struct peak {
    uint64_t active, bytes, time_ns, count, blocks;
};

struct model {
    struct block *blocks;
    size_t block_count;
    struct stats sites[MODEL_DEVICES][KIND_COUNT][MODEL_STACKS];
    struct stats threads[MODEL_DEVICES][KIND_COUNT + 1][MODEL_THREADS];
    struct peak peaks[MODEL_DEVICES][KIND_COUNT + 1];
    uint64_t reserved[MODEL_DEVICES][KIND_COUNT + 1], reserved_peak[MODEL_DEVICES][KIND_COUNT + 1];
    uint64_t samples[64];   /* by process */
    int64_t inherited_heap; /* of the one process that has some; with has_inherited */
    unsigned inheritor, has_inherited;
    uint64_t thread_allocs[MODEL_THREADS];
    uint64_t unmatched, inherited, replaced, reallocs, events; /* events: those in chunks */
    uint64_t now_ns;
    /* device 0 over time: one entry a change */
    struct change {
        uint64_t time_ns, active;
    } * changes;
    size_t change_count;
    /* what sites held after that many events */
    struct snapshot {
        uint64_t event_count;
        uint64_t bytes[MODEL_DEVICES][KIND_COUNT][MODEL_STACKS], count[MODEL_DEVICES][KIND_COUNT][MODEL_STACKS];
    } snapshots[MODEL_SNAPSHOTS];
    unsigned snapshot_count;
};

struct model *model_open(size_t events); /* room for so many */
void model_close(struct model *m);

void model_event(struct model *m, const struct event *e);

/* Fail where the database says something else. */
void model_compare_rows(struct model *m, const struct account_run *r); /* sites, threads, totals, counts */
/* most: buckets of the finest level */
void model_compare_timeline(const struct model *m, unsigned most);
void model_compare_snapshots(const struct model *m);
void model_compare_peak_frame(const struct model *m);

#endif
