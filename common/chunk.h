/*
 * chunk.h: compressed columns: what event_chunk.data, event_chunk.site_delta, chunk_sum.data, keyframe.data and
 * packed.data hold (docs/format.md). Writer: the collector; readers: reports and the v_event virtual table. A chunk
 * stands alone: it can be read without any other. Decoding treats the bytes as hostile.
 */
#ifndef MEMPROF_CHUNK_H
#define MEMPROF_CHUNK_H

#include "buf.h"

#include <stddef.h>
#include <stdint.h>

#define CHUNK_EVENTS  65536u
#define CHUNK_NUMBERS 65536u
#define CHUNK_TUPLES  256u /* different combinations of op, hook, device and kind in a chunk, at most */

/* The operations of v_event. */
enum chunk_op {
#define X(name) CHUNK_##name,
#include "chunk_ops.def"
#undef X
    CHUNK_OP_COUNT
};

/* Whether the op brings a block. */
static inline int chunk_op_is_birth(unsigned op)
{
    return op == CHUNK_alloc || op == CHUNK_realloc_alloc;
}

/* Whether the op takes one block away. */
static inline int chunk_op_is_death(unsigned op)
{
    return op == CHUNK_free || op == CHUNK_realloc_free || op == CHUNK_to_segment;
}

/* Whether bytes leave with it; blocks do, too, but with cut. */
static inline int chunk_op_is_loss(unsigned op)
{
    return chunk_op_is_death(op) || op == CHUNK_end || op == CHUNK_cut;
}

/* Whether chunk_free has a number for it. */
static inline int chunk_op_has_freer(unsigned op)
{
    return op == CHUNK_free || op == CHUNK_realloc_free || op == CHUNK_cut || op == CHUNK_free_requested;
}

/* One event as accounted: frees carry what is known of their block. */
struct chunk_event {
    uint64_t time_ns;
    uint64_t address;
    uint64_t size_bytes;
    uint32_t site_id;   /* the block's site, for frees too; 0: unknown */
    uint32_t thread_id; /* the thread that did it */
    uint16_t process_id;
    uint8_t op;     /* enum chunk_op; with the next three as they lie one number, the event's tuple */
    uint8_t hook;   /* hook_id */
    uint8_t device; /* device_id */
    uint8_t kind;   /* index in the table of kinds, kind.h */
    uint16_t match; /* frees: index in this chunk of the block's allocation, when it is there; else 0. To the encoder a
                       hint, which it verifies; 0 costs space only */
};

/* What tells blocks at one address apart: of several processes, and of kinds, as an allocator's first block may be
 * where its segment is. */
static inline uint32_t chunk_event_space(const struct chunk_event *e)
{
    return (uint32_t)e->process_id << 8 | e->kind;
}

/* What one chunk did to one site. */
struct chunk_delta {
    uint32_t site_id;
    uint32_t alloc_count;
    uint32_t free_count;
    uint32_t temporary_count;
    uint64_t alloc_bytes;
    uint64_t free_bytes;
    uint64_t rise_bytes; /* highest live bytes of the site within the chunk, less those at its start; at least 0 */
};

/* A site in a key frame. */
struct chunk_live {
    uint32_t site_id;
    uint32_t pad;
    uint64_t live_count;
    uint64_t live_bytes;
};

/* What an event did to the live bytes of its site. */
struct chunk_change {
    uint32_t site_id;
    uint32_t site_number; /* in the chunk, from 1, at most CHUNK_EVENTS */
    int64_t bytes;        /* negative where a block goes */
};

/* What one chunk did to what a thread allocated of a kind of a device. Of kind KIND_all only rise_bytes, of the whole
 * device, where that is not the rise of a kind alone. */
struct chunk_thread {
    uint32_t thread_id;
    uint8_t device, kind;
    uint64_t alloc_count, alloc_bytes, left_count, left_bytes, temporary_count;
    uint64_t rise_bytes; /* as of a site */
};

/* What one chunk did to the blocks of a class of sizes; differences, which wrap where they are negative. */
struct chunk_size {
    uint8_t device, kind, class; /* class 0: no bytes; n: from 2^(n-1) on */
    uint64_t alloc_count, alloc_bytes, free_count, temporary_count;
};
#define CHUNK_SIZE_CLASSES 65u

/* Who allocated the block that leaves with an event, where that is not the event's thread nor an allocation of this
 * chunk. */
struct chunk_owner {
    uint32_t index; /* of the event, in the chunk */
    uint32_t thread_id;
};

/* Who frees the block that leaves with an event. */
struct chunk_freer {
    uint32_t index; /* of the event, in the chunk */
    uint32_t stack_id;
};

struct chunk_sums { /* chunk_sum.data */
    struct chunk_thread *threads;
    struct chunk_size *sizes;
    struct chunk_owner *owners; /* index ascending */
    uint32_t thread_count, size_count, owner_count;
};

struct chunk_codec; /* buffers and zstd contexts, reused over calls; one thread at a time */
struct chunk_codec *chunk_codec_open(void);
void chunk_codec_close(struct chunk_codec *codec);

/* Encode: append to out. count <= CHUNK_EVENTS (key frames: 2^24 sites), times never decrease, sizes below 2^63. Return
 * 0 or -ENOMEM/-EFBIG. */
int chunk_encode_events(struct chunk_codec *codec, const struct chunk_event *events, size_t count, struct buf *out);
int chunk_encode_deltas(struct chunk_codec *codec, const struct chunk_delta *deltas, size_t count, struct buf *out);
int chunk_encode_live(struct chunk_codec *codec, const struct chunk_live *sites, size_t count, struct buf *out);
int chunk_encode_sums(struct chunk_codec *codec, const struct chunk_sums *sums, struct buf *out);
/* Of packed.data: at most CHUNK_NUMBERS. */
int chunk_encode_numbers(struct chunk_codec *codec, const uint64_t *values, size_t count, struct buf *out);

/* Decode into an array owned by codec, valid until its next call. Return the count, or -EBADMSG when the bytes are
 * damaged (checksum, lengths, values out of range). */
long chunk_decode_events(struct chunk_codec *codec, const void *data, size_t length, const struct chunk_event **events);
/* The operations that a chunk of events has, a bit each (1 << CHUNK_alloc, ...), from its first bytes: 4096 are enough.
 * -EBADMSG also where they are not. */
long chunk_decode_ops(struct chunk_codec *codec, const void *data, size_t length);
/* Of a chunk of events only what changes live bytes, in order: takes about half the time. */
long chunk_decode_changes(struct chunk_codec *codec, const void *data, size_t length,
                          const struct chunk_change **changes);
long chunk_decode_deltas(struct chunk_codec *codec, const void *data, size_t length, const struct chunk_delta **deltas);
long chunk_decode_live(struct chunk_codec *codec, const void *data, size_t length, const struct chunk_live **sites);
/* 0, or as the others. */
int chunk_decode_sums(struct chunk_codec *codec, const void *data, size_t length, struct chunk_sums *sums);
long chunk_decode_numbers(struct chunk_codec *codec, const void *data, size_t length, const uint64_t **values);
long chunk_count_numbers(const void *data, size_t length); /* how many it says to have: nothing is decoded */

#endif
