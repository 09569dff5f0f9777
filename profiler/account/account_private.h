/*
 * account_private.h: what the files account*.c and keyframe.c share, nobody else. account*.c are one thing: account.c
 * takes the events and owns the books; what is rare it hands to a file of its own, which books by calling back (what
 * ends with a process ends like any block). The books' functions stay in account.c because the hot path has them
 * inlined there.
 */
#ifndef MEMPROF_ACCOUNT_PRIVATE_H
#define MEMPROF_ACCOUNT_PRIVATE_H

#include "../../common/map.h"
#include "../store/store.h"
#include "account.h"
#include "account_figures.h"
#include "keyframe.h"
#include "largest.h"
#include "live.h"
#include "names.h"
#include "sampled.h"
#include "segment.h"
#include "site.h"
#include "tally.h"
#include "touch.h"
#include "worker.h"

#include "../../common/chunk.h"

#define ACCOUNT_DEVICES   256u
#define ACCOUNT_PROCESSES 65536u

/* Of one device of one process. */
struct process_device {
    struct process_device *next;
    struct segments *segments;           /* NULL: none */
    uint64_t reserved_bytes[KIND_COUNT]; /* latest samples; of a fork's child without: */
    uint64_t inherited_bytes;            /* what its heap still has of its parent's, which counts there */
    uint64_t heap_start;                 /* of glibc's main arena; 0: not known */
    struct map heaps;                    /* of its other arenas: where they begin */
    uint64_t mapped_bytes;               /* of blocks with a mapping of their own, when glibc was asked last */
    int64_t mapped_change;               /* ... and what events since then say */
    uint64_t mapped_before;              /* what glibc said more than the events: of allocations that come late */
    uint64_t unseen_bytes;               /* what it said was in use then, and no block is */
    uint64_t unfreed_bytes;              /* of what counts as live: what it has proven was freed */
    uint64_t asks_active, asks_alloc;    /* when asks_thread began to ask it: live, and all that was ever allocated */
    uint64_t asks_ns;
    uint64_t used_bytes;   /* what it said while other processes had blocks, too; */
    uint64_t used_ns;      /* when that was asked for; 0: it did not */
    uint32_t asks_thread;  /* 0: nobody did */
    uint8_t has_inherited; /* that is known */
    uint8_t is_asked;      /* mapped_bytes is known */
    uint8_t device;
};

struct process_account {
    struct live_table *live; /* a block that was split has an entry a part */
    struct parts *parts;     /* those; NULL: none */
    struct process_device *devices;
    uint64_t rss_bytes;
    uint32_t first_site; /* its own have this id or a higher one */
    int has_moved;       /* blocks have become segments */
    int is_torn_down;
    int is_last_holder;   /* ... and nobody else held anything then: the end's key frame is of that instant */
    uint64_t teardown_ns; /* when that began */
};

/* What a thread allocated of a kind of a device. */
struct thread_tally {
    struct tally tally; /* own_peak_bytes: since the chunk began that it changed in last */
    struct tally_rare rare;
    uint64_t peak_bytes;                                                                   /* before that */
    uint32_t chunk_id;                                                                     /* that one */
    uint64_t before_alloc_count, before_alloc_bytes, before_free_count, before_free_bytes; /* the accounts began anew */
};

/* What a thread allocated on one device. */
struct thread_device {
    struct thread_device *next;
    uint64_t live_bytes;     /* of all kinds */
    uint64_t own_peak_bytes; /* as of a tally, and the next two as of a thread_tally */
    uint64_t peak_bytes;
    uint32_t chunk_id;
    struct thread_tally *kinds[KIND_COUNT]; /* NULL until used */
    uint8_t device;
};

struct thread_account {
    struct thread_device *devices;
    uint64_t last_key; /* of its newest block */
    uint32_t dirty;    /* is on the list of threads to write */
};

/* What an event changes, found once for the events of a thread on a device and of a kind that follow each other.
 * Nothing here is freed before the account. */
struct account_lane {
    uint64_t key; /* account_lane_key */
    struct device_account *device;
    struct kind_account *kind;
    struct thread_account *thread;
    struct thread_device *thread_device;
    struct tally *tally; /* the thread's */
};
#define ACCOUNT_LANES   8u         /* by the low bits of the thread's id */
#define ACCOUNT_NO_LANE UINT64_MAX /* no key */

/* pair: device and, above it, kind */
static inline uint64_t account_lane_key(uint32_t thread_id, uint16_t pair)
{
    return (uint64_t)thread_id << 16 | pair;
}

/* What figures need beside the accounts (account_figures.c). */
struct watched_peaks { /* since the epoch began */
    uint64_t active_bytes, reserved_bytes;
};
struct watch {
    int is_on;      /* else the run's peaks are those that are asked for */
    uint64_t epoch; /* begun so far */
    unsigned device_end;
    struct watched_peaks types[ACCOUNT_TYPES]; /* of sums of devices; 0: of all */
    struct account_peaks run[ACCOUNT_TYPES];   /* the same over the run; 0: not used */
    struct watched {
        struct watched_peaks peaks;
        struct histogram_sums base; /* as the epoch began */
        uint8_t type, is_foreign;
    } devices[ACCOUNT_DEVICES];
};

/* Who freed what (account_freed.c). */
struct freed {
    struct freed_site *sites; /* by the freeing stack and the block's site */
    uint32_t count, capacity;
    struct map index;
    uint32_t *dirty; /* places of those that changed since they were written */
    uint32_t dirty_count, dirty_capacity;
    uint64_t written_ns;
    struct chunk_freer *chunk; /* of the chunk being filled */
    uint32_t chunk_count, chunk_room;
};

#define ACCOUNT_OOM_WAITS 64u

struct account {
    struct store *store;
    struct account_options options;
    struct account_counts counts;
    uint64_t now_ns;      /* of the newest event */
    uint64_t event_count; /* in chunks, whether they are kept or not */

    struct device_account *devices[ACCOUNT_DEVICES];      /* NULL until used */
    struct process_account *processes[ACCOUNT_PROCESSES]; /* NULL: not running */
    struct account_lane lanes[ACCOUNT_LANES];
    struct thread_account **threads; /* by thread id */
    uint32_t thread_capacity;
    uint32_t *dirty_threads;
    uint32_t dirty_thread_count, dirty_thread_capacity;
    struct site_table sites;
    struct sampled sampled;
    struct largest largest;
    struct touches touches;
    struct names names;
    struct segment_rows segment_rows;
    uint64_t oom_rows, sample_rows, unmatched_rows;
    struct oom_wait { /* failures of a size on the host, until their process has as much in one block */
        uint64_t process_id, size_bytes;
        uint64_t first_row;
    } oom_waits[ACCOUNT_OOM_WAITS];
    uint32_t oom_wait_count;
    uint64_t oom_least_bytes; /* of them; UINT64_MAX: none */
    int teardown_moved;       /* since site_teardown was written */
    struct rows torn_rows;    /* its */
    struct rows timeline_rows;
    uint64_t searched_blocks; /* looking for a block by an address within it */

    struct worker *worker;
    struct chunk_codec *codec; /* of key frames */
    struct chunk_event *chunk; /* room for CHUNK_EVENTS; NULL: no events are kept */
    uint32_t chunk_fill;
    uint32_t chunk_id;         /* of the chunk being filled, from 1 */
    uint32_t chunk_first_kept; /* older ones are deleted */
    uint32_t chunk_written;    /* how many events of it are in the database already */
    uint64_t device_mask;
    struct chunk_delta *before; /* the sites that the chunk touched, as they were: chunk_touched of them */
    uint32_t chunk_touched;
    struct thread_before { /* the same of threads, of a kind or (KIND_all) a device */
        struct thread_device *device;
        struct chunk_thread was; /* rise_bytes: live bytes */
    } * threads_before;
    uint32_t thread_touched, thread_room;
    struct chunk_owner *owners; /* of what the chunk's events end: those that are not the event's own thread */
    uint32_t owner_count, owner_room;
    uint32_t last_tuples[4]; /* of the chunk's events, by the low bits of their ops; as in struct chunk_event */
    uint32_t tuples[CHUNK_TUPLES], tuple_count;
    struct short_chunk { /* chunks that ended before they were full: what came after them */
        uint64_t first_event;
        uint32_t chunk_id;
    } * short_chunks;
    uint32_t short_count, short_capacity;
    struct chunk_job { /* a chunk on its way to the database; the worker's while work is not idle */
        struct work work;
        int is_begun;
        struct chunk_codec *codec;
        struct chunk_event *spare;        /* where a full chunk's events lie, and the next ones may when it is done */
        const struct chunk_event *events; /* spare or, of a partial chunk, those of chunk */
        struct chunk_delta *deltas;
        uint32_t count, delta_count, chunk_id;
        uint64_t first_event, device_mask;
        struct chunk_freer *freers; /* index ascending */
        uint32_t freer_count, freer_room;
        uint64_t *numbers; /* room for those of freers */
        struct buf encoded, encoded_deltas, encoded_sums, encoded_freers;
        struct chunk_sums sums;
        uint32_t thread_room, size_room, owner_room; /* of these */
    } job;
    struct buf encoded;
    struct keyframes keyframes;
    struct watch watch;
    struct freed freed;
    struct started {    /* when the accounts began anew last; all zero: never */
        uint64_t ns;    /* older blocks are inherited */
        uint64_t event; /* the number of the first event since */
        int moved;      /* site_start is to be written */
        struct site_start {
            uint64_t left_bytes; /* of what the site inherited: gone again, before what counts as the end */
            uint64_t left_count;
            int moved; /* its row is to be written */
        } * sites;     /* by id; NULL: never */
        uint32_t site_capacity;
    } started;
};

/* account_open.c */
struct device_account *account_device(struct account *a, unsigned device); /* creates it */
struct kind_account *account_kind(struct device_account *d, unsigned kind);
struct process_account *account_process(struct account *a, unsigned process_id);
struct process_device *account_process_device(struct account *a, unsigned process_id, unsigned device);
void account_seal(struct account *a); /* all peaks */

/* account.c */
/* Before site s changes. */
void account_touch_site(struct account *a, struct site *s, uint32_t id);
/* Appends to the chunk; time, thread and process are e's. The event's accounting must be done. */
void account_keep(struct account *a, const struct event *e, unsigned op, uint64_t address, uint64_t size_bytes,
                  uint32_t site_id, unsigned device, unsigned kind, unsigned match);
unsigned account_space(unsigned kind); /* of live.h */

/* account_rare.c */
void account_rare(struct account *a, const struct event *e); /* neither a birth nor a death */
void account_reserved_change(struct account *a, struct device_account *d, struct kind_account *k, int64_t bytes);
/* The same for what is only sampled (glibc's heap). */
void account_reserved_sampled(struct account *a, struct device_account *d, struct kind_account *k, int64_t change);
/* A new segment, or (EVENT_SEGMENT_FREE) the end of any part of some. */
void account_segment(struct account *a, const struct event *e, int is_counted);

/* account_anew.c */
/* An inherited block, or a part of one, leaves; before that. */
void account_inherited_left(struct account *a, const struct process_account *p, const struct live_block *b,
                            uint64_t count);
void account_started_write(struct account *a);

/* account_heap.c: reserved bytes of glibc's heaps */
/* A smaller block has no mapping of its own: M_MMAP_THRESHOLD is of the block with its size, rounded up to 16 bytes. */
#define ACCOUNT_MAPPED_LEAST ((128u << 10) - 8 - 15)
void account_reserved_sample(struct account *a, const struct event *e);
void account_heap_at(struct account *a, const struct event *e);
void account_heap_asks(struct account *a, const struct event *e);
/* As a process ends: what is live there since before glibc was asked last was in use then, or freed past us. */
void account_heap_end(struct account *a, const struct process_account *p);
/* A block of the host's heaps of at least ACCOUNT_MAPPED_LEAST is born (1) or dies (-1). */
void account_large_block(struct account *a, struct device_account *d, struct kind_account *k, unsigned process_id,
                         uint64_t address, uint64_t size_bytes, int sign);

/* account_parts.c: blocks that lost a part (maps), and have several, maybe, each with an entry in the live table */
struct part_block {      /* what a part is of */
    uint64_t size_bytes; /* asked for */
    uint64_t address;    /* where it began */
    uint32_t part_count; /* that are left */
    uint32_t pass;       /* of account_parts_pass, that saw it last */
};
void account_split(struct account *a, const struct event *e);
void account_part_free(struct account *a, const struct event *e);
/* The block of which this entry is a part; NULL: it is whole. Good until the next split. */
struct part_block *account_part_of(const struct process_account *p, const struct live_block *b);
/* A block that lives at the end, of a run or of a part of it, for the table of the largest ones. */
void account_offer_live(struct account *a, const struct process_account *process, uint16_t process_id,
                        const struct live_block *b);
/* What is the same of all parts of a block, and of no other block that lives: its own key, where it is whole. */
uint64_t account_block_key(const struct process_account *p, const struct live_block *b);
/* The accounts of a part that leaves; the live table is the caller's. */
void account_part_leave(struct account *a, const struct event *e, struct process_account *p,
                        const struct live_block *b);
/* For counting blocks by their entries: a new pass, in which account_part_is_first says 1 once for each block. */
void account_parts_pass(struct process_account *p);
int account_part_is_first(const struct process_account *p, const struct live_block *b);
void account_parts_close(struct process_account *p);

/* account_device.c */
void account_free_requested(struct account *a, const struct event *e);
void account_unpend(struct device_account *d, const struct live_block *b); /* before a requested block leaves */
void account_to_segment(struct account *a, const struct event *e);
/* The free of a block that has become a segment ends that. Returns 0 where it is none. */
int account_free_moved(struct account *a, const struct event *e);
void account_device_used(struct account *a, const struct event *e);

/* account_freed.c */
/* Before a block, or a part of one, leaves: by the stack that e has. is_last: it has no other part. */
void account_freed(struct account *a, const struct event *e, const struct live_block *b, unsigned is_last);
/* The same of an event without sums: its stack alone (0: none), before account_keep. */
void account_freed_event(struct account *a, uint32_t stack_id);
void account_freed_write(struct account *a, int last);
void account_freed_close(struct account *a);

/* account_figures.c */
void account_watch_device(struct account *a, unsigned device); /* is new */
/* After a rise of the device's bytes that may be a new peak. */
void account_watch(struct account *a, struct device_account *d);
void account_figures_anew(struct account *a); /* before the accounts begin anew: the epoch goes on */

/* account_thread.c */
struct thread_device *account_thread_device(struct account *a, uint32_t thread_id, unsigned device);
struct tally *account_thread_tally(struct thread_device *t, unsigned kind);
/* Before a tally of kind k of device d changes. */
void account_thread_touch(struct account *a, uint32_t thread_id, struct thread_device *t, unsigned kind);
void account_thread_dirty(struct account *a, uint32_t thread_id);
void account_threads_write(struct account *a, int peaks_moved);
void account_threads_close(struct account *a);

/* account_chunk.c */
void account_chunk_open(struct account *a);
void account_chunk_close(struct account *a);
void account_chunk_tuple(struct account *a, uint32_t tuple); /* of the event just added, another than that before */
void account_chunk_touch(struct account *a, struct site *s, uint32_t id); /* before its first change in the chunk */
/* The same of a thread's tally of a kind. */
void account_chunk_touch_thread(struct account *a, uint32_t thread_id, struct thread_device *t, unsigned kind);
/* The block that ends with the next event was not allocated by the event's thread. */
void account_chunk_owner(struct account *a, uint32_t thread_id);
void account_chunk_full(struct account *a);    /* writes the chunk and begins the next */
void account_chunk_partial(struct account *a); /* begins to write what there is; it will be written again */
void account_chunk_stored(struct account *a);  /* waits until all that was begun is in the database */

/* account_end.c */
void account_process_end(struct account *a, const struct event *e);
void account_teardown(struct account *a, const struct event *e);
void account_teardown_write(struct account *a);
void account_teardown_anew(struct account *a); /* after the tallies began anew */

/* account_write.c */
void account_write(struct account *a, int last);
void account_write_end(struct account *a); /* the same with all that is written last, but key frames */
void account_oom(struct account *a, const struct event *e);
void account_unmatched(struct account *a, const struct event *e); /* the free of what is no live block */
void account_oom_had(struct account *a, const struct event *e);   /* at least oom_least_bytes were allocated */

#endif
