#include "account_private.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>

void account_chunk_open(struct account *a)
{
    a->codec = chunk_codec_open();
    if (!a->codec)
        bug("out of memory");
    a->chunk_id = a->chunk_first_kept = 1;
    a->encoded = (struct buf)BUF(1u << 30);
    a->encoded_deltas = (struct buf)BUF(1u << 30);
    if (a->options.aggregate)
        return;
    memset(a->last_tuples, 0xff, sizeof a->last_tuples);
    a->chunk = xmalloc(CHUNK_EVENTS * sizeof *a->chunk);
    a->before = xmalloc(CHUNK_EVENTS * sizeof *a->before);
    a->deltas = xmalloc(CHUNK_EVENTS * sizeof *a->deltas);
    a->chunk_codec = chunk_codec_open();
    if (!a->chunk_codec || chunk_events_begin(a->chunk_codec) != 0)
        bug("out of memory");
}

void account_chunk_close(struct account *a)
{
    chunk_codec_close(a->codec);
    chunk_codec_close(a->chunk_codec);
    buf_free(&a->encoded);
    buf_free(&a->encoded_deltas);
    free(a->short_chunks);
    free(a->chunk);
    free(a->before);
    free(a->deltas);
}

void account_chunk_touch(struct account *a, struct site *s, uint32_t id)
{
    const struct tally *t = &s->tally;
    s->chunk_id = a->chunk_id;
    s->chunk_high_bytes = tally_live_bytes(t);
    if (a->chunk)
        a->before[a->chunk_touched++] = (struct chunk_delta){.site_id = id,
                                                             .alloc_count = (uint32_t)t->alloc_count,
                                                             .free_count = (uint32_t)t->left_count,
                                                             .temporary_count = (uint32_t)t->temporary_count,
                                                             .alloc_bytes = t->alloc_bytes,
                                                             .free_bytes = t->left_bytes};
}

/* A chunk names each combination of op, hook, device and kind once, by a byte: with the last that there is a number
 * for, it ends. */
void account_chunk_tuple(struct account *a, uint32_t tuple)
{
    a->last_tuples[tuple & 3] = tuple;
    for (uint32_t i = 0; i < a->tuple_count; i++)
        if (a->tuples[i] == tuple)
            return;
    a->tuples[a->tuple_count++] = tuple;
    if (a->tuple_count < CHUNK_TUPLES || a->chunk_fill == CHUNK_EVENTS)
        return;
    if (a->short_count == a->short_capacity) {
        a->short_capacity = a->short_capacity ? a->short_capacity * 2 : 16;
        a->short_chunks = xrealloc(a->short_chunks, a->short_capacity * sizeof *a->short_chunks);
    }
    a->short_chunks[a->short_count++] = (struct short_chunk){a->event_count, a->chunk_id + 1};
    account_chunk_full(a);
}

uint32_t account_chunk_of(const struct account *a, uint64_t event)
{
    for (uint32_t i = a->short_count; i-- > 0;)
        if (a->short_chunks[i].first_event <= event)
            return a->short_chunks[i].chunk_id + (uint32_t)((event - a->short_chunks[i].first_event) / CHUNK_EVENTS);
    return (uint32_t)(event / CHUNK_EVENTS) + 1;
}

static void collect_deltas(struct account *a)
{
    for (uint32_t i = 0; i < a->chunk_touched; i++) {
        const struct chunk_delta *b = &a->before[i];
        const struct site *s = site_at(&a->sites, b->site_id);
        const struct tally *t = &s->tally;
        a->deltas[i] = (struct chunk_delta){
            .site_id = b->site_id,
            .alloc_count = (uint32_t)t->alloc_count - b->alloc_count,
            .free_count = (uint32_t)t->left_count - b->free_count,
            .temporary_count = (uint32_t)t->temporary_count - b->temporary_count,
            .alloc_bytes = t->alloc_bytes - b->alloc_bytes,
            .free_bytes = t->left_bytes - b->free_bytes,
            .rise_bytes = s->chunk_high_bytes - (b->alloc_bytes - b->free_bytes),
        };
    }
}

void account_chunk_encode(struct account *a)
{
    if (chunk_events_add(a->chunk_codec, a->chunk, a->chunk_fill) != 0)
        bug("chunk %u of %u events", a->chunk_id, a->chunk_fill);
    a->chunk_encoded = a->chunk_fill;
}

static void write_chunk(struct account *a)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO event_chunk(chunk_id, first_ns, last_ns, event_count, first_event, "
        "device_mask, data, site_delta) VALUES(?,?,?,?,?,?,?,?)";
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    buf_reset(&a->encoded);
    buf_reset(&a->encoded_deltas);
    collect_deltas(a);
    account_chunk_encode(a);
    if (chunk_events_pack(a->chunk_codec, &a->encoded) != 0 ||
        chunk_encode_deltas(a->codec, a->deltas, a->chunk_touched, &a->encoded_deltas) != 0)
        bug("chunk %u of %u events", a->chunk_id, a->chunk_fill);
    sqlite3_bind_int64(s, 1, a->chunk_id);
    sqlite3_bind_int64(s, 2, (int64_t)a->chunk[0].time_ns);
    sqlite3_bind_int64(s, 3, (int64_t)a->chunk[a->chunk_fill - 1].time_ns);
    sqlite3_bind_int64(s, 4, a->chunk_fill);
    sqlite3_bind_int64(s, 5, (int64_t)(a->event_count - a->chunk_fill));
    sqlite3_bind_int64(s, 6, (int64_t)a->device_mask);
    sqlite3_bind_blob64(s, 7, a->encoded.data, a->encoded.length, SQLITE_STATIC);
    sqlite3_bind_blob64(s, 8, a->encoded_deltas.data, a->encoded_deltas.length, SQLITE_STATIC);
    store_step(a->store, s);
    sqlite3_clear_bindings(s);
    a->chunk_written = a->chunk_fill;
}

/* --max-events: whole chunks go while the newer ones hold that many, up to a chunk that begins with a key frame, so
 * that what was live can be told at every instant that is left. */
static void drop_old(struct account *a)
{
    static const char chunks_sql[] = "DELETE FROM event_chunk WHERE chunk_id < ?";
    static const char keyframes_sql[] = "DELETE FROM keyframe WHERE reason = 'periodic' AND chunk_id < ?";
    uint64_t chunks = (a->options.max_events + CHUNK_EVENTS - 1) / CHUNK_EVENTS;
    if (!a->chunk || !a->options.max_events || chunks > a->chunk_id)
        return;
    uint32_t first = keyframe_chunk_before(a, (uint32_t)(a->chunk_id - chunks + 1));
    if (first <= a->chunk_first_kept)
        return;
    a->chunk_first_kept = first;
    const char *const statements[] = {chunks_sql, keyframes_sql};
    for (unsigned i = 0; i < 2; i++) {
        sqlite3_stmt *s = store_statement(a->store, statements[i]);
        if (!s)
            return;
        sqlite3_bind_int64(s, 1, first);
        store_step(a->store, s);
    }
}

void account_chunk_full(struct account *a)
{
    if (a->chunk) {
        write_chunk(a);
        drop_old(a);
        if (chunk_events_begin(a->chunk_codec) != 0)
            bug("out of memory");
    }
    a->chunk_id++;
    a->chunk_fill = a->chunk_encoded = a->chunk_written = 0;
    a->chunk_touched = a->tuple_count = 0;
    memset(a->last_tuples, 0xff, sizeof a->last_tuples);
    a->device_mask = 0;
    account_new_generation(a);
    keyframe_chunk_begins(a);
}

void account_chunk_partial(struct account *a)
{
    if (a->chunk && a->chunk_fill > a->chunk_written)
        write_chunk(a);
}
