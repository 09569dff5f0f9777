/* What a chunk did by thread and by size, and who allocated what it frees: few numbers, so bytes of 7 bits each. */
#include "chunk_stream.h"
#include "kind.h"

#include <errno.h>

static const char SUMS_MAGIC[4] = {'M', 'P', 'C', 'S'};

enum { SUMS_NUMBERS, SUMS_GAPS, SUMS_OWNERS, SUMS_STREAMS };

#define NUMBER_BYTES   10u /* of 64 bits, at most */
#define HEAD_NUMBERS   3u
#define THREAD_NUMBERS 9u
#define SIZE_NUMBERS   7u
#define NUMBERS_MAX    (1u << 22)

static void put(struct stream *s, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        s->data[s->length++] = (uint8_t)(value | 128);
    s->data[s->length++] = (uint8_t)value;
}

static void put_thread(struct stream *s, const struct chunk_thread *t, uint32_t before)
{
    const uint64_t numbers[THREAD_NUMBERS] = {zigzag((uint64_t)t->thread_id - before),
                                              t->device,
                                              t->kind,
                                              t->alloc_count,
                                              t->alloc_bytes,
                                              zigzag(t->left_count - t->alloc_count),
                                              zigzag(t->left_bytes - t->alloc_bytes),
                                              t->temporary_count,
                                              t->rise_bytes};
    for (unsigned i = 0; i < THREAD_NUMBERS; i++)
        put(s, numbers[i]);
}

static void put_size(struct stream *s, const struct chunk_size *c)
{
    const uint64_t numbers[SIZE_NUMBERS] = {c->device,
                                            c->kind,
                                            c->class,
                                            zigzag(c->alloc_count),
                                            zigzag(c->alloc_bytes),
                                            zigzag(c->free_count - c->alloc_count),
                                            zigzag(c->temporary_count)};
    for (unsigned i = 0; i < SIZE_NUMBERS; i++)
        put(s, numbers[i]);
}

int chunk_encode_sums(struct chunk_codec *codec, const struct chunk_sums *sums, struct buf *out)
{
    const size_t numbers =
        HEAD_NUMBERS + (size_t)sums->thread_count * THREAD_NUMBERS + (size_t)sums->size_count * SIZE_NUMBERS;
    const size_t count = numbers + 2 * (size_t)sums->owner_count;
    struct stream *s = codec->streams;
    if (count > NUMBERS_MAX)
        return -EFBIG;
    if (stream_reserve(&s[SUMS_NUMBERS], numbers * NUMBER_BYTES) != 0 ||
        stream_reserve(&s[SUMS_GAPS], sums->owner_count * (size_t)NUMBER_BYTES + 1) != 0 ||
        stream_reserve(&s[SUMS_OWNERS], sums->owner_count * (size_t)NUMBER_BYTES + 1) != 0)
        return -ENOMEM;
    put(&s[SUMS_NUMBERS], sums->thread_count);
    put(&s[SUMS_NUMBERS], sums->size_count);
    put(&s[SUMS_NUMBERS], sums->owner_count);
    for (uint32_t i = 0; i < sums->thread_count; i++)
        put_thread(&s[SUMS_NUMBERS], &sums->threads[i], i ? sums->threads[i - 1].thread_id : 0);
    for (uint32_t i = 0; i < sums->size_count; i++)
        put_size(&s[SUMS_NUMBERS], &sums->sizes[i]);
    for (uint32_t i = 0; i < sums->owner_count; i++) {
        put(&s[SUMS_GAPS], sums->owners[i].index - (i ? sums->owners[i - 1].index : 0));
        put(&s[SUMS_OWNERS], zigzag((uint64_t)sums->owners[i].thread_id - (i ? sums->owners[i - 1].thread_id : 0)));
    }
    return frame_pack(codec, SUMS_MAGIC, count, SUMS_STREAMS, 0, out);
}

struct reader {
    const uint8_t *at, *end;
    int is_bad;
};

static struct reader read_stream(const struct stream *s)
{
    return (struct reader){s->data, s->length ? s->data + s->length : s->data, 0};
}

static uint64_t get(struct reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end)
            break;
        uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    r->is_bad = 1;
    return 0;
}

static uint32_t get_below(struct reader *r, uint64_t end)
{
    uint64_t value = get(r);
    if (value < end)
        return (uint32_t)value;
    r->is_bad = 1;
    return 0;
}

static void get_thread(struct reader *r, struct chunk_thread *t, uint32_t before)
{
    t->thread_id = before + (uint32_t)unzigzag(get(r));
    t->device = (uint8_t)get_below(r, 256);
    t->kind = (uint8_t)get_below(r, KIND_COUNT + 1);
    t->alloc_count = get(r);
    t->alloc_bytes = get(r);
    t->left_count = t->alloc_count + unzigzag(get(r));
    t->left_bytes = t->alloc_bytes + unzigzag(get(r));
    t->temporary_count = get(r);
    t->rise_bytes = get(r);
}

static void get_size(struct reader *r, struct chunk_size *c)
{
    c->device = (uint8_t)get_below(r, 256);
    c->kind = (uint8_t)get_below(r, KIND_COUNT);
    c->class = (uint8_t)get_below(r, CHUNK_SIZE_CLASSES);
    c->alloc_count = unzigzag(get(r));
    c->alloc_bytes = unzigzag(get(r));
    c->free_count = c->alloc_count + unzigzag(get(r));
    c->temporary_count = unzigzag(get(r));
}

static int get_owners(const struct stream *s, struct chunk_sums *sums)
{
    struct reader gaps = read_stream(&s[SUMS_GAPS]), owners = read_stream(&s[SUMS_OWNERS]);
    uint32_t index = 0, thread_id = 0;
    for (uint32_t i = 0; i < sums->owner_count; i++) {
        uint32_t gap = get_below(&gaps, CHUNK_EVENTS);
        index += gap;
        thread_id += (uint32_t)unzigzag(get(&owners));
        sums->owners[i] = (struct chunk_owner){index, thread_id};
        if (index >= CHUNK_EVENTS || (i && !gap))
            return -EBADMSG;
    }
    return gaps.is_bad || owners.is_bad || gaps.at != gaps.end || owners.at != owners.end ? -EBADMSG : 0;
}

/* The three arrays behind each other in what the codec has decoded. */
static int make_room(struct chunk_codec *codec, struct chunk_sums *sums)
{
    const size_t sizes_at = sums->thread_count * sizeof *sums->threads;
    const size_t owners_at = sizes_at + sums->size_count * sizeof *sums->sizes;
    char *room = codec_room(codec, owners_at + sums->owner_count * sizeof *sums->owners, 1);
    if (!room)
        return -ENOMEM;
    memset(room, 0, owners_at); /* between their fields, too */
    sums->threads = (void *)room;
    sums->sizes = (void *)(room + sizes_at);
    sums->owners = (void *)(room + owners_at);
    return 0;
}

int chunk_decode_sums(struct chunk_codec *codec, const void *data, size_t length, struct chunk_sums *sums)
{
    long count = frame_unpack(codec, SUMS_MAGIC, NUMBERS_MAX, SUMS_STREAMS, FRAME_ALL, data, length);
    *sums = (struct chunk_sums){0};
    if (count < (long)HEAD_NUMBERS)
        return count < 0 ? (int)count : -EBADMSG;
    struct reader r = read_stream(&codec->streams[SUMS_NUMBERS]);
    sums->thread_count = get_below(&r, NUMBERS_MAX);
    sums->size_count = get_below(&r, NUMBERS_MAX);
    sums->owner_count = get_below(&r, CHUNK_EVENTS + 1);
    if (r.is_bad || (uint64_t)count != HEAD_NUMBERS + (uint64_t)sums->thread_count * THREAD_NUMBERS +
                                           (uint64_t)sums->size_count * SIZE_NUMBERS + 2ull * sums->owner_count)
        return -EBADMSG;
    int rc = make_room(codec, sums);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < sums->thread_count; i++)
        get_thread(&r, &sums->threads[i], i ? sums->threads[i - 1].thread_id : 0);
    for (uint32_t i = 0; i < sums->size_count; i++)
        get_size(&r, &sums->sizes[i]);
    return r.is_bad || r.at != r.end ? -EBADMSG : get_owners(codec->streams, sums);
}
