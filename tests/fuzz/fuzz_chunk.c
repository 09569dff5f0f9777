/*
 * The decoders of event_chunk.data, site_delta, chunk_sum.data and keyframe.data on hostile bytes: no crash, and what
 * they return is in range. The first byte chooses the decoder. Bytes that zstd must accept first would stop a fuzzer at
 * once, so it also builds frames itself: when the first byte has its high bit set, the rest is split into streams,
 * which are packed before they are decoded.
 */
#include "../../common/chunk_stream.h"

#include "../../common/kind.h"

#include <stdlib.h>

static struct chunk_codec *codec;
static volatile uint64_t sink;

static void check_events(const void *data, size_t length)
{
    const struct chunk_event *events;
    long count = chunk_decode_events(codec, data, length, &events);
    uint64_t before_ns = 0;
    for (long i = 0; i < count; i++) {
        if (events[i].op >= CHUNK_OP_COUNT || events[i].kind >= KIND_COUNT || events[i].time_ns < before_ns ||
            (events[i].match && events[i].match >= i))
            abort();
        before_ns = events[i].time_ns;
        sink += events[i].address + events[i].size_bytes + events[i].site_id;
    }
    if (count > (long)CHUNK_EVENTS)
        abort();
    const struct chunk_change *changes;
    long changed = chunk_decode_changes(codec, data, length, &changes);
    if (changed > (long)CHUNK_EVENTS || (count >= 0 && changed < 0))
        abort();
    for (long i = 0; i < changed; i++) {
        if (!changes[i].site_number || changes[i].site_number > CHUNK_EVENTS)
            abort();
        sink += changes[i].site_id + (uint64_t)changes[i].bytes;
    }
}

static void check_deltas(const void *data, size_t length)
{
    const struct chunk_delta *deltas;
    long count = chunk_decode_deltas(codec, data, length, &deltas);
    for (long i = 0; i < count; i++)
        sink += deltas[i].rise_bytes + deltas[i].site_id;
}

static void check_live(const void *data, size_t length)
{
    const struct chunk_live *live;
    long count = chunk_decode_live(codec, data, length, &live);
    for (long i = 0; i < count; i++)
        sink += live[i].live_bytes + live[i].site_id;
}

static void check_sums(const void *data, size_t length)
{
    struct chunk_sums sums;
    if (chunk_decode_sums(codec, data, length, &sums) != 0)
        return;
    for (uint32_t i = 0; i < sums.thread_count; i++)
        if (sums.threads[i].kind > KIND_all)
            abort();
    for (uint32_t i = 0; i < sums.size_count; i++)
        if (sums.sizes[i].kind >= KIND_COUNT || sums.sizes[i].class >= CHUNK_SIZE_CLASSES)
            abort();
    for (uint32_t i = 0; i < sums.owner_count; i++)
        if (sums.owners[i].index >= CHUNK_EVENTS || (i && sums.owners[i].index <= sums.owners[i - 1].index))
            abort();
}

/* Two bytes of count, then the streams: a length byte and that many bytes each. */
static int build(const uint8_t *data, size_t length, const char *magic, unsigned streams, struct buf *out)
{
    if (length < 2)
        return -1;
    size_t count = data[0] | (size_t)data[1] << 8;
    const uint8_t *at = data + 2, *end = data + length;
    for (unsigned i = 0; i < streams; i++) {
        size_t n = at < end ? *at++ : 0;
        if (n > (size_t)(at < end ? end - at : 0))
            n = at < end ? (size_t)(end - at) : 0;
        if (stream_reserve(&codec->streams[i], n ? n : 1) != 0)
            return -1;
        memcpy(codec->streams[i].data, at, n);
        codec->streams[i].length = n;
        at += n;
    }
    return frame_pack(codec, magic, count, streams, 0, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static const struct {
        const char *magic;
        unsigned streams;
        void (*check)(const void *data, size_t length);
    } kinds[] = {
        {"MPCE", 40, check_events}, {"MPCD", 28, check_deltas}, {"MPCL", 12, check_live}, {"MPCS", 3, check_sums}};
    if (!codec)
        codec = chunk_codec_open();
    if (!codec || !length)
        return 0;
    unsigned kind = (data[0] & 0x7f) >= 0x7c ? 3 : (data[0] & 0x7f) % 3;
    if (data[0] & 0x80) {
        struct buf out = BUF(1 << 24);
        if (build(data + 1, length - 1, kinds[kind].magic, kinds[kind].streams, &out) == 0)
            kinds[kind].check(out.data, out.length);
        buf_free(&out);
    } else {
        kinds[kind].check(data + 1, length - 1);
    }
    return 0;
}
