#include "unpack.h"

#include "error.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <stdlib.h>

enum { IN_BYTES = 1 << 16, PEEK_BYTES = 64 };

enum packing { PLAIN, GZIP, ZSTD };

struct unpack {
    const struct unpack_source *source;
    uint8_t in[IN_BYTES]; /* from next to end: read, and not used */
    size_t next, end;
    uint8_t ahead[PEEK_BYTES]; /* unpacked by unpack_peek */
    size_t ahead_next, ahead_end;
    long ended; /* the source's: 1: at its end, or -errno */
    z_stream gzip;
    ZSTD_DStream *zstd;
    enum packing packing;
    int is_within; /* a member or a frame has begun, and has not ended */
    int is_done;   /* nothing more comes */
    int is_cut;
};

/* Whether there is a byte to use. */
static int fill(struct unpack *u)
{
    if (u->next < u->end)
        return 1;
    if (u->ended)
        return 0;
    long got = u->source->read(u->source->context, u->in, IN_BYTES);
    u->next = 0;
    u->end = got > 0 ? (size_t)got : 0;
    u->ended = got > 0 ? 0 : got ? got : 1;
    return got > 0;
}

/* Pipes give a byte at a time, maybe. */
static void fill_head(struct unpack *u, size_t most)
{
    while (u->end < most && !u->ended) {
        long got = u->source->read(u->source->context, u->in + u->end, IN_BYTES - u->end);
        u->end += got > 0 ? (size_t)got : 0;
        u->ended = got > 0 ? 0 : got ? got : 1;
    }
}

static int begins(const struct unpack *u, const char *magic, size_t length)
{
    return u->end - u->next >= length && memcmp(u->in + u->next, magic, length) == 0;
}

struct unpack *unpack_open(const struct unpack_source *source)
{
    struct unpack *u = xcalloc(1, sizeof *u);
    u->source = source;
    fill_head(u, 4);
    if (begins(u, "\x1f\x8b", 2) && inflateInit2(&u->gzip, MAX_WBITS + 16) == Z_OK)
        u->packing = GZIP;
    else if (begins(u, "\x28\xb5\x2f\xfd", 4) && (u->zstd = ZSTD_createDStream()))
        u->packing = ZSTD;
    return u;
}

void unpack_close(struct unpack *u)
{
    if (!u)
        return;
    if (u->packing == GZIP)
        inflateEnd(&u->gzip);
    ZSTD_freeDStream(u->zstd);
    free(u);
}

static long read_plain(struct unpack *u, void *data, size_t size)
{
    if (!fill(u))
        return 0;
    size_t count = u->end - u->next < size ? u->end - u->next : size;
    memcpy(data, u->in + u->next, count);
    u->next += count;
    return (long)count;
}

/* What comes after a member is the next one; anything else is no part of the file, as gzip sees it. */
static void next_member(struct unpack *u)
{
    u->is_within = 0;
    u->is_done = !fill(u) || u->in[u->next] != 0x1f || inflateReset(&u->gzip) != Z_OK;
}

static long read_gzip(struct unpack *u, void *data, size_t size)
{
    z_stream *s = &u->gzip;
    s->next_out = data;
    s->avail_out = (uInt)(size < UINT32_MAX ? size : UINT32_MAX);
    size = s->avail_out;
    while (s->avail_out == size && !u->is_done && fill(u)) {
        s->next_in = u->in + u->next;
        s->avail_in = (uInt)(u->end - u->next);
        u->is_within = 1;
        int rc = inflate(s, Z_NO_FLUSH);
        u->next = u->end - s->avail_in;
        if (rc == Z_STREAM_END)
            next_member(u);
        else if (rc != Z_OK && rc != Z_BUF_ERROR)
            return s->avail_out == size ? -EBADMSG : (long)(size - s->avail_out);
    }
    return (long)(size - s->avail_out);
}

static long read_zstd(struct unpack *u, void *data, size_t size)
{
    ZSTD_outBuffer out = {data, size, 0};
    while (out.pos == 0) {
        /* without input too: there may be more to give of what it has */
        int has_input = fill(u);
        ZSTD_inBuffer in = {u->in, u->end, u->next};
        size_t rc = ZSTD_decompressStream(u->zstd, &out, &in);
        if (ZSTD_isError(rc))
            return out.pos ? (long)out.pos : -EBADMSG;
        if (in.pos != u->next) /* else it only says that it could use more */
            u->is_within = rc != 0;
        u->next = in.pos;
        if (!has_input)
            break;
    }
    return (long)out.pos;
}

static long read_packed(struct unpack *u, void *data, size_t size)
{
    long got = u->packing == GZIP   ? read_gzip(u, data, size)
               : u->packing == ZSTD ? read_zstd(u, data, size)
                                    : read_plain(u, data, size);
    if (got)
        return got;
    if (u->ended < 0)
        return u->ended;
    u->is_cut = u->is_within;
    return 0;
}

long unpack_read(void *context, void *data, size_t size)
{
    struct unpack *u = context;
    size_t ahead = u->ahead_end - u->ahead_next;
    if (!size)
        return 0;
    if (!ahead)
        return read_packed(u, data, size);
    if (ahead > size)
        ahead = size;
    memcpy(data, u->ahead + u->ahead_next, ahead);
    u->ahead_next += ahead;
    return (long)ahead;
}

size_t unpack_peek(struct unpack *u, void *data, size_t size)
{
    long got = 1;
    size = size < PEEK_BYTES ? size : PEEK_BYTES;
    while (u->ahead_end < size && (got = read_packed(u, u->ahead + u->ahead_end, size - u->ahead_end)) > 0)
        u->ahead_end += (size_t)got;
    size = u->ahead_end < size ? u->ahead_end : size;
    memcpy(data, u->ahead, size);
    return size;
}

int unpack_is_cut(const struct unpack *u)
{
    return u->is_cut;
}

const char *unpack_name(const struct unpack *u)
{
    return u->packing == GZIP ? "gzip" : u->packing == ZSTD ? "zstd" : NULL;
}
