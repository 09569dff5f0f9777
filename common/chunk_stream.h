/*
 * chunk_stream.h: what chunk.c and chunk_events.c share, nobody else: byte streams, the coding of numbers into them,
 * and the frame that packs streams with zstd. docs/format.md describes the bytes.
 */
#ifndef MEMPROF_CHUNK_STREAM_H
#define MEMPROF_CHUNK_STREAM_H

#include "chunk.h"

#include <string.h>
#include <zstd.h>

#define STREAM_MAX      48u        /* streams in a frame */
#define STREAM_LIVE_MAX (1u << 24) /* sites in a key frame */

struct stream {
    uint8_t *base; /* owned */
    uint8_t *data; /* within base */
    size_t capacity;
    size_t length;
};

/*
 * A column of numbers is four streams, so that what is alike lies together: control bytes (small values and the
 * magnitude of others), low bytes, second bytes, and the long ones whole. control c < 192           the value itself
 *   192 <= c < 224            192 + (c - 192) * 2^8 + low
 *   224 <= c < 238            8384 + (c - 224) * 2^16 + second * 2^8 + low
 *   238 <= c < 244            c - 235 bytes of the long stream, least significant first
 */
enum { COLUMN_CONTROL, COLUMN_LOW, COLUMN_SECOND, COLUMN_LONG, COLUMN_STREAMS };
#define COLUMN_ONE       192u
#define COLUMN_TWO       224u
#define COLUMN_WIDE      238u
#define COLUMN_END       244u
#define COLUMN_ONE_BASE  192u
#define COLUMN_TWO_BASE  (COLUMN_ONE_BASE + ((COLUMN_TWO - COLUMN_ONE) << 8))
#define COLUMN_WIDE_BASE (COLUMN_TWO_BASE + ((COLUMN_WIDE - COLUMN_TWO) << 16))

/* Where to write or read next in each stream of a column. Writers have room for count values; readers check end. */
struct column {
    uint8_t *at[COLUMN_STREAMS];
    const uint8_t *end[COLUMN_STREAMS];
};

static inline void column_put_long(struct column *c, uint64_t value)
{
    unsigned bytes = (unsigned)(71 - __builtin_clzll(value)) / 8;
    *c->at[COLUMN_CONTROL]++ = (uint8_t)(COLUMN_WIDE + bytes - 3);
    memcpy(c->at[COLUMN_LONG], &value, 8);
    c->at[COLUMN_LONG] += bytes;
}

static inline void column_put_large(struct column *c, uint64_t value)
{
    if (value >= COLUMN_WIDE_BASE) {
        column_put_long(c, value);
        return;
    }
    uint64_t x = value - COLUMN_TWO_BASE;
    *c->at[COLUMN_CONTROL]++ = (uint8_t)(COLUMN_TWO + (x >> 16));
    *c->at[COLUMN_LOW]++ = (uint8_t)x;
    *c->at[COLUMN_SECOND]++ = (uint8_t)(x >> 8);
}

/* For columns in which values of one byte and of two follow each other as they like: without a branch between these, so
 * what is written too much is overwritten by the next value. */
static inline void column_put_mixed(struct column *c, uint64_t value)
{
    if (__builtin_expect(value >= COLUMN_TWO_BASE, 0)) {
        column_put_large(c, value);
        return;
    }
    unsigned one = value >= COLUMN_ONE_BASE, x = (unsigned)value - COLUMN_ONE_BASE;
    uint8_t *control = c->at[COLUMN_CONTROL], *low = c->at[COLUMN_LOW];
    c->at[COLUMN_CONTROL] = control + 1;
    c->at[COLUMN_LOW] = low + one;
    *control = (uint8_t)(one ? COLUMN_ONE + (x >> 8) : value);
    *low = (uint8_t)x;
}

/* For columns of mostly small values. */
static inline void column_put(struct column *c, uint64_t value)
{
    if (__builtin_expect(value < COLUMN_ONE_BASE, 1))
        *c->at[COLUMN_CONTROL]++ = (uint8_t)value;
    else
        column_put_mixed(c, value);
}

/* Returns 0, or -1 when a stream is exhausted or the control byte means nothing. */
static inline int column_get(struct column *c, uint64_t *value)
{
    if (__builtin_expect(c->at[COLUMN_CONTROL] >= c->end[COLUMN_CONTROL], 0))
        return -1;
    unsigned control = *c->at[COLUMN_CONTROL]++;
    if (__builtin_expect(control < COLUMN_ONE, 1)) {
        *value = control;
        return 0;
    }
    if (control < COLUMN_WIDE) {
        unsigned two = control >= COLUMN_TWO;
        if (c->at[COLUMN_LOW] >= c->end[COLUMN_LOW] || (two && c->at[COLUMN_SECOND] >= c->end[COLUMN_SECOND]))
            return -1;
        uint64_t low = *c->at[COLUMN_LOW]++;
        if (two)
            *value = COLUMN_TWO_BASE + ((uint64_t)(control - COLUMN_TWO) << 16) +
                     ((uint64_t)*c->at[COLUMN_SECOND]++ << 8) + low;
        else
            *value = COLUMN_ONE_BASE + ((uint64_t)(control - COLUMN_ONE) << 8) + low;
        return 0;
    }
    if (control >= COLUMN_END)
        return -1;
    unsigned bytes = control - COLUMN_WIDE + 3;
    if ((size_t)(c->end[COLUMN_LONG] - c->at[COLUMN_LONG]) < bytes)
        return -1;
    *value = 0;
    memcpy(value, c->at[COLUMN_LONG], bytes); /* little endian, as everything in the file */
    c->at[COLUMN_LONG] += bytes;
    return 0;
}

static inline uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

struct chunk_codec {
    ZSTD_CCtx *pack;
    ZSTD_DCtx *unpack;
    int packs_noise; /* zstd takes what noise is packed with */
    struct stream streams[STREAM_MAX];
    struct chunk_events_state *events; /* of chunk_events.c; NULL until used */
    void *decoded;                     /* what the last decode returned */
    size_t decoded_capacity;
};

/* Makes room for length bytes (contents are lost) and sets the length to 0. Returns 0 or -ENOMEM. */
int stream_reserve(struct stream *s, size_t length);

/* The streams of a column, begun for writing (room for count values) or for reading, and ended after writing. */
int column_begin_write(struct column *c, struct stream *streams, size_t count);
void column_end_write(const struct column *c, struct stream *streams);
void column_begin_read(struct column *c, const struct stream *streams);
int column_is_read(const struct column *c); /* everything was used */

/* Packs a stream with zstd into out; returns what ZSTD_compress2 returns. Of noise next to nothing repeats: only how
 * often each byte comes is made use of, in a third of the time. */
size_t stream_pack(struct chunk_codec *codec, const struct stream *s, int is_noise, void *out, size_t room);
/* Appends the frame of streams [0, stream_count) to out; bit i of noise: stream i is. Returns 0, -ENOMEM or -EFBIG. */
int frame_pack(struct chunk_codec *codec, const char magic[4], size_t count, unsigned stream_count, uint64_t noise,
               struct buf *out);
/* The reverse. Returns the count, at most count_max, or -EBADMSG / -ENOMEM. wanted: bit i: stream i is; others are left
 * empty. */
#define FRAME_ALL UINT64_MAX
long frame_unpack(struct chunk_codec *codec, const char magic[4], size_t count_max, unsigned stream_count,
                  uint64_t wanted, const void *data, size_t length);
/* The count alone, which the frame says: nothing is unpacked. */
long frame_count(const char magic[4], size_t count_max, unsigned stream_count, const void *data, size_t length);
/* The first stream alone, of the first length bytes of a frame. 0, -EBADMSG also where it is longer, or -ENOMEM. */
int frame_unpack_first(struct chunk_codec *codec, const char magic[4], unsigned stream_count, const void *data,
                       size_t length);
/* Room for count items of size bytes in codec->decoded; NULL without memory. */
void *codec_room(struct chunk_codec *codec, size_t count, size_t size);

void chunk_events_state_free(struct chunk_events_state *state);

#endif
