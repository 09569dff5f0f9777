/* zstd here, in common/: writer and readers of chunks sit on both sides of the layers, and a codec without its
 * compressor would have to be told of one by each of them. */
#include "chunk.h"

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_c_literalCompressionMode */
#include "chunk_stream.h"

#include <errno.h>
#include <stdlib.h>

#define FRAME_VERSION    1u
#define FRAME_LEVEL      1  /* of zstd */
#define FRAME_MATCH      7  /* bytes that a repetition has at least: as small as with shorter ones, and sooner done */
#define NOISE_STEP       64 /* how much less often zstd looks for repetitions in noise */
#define LITERALS_HUFFMAN 1  /* zstd 1.5: ZSTD_ps_enable, 1.4: ZSTD_lcm_huffman */
#define PAGE_BYTES       4096u
#define LINE_BYTES       64u

struct frame_header {
    char magic[4];
    uint8_t version;
    uint8_t stream_count;
    uint16_t zero;
    uint32_t count;
};

struct frame_entry {
    uint32_t raw_bytes;
    uint32_t packed_bytes; /* 0 when raw_bytes is */
};

struct chunk_codec *chunk_codec_open(void)
{
    struct chunk_codec *codec = calloc(1, sizeof *codec);
    if (!codec)
        return NULL;
    codec->pack = ZSTD_createCCtx();
    codec->unpack = ZSTD_createDCtx();
    if (!codec->pack || !codec->unpack) {
        chunk_codec_close(codec);
        return NULL;
    }
    ZSTD_CCtx_setParameter(codec->pack, ZSTD_c_compressionLevel, FRAME_LEVEL);
    ZSTD_CCtx_setParameter(codec->pack, ZSTD_c_minMatch, FRAME_MATCH);
    ZSTD_CCtx_setParameter(codec->pack, ZSTD_c_checksumFlag, 1);
    /* With a step zstd leaves out entropy coding as well, were it not told. */
    codec->packs_noise =
        !ZSTD_isError(ZSTD_CCtx_setParameter(codec->pack, ZSTD_c_literalCompressionMode, LITERALS_HUFFMAN));
    return codec;
}

void chunk_codec_close(struct chunk_codec *codec)
{
    if (!codec)
        return;
    ZSTD_freeCCtx(codec->pack);
    ZSTD_freeDCtx(codec->unpack);
    for (unsigned i = 0; i < STREAM_MAX; i++)
        free(codec->streams[i].base);
    chunk_events_state_free(codec->events);
    free(codec->decoded);
    free(codec);
}

int stream_reserve(struct stream *s, size_t length)
{
    s->length = 0;
    if (length <= s->capacity)
        return 0;
    free(s->base);
    s->capacity = 0;
    /* Streams are written side by side: were they to begin at the same offset in a page, as large blocks do, they would
     * compete for the same few lines of the cache. */
    s->base = malloc(length + PAGE_BYTES);
    if (!s->base)
        return -ENOMEM;
    s->data = s->base + (uintptr_t)s / sizeof *s * LINE_BYTES % PAGE_BYTES;
    s->capacity = length;
    return 0;
}

int column_begin_write(struct column *c, struct stream *streams, size_t count)
{
    for (unsigned i = 0; i < COLUMN_STREAMS; i++) {
        if (stream_reserve(&streams[i], i == COLUMN_LONG ? count * 8 + 8 : count + 1) != 0)
            return -ENOMEM;
        c->at[i] = streams[i].data;
    }
    return 0;
}

void column_end_write(const struct column *c, struct stream *streams)
{
    for (unsigned i = 0; i < COLUMN_STREAMS; i++)
        streams[i].length = (size_t)(c->at[i] - streams[i].data);
}

void column_begin_read(struct column *c, const struct stream *streams)
{
    for (unsigned i = 0; i < COLUMN_STREAMS; i++) {
        c->at[i] = streams[i].data;
        c->end[i] = streams[i].length ? streams[i].data + streams[i].length : streams[i].data;
    }
}

int column_is_read(const struct column *c)
{
    for (unsigned i = 0; i < COLUMN_STREAMS; i++)
        if (c->at[i] != c->end[i])
            return 0;
    return 1;
}

void *codec_room(struct chunk_codec *codec, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, size, &bytes))
        return NULL;
    if (bytes > codec->decoded_capacity) {
        free(codec->decoded);
        codec->decoded_capacity = 0;
        codec->decoded = malloc(bytes);
        if (!codec->decoded)
            return NULL;
        codec->decoded_capacity = bytes;
    }
    return codec->decoded;
}

size_t stream_pack(struct chunk_codec *codec, const struct stream *s, int is_noise, void *out, size_t room)
{
    if (codec->packs_noise)
        ZSTD_CCtx_setParameter(codec->pack, ZSTD_c_targetLength, is_noise ? NOISE_STEP : 0);
    return ZSTD_compress2(codec->pack, out, room, s->data, s->length);
}

int frame_pack(struct chunk_codec *codec, const char magic[4], size_t count, unsigned stream_count, uint64_t noise,
               struct buf *out)
{
    size_t room = sizeof(struct frame_header) + stream_count * sizeof(struct frame_entry);
    for (unsigned i = 0; i < stream_count; i++)
        room += codec->streams[i].length ? ZSTD_compressBound(codec->streams[i].length) : 0;
    char *start = buf_room(out, room);
    if (!start)
        return -EFBIG;
    struct frame_header header = {
        .version = FRAME_VERSION, .stream_count = (uint8_t)stream_count, .count = (uint32_t)count};
    memcpy(header.magic, magic, 4);
    memcpy(start, &header, sizeof header);
    char *entries = start + sizeof header;
    char *at = entries + stream_count * sizeof(struct frame_entry);
    for (unsigned i = 0; i < stream_count; i++) {
        struct stream *s = &codec->streams[i];
        struct frame_entry entry = {.raw_bytes = (uint32_t)s->length};
        if (s->length) {
            size_t packed = stream_pack(codec, s, noise >> i & 1, at, (size_t)(start + room - at));
            if (ZSTD_isError(packed))
                return -ENOMEM;
            entry.packed_bytes = (uint32_t)packed;
            at += packed;
        }
        memcpy(entries + i * sizeof entry, &entry, sizeof entry);
    }
    out->length += (size_t)(at - start);
    out->data[out->length] = 0;
    return 0;
}

long frame_count(const char magic[4], size_t count_max, unsigned stream_count, const void *data, size_t length)
{
    struct frame_header header;
    if (!data || length < sizeof header + stream_count * sizeof(struct frame_entry))
        return -EBADMSG;
    memcpy(&header, data, sizeof header);
    if (memcmp(header.magic, magic, 4) != 0 || header.version != FRAME_VERSION || header.stream_count != stream_count ||
        header.zero != 0 || header.count > count_max)
        return -EBADMSG;
    return (long)header.count;
}

long frame_unpack(struct chunk_codec *codec, const char magic[4], size_t count_max, unsigned stream_count,
                  uint64_t wanted, const void *data, size_t length)
{
    const size_t entries_bytes = stream_count * sizeof(struct frame_entry), begin = sizeof(struct frame_header);
    const long count = frame_count(magic, count_max, stream_count, data, length);
    if (count < 0)
        return count;
    const char *entries = (const char *)data + begin;
    const char *at = entries + entries_bytes, *end = (const char *)data + length;
    for (unsigned i = 0; i < stream_count; i++) {
        struct stream *s = &codec->streams[i];
        struct frame_entry entry;
        memcpy(&entry, entries + i * sizeof entry, sizeof entry);
        s->length = 0;
        if (!entry.raw_bytes && !entry.packed_bytes)
            continue;
        /* No stream is longer than two long values an event and the table of events; checked before memory is asked
         * for */
        size_t limit = (size_t)count * 16 + 2048;
        if (!entry.raw_bytes || entry.raw_bytes > limit || entry.packed_bytes > (size_t)(end - at))
            return -EBADMSG;
        if (!(wanted >> i & 1)) {
            at += entry.packed_bytes;
            continue;
        }
        if (stream_reserve(s, entry.raw_bytes) != 0)
            return -ENOMEM;
        size_t raw = ZSTD_decompressDCtx(codec->unpack, s->data, entry.raw_bytes, at, entry.packed_bytes);
        if (ZSTD_isError(raw) || raw != entry.raw_bytes)
            return -EBADMSG;
        s->length = raw;
        at += entry.packed_bytes;
    }
    return at == end ? count : -EBADMSG;
}

int frame_unpack_first(struct chunk_codec *codec, const char magic[4], unsigned stream_count, const void *data,
                       size_t length)
{
    struct frame_header header;
    struct frame_entry entry;
    struct stream *s = &codec->streams[0];
    const size_t begin = sizeof header + stream_count * sizeof entry;
    if (!data || length < begin)
        return -EBADMSG;
    memcpy(&header, data, sizeof header);
    memcpy(&entry, (const char *)data + sizeof header, sizeof entry);
    if (memcmp(header.magic, magic, 4) != 0 || header.version != FRAME_VERSION || header.stream_count != stream_count ||
        !entry.raw_bytes || entry.raw_bytes > header.count * 16ull + 2048 || entry.packed_bytes > length - begin)
        return -EBADMSG;
    if (stream_reserve(s, entry.raw_bytes) != 0)
        return -ENOMEM;
    s->length =
        ZSTD_decompressDCtx(codec->unpack, s->data, entry.raw_bytes, (const char *)data + begin, entry.packed_bytes);
    return s->length == entry.raw_bytes ? 0 : -EBADMSG;
}

/* Deltas and key frames: one column a field, the site as the difference to the one before. */
enum {
    DELTA_SITE,
    DELTA_ALLOC_COUNT,
    DELTA_FREE_COUNT,
    DELTA_TEMPORARY,
    DELTA_ALLOC_BYTES,
    DELTA_FREE_BYTES,
    DELTA_RISE,
    DELTA_COLUMNS
};
enum { LIVE_SITE, LIVE_COUNT, LIVE_BYTES, LIVE_COLUMNS };

static const char DELTA_MAGIC[4] = {'M', 'P', 'C', 'D'};
static const char LIVE_MAGIC[4] = {'M', 'P', 'C', 'L'};

static int columns_begin_write(struct chunk_codec *codec, struct column *columns, unsigned column_count, size_t count)
{
    for (unsigned i = 0; i < column_count; i++)
        if (column_begin_write(&columns[i], &codec->streams[i * COLUMN_STREAMS], count) != 0)
            return -ENOMEM;
    return 0;
}

static int columns_pack(struct chunk_codec *codec, struct column *columns, unsigned column_count, const char magic[4],
                        size_t count, struct buf *out)
{
    for (unsigned i = 0; i < column_count; i++)
        column_end_write(&columns[i], &codec->streams[i * COLUMN_STREAMS]);
    return frame_pack(codec, magic, count, column_count * COLUMN_STREAMS, 0, out);
}

static long columns_unpack(struct chunk_codec *codec, struct column *columns, unsigned column_count,
                           const char magic[4], size_t count_max, const void *data, size_t length)
{
    long count = frame_unpack(codec, magic, count_max, column_count * COLUMN_STREAMS, FRAME_ALL, data, length);
    for (unsigned i = 0; count >= 0 && i < column_count; i++) {
        column_begin_read(&columns[i], &codec->streams[i * COLUMN_STREAMS]);
        if (codec->streams[i * COLUMN_STREAMS + COLUMN_CONTROL].length != (size_t)count)
            return -EBADMSG;
    }
    return count;
}

static int columns_are_read(const struct column *columns, unsigned column_count)
{
    for (unsigned i = 0; i < column_count; i++)
        if (!column_is_read(&columns[i]))
            return 0;
    return 1;
}

/* The site of a row; 0 or -1. */
static int site_get(struct column *c, uint32_t *site)
{
    uint64_t value;
    if (column_get(c, &value) != 0)
        return -1;
    *site += (uint32_t)unzigzag(value);
    return value <= UINT32_MAX * 2ull + 1 ? 0 : -1;
}

static void site_put(struct column *c, uint32_t *before, uint32_t site)
{
    column_put(c, zigzag((uint64_t)site - *before));
    *before = site;
}

static int count_get(struct column *c, uint32_t *count)
{
    uint64_t value;
    if (column_get(c, &value) != 0 || value > UINT32_MAX)
        return -1;
    *count = (uint32_t)value;
    return 0;
}

int chunk_encode_deltas(struct chunk_codec *codec, const struct chunk_delta *deltas, size_t count, struct buf *out)
{
    struct column c[DELTA_COLUMNS];
    if (count > CHUNK_EVENTS)
        return -EFBIG;
    if (columns_begin_write(codec, c, DELTA_COLUMNS, count) != 0)
        return -ENOMEM;
    uint32_t site = 0;
    for (size_t i = 0; i < count; i++) {
        const struct chunk_delta *d = &deltas[i];
        site_put(&c[DELTA_SITE], &site, d->site_id);
        column_put(&c[DELTA_ALLOC_COUNT], d->alloc_count);
        column_put(&c[DELTA_FREE_COUNT], d->free_count);
        column_put(&c[DELTA_TEMPORARY], d->temporary_count);
        column_put(&c[DELTA_ALLOC_BYTES], d->alloc_bytes);
        column_put(&c[DELTA_FREE_BYTES], d->free_bytes);
        column_put(&c[DELTA_RISE], d->rise_bytes);
    }
    return columns_pack(codec, c, DELTA_COLUMNS, DELTA_MAGIC, count, out);
}

long chunk_decode_deltas(struct chunk_codec *codec, const void *data, size_t length, const struct chunk_delta **deltas)
{
    struct column c[DELTA_COLUMNS];
    long count = columns_unpack(codec, c, DELTA_COLUMNS, DELTA_MAGIC, CHUNK_EVENTS, data, length);
    if (count < 0)
        return count;
    struct chunk_delta *rows = codec_room(codec, (size_t)count, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    uint32_t site = 0;
    for (long i = 0; i < count; i++) {
        struct chunk_delta *d = &rows[i];
        if (site_get(&c[DELTA_SITE], &site) != 0 || count_get(&c[DELTA_ALLOC_COUNT], &d->alloc_count) != 0 ||
            count_get(&c[DELTA_FREE_COUNT], &d->free_count) != 0 ||
            count_get(&c[DELTA_TEMPORARY], &d->temporary_count) != 0 ||
            column_get(&c[DELTA_ALLOC_BYTES], &d->alloc_bytes) != 0 ||
            column_get(&c[DELTA_FREE_BYTES], &d->free_bytes) != 0 || column_get(&c[DELTA_RISE], &d->rise_bytes) != 0)
            return -EBADMSG;
        d->site_id = site;
    }
    *deltas = rows;
    return columns_are_read(c, DELTA_COLUMNS) ? count : -EBADMSG;
}

int chunk_encode_live(struct chunk_codec *codec, const struct chunk_live *sites, size_t count, struct buf *out)
{
    struct column c[LIVE_COLUMNS];
    if (count > STREAM_LIVE_MAX)
        return -EFBIG;
    if (columns_begin_write(codec, c, LIVE_COLUMNS, count) != 0)
        return -ENOMEM;
    uint32_t site = 0;
    for (size_t i = 0; i < count; i++) {
        site_put(&c[LIVE_SITE], &site, sites[i].site_id);
        column_put(&c[LIVE_COUNT], sites[i].live_count);
        column_put(&c[LIVE_BYTES], sites[i].live_bytes);
    }
    return columns_pack(codec, c, LIVE_COLUMNS, LIVE_MAGIC, count, out);
}

long chunk_decode_live(struct chunk_codec *codec, const void *data, size_t length, const struct chunk_live **sites)
{
    struct column c[LIVE_COLUMNS];
    long count = columns_unpack(codec, c, LIVE_COLUMNS, LIVE_MAGIC, STREAM_LIVE_MAX, data, length);
    if (count < 0)
        return count;
    struct chunk_live *rows = codec_room(codec, (size_t)count, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    uint32_t site = 0;
    for (long i = 0; i < count; i++) {
        if (site_get(&c[LIVE_SITE], &site) != 0 || column_get(&c[LIVE_COUNT], &rows[i].live_count) != 0 ||
            column_get(&c[LIVE_BYTES], &rows[i].live_bytes) != 0)
            return -EBADMSG;
        rows[i].site_id = site;
        rows[i].pad = 0;
    }
    *sites = rows;
    return columns_are_read(c, LIVE_COLUMNS) ? count : -EBADMSG;
}
