#include "account_private.h"

#include "../../common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORTH_EVENTS 4096u /* fewer are encoded at once: a short program would wait for the thread to begin */

static int encode(void *arg);

void account_chunk_open(struct account *a)
{
    a->codec = chunk_codec_open();
    if (!a->codec)
        out_of_memory(0);
    a->chunk_id = a->chunk_first_kept = 1;
    a->encoded = (struct buf)BUF(1u << 30);
    if (a->options.aggregate)
        return;
    memset(a->last_tuples, 0xff, sizeof a->last_tuples);
    a->chunk = xmalloc(CHUNK_EVENTS * sizeof *a->chunk);
    a->before = xmalloc(CHUNK_EVENTS * sizeof *a->before);
    struct chunk_job *job = &a->job;
    job->work.run = encode;
    job->work.arg = job;
    job->spare = xmalloc(CHUNK_EVENTS * sizeof *job->spare);
    job->deltas = xmalloc(CHUNK_EVENTS * sizeof *job->deltas);
    job->encoded = (struct buf)BUF(1u << 30);
    job->encoded_deltas = (struct buf)BUF(1u << 30);
    job->codec = chunk_codec_open();
    if (!job->codec)
        out_of_memory(0);
}

void account_chunk_close(struct account *a)
{
    struct chunk_job *job = &a->job;
    worker_cancel(a->worker, &job->work);
    chunk_codec_close(job->codec);
    buf_free(&job->encoded);
    buf_free(&job->encoded_deltas);
    free(job->spare);
    free(job->deltas);
    chunk_codec_close(a->codec);
    buf_free(&a->encoded);
    free(a->short_chunks);
    free(a->chunk);
    free(a->before);
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
    a->device_mask |= 1ull << (tuple >> 16 & 63);
    for (uint32_t i = 0; i < a->tuple_count; i++)
        if (a->tuples[i] == tuple)
            return;
    a->tuples[a->tuple_count++] = tuple;
    if (a->tuple_count < CHUNK_TUPLES || a->chunk_fill == CHUNK_EVENTS)
        return;
    *ARRAY_ADD(a->short_chunks, a->short_count, a->short_capacity) =
        (struct short_chunk){a->event_count, a->chunk_id + 1};
    account_chunk_full(a);
}

static void collect_deltas(struct account *a)
{
    a->job.delta_count = a->chunk_touched;
    for (uint32_t i = 0; i < a->chunk_touched; i++) {
        const struct chunk_delta *b = &a->before[i];
        const struct site *s = site_at(&a->sites, b->site_id);
        const struct tally *t = &s->tally;
        a->job.deltas[i] = (struct chunk_delta){
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

static int encode(void *arg)
{
    struct chunk_job *job = arg;
    int rc = chunk_encode_events(job->codec, job->events, job->count, &job->encoded);
    if (!rc)
        rc = chunk_encode_deltas(job->codec, job->deltas, job->delta_count, &job->encoded_deltas);
    if (rc == -ENOMEM)
        out_of_memory(0);
    if (rc)
        bug("chunk %u of %u events", job->chunk_id, job->count);
    return 0;
}

/* The events so far, and what they did to the sites; neither changes until this is stored. */
static void begin(struct account *a)
{
    struct chunk_job *job = &a->job;
    account_chunk_stored(a);
    job->events = a->chunk;
    job->count = a->chunk_fill;
    job->chunk_id = a->chunk_id;
    job->first_event = a->event_count - a->chunk_fill;
    job->device_mask = a->device_mask;
    collect_deltas(a);
    buf_reset(&job->encoded);
    buf_reset(&job->encoded_deltas);
    job->is_begun = 1;
    if (job->count < WORTH_EVENTS)
        encode(job);
    else
        worker_post(a->worker, &job->work);
    a->chunk_written = a->chunk_fill;
}

void account_chunk_stored(struct account *a)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO event_chunk(chunk_id, first_ns, last_ns, event_count, first_event, "
        "device_mask, data, site_delta) VALUES(?,?,?,?,?,?,?,?)";
    struct chunk_job *job = &a->job;
    if (!job->is_begun)
        return;
    worker_wait(a->worker, &job->work);
    job->is_begun = 0;
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, job->chunk_id);
    sqlite3_bind_int64(s, 2, (int64_t)job->events[0].time_ns);
    sqlite3_bind_int64(s, 3, (int64_t)job->events[job->count - 1].time_ns);
    sqlite3_bind_int64(s, 4, job->count);
    sqlite3_bind_int64(s, 5, (int64_t)job->first_event);
    sqlite3_bind_int64(s, 6, (int64_t)job->device_mask);
    sqlite3_bind_blob64(s, 7, job->encoded.data, job->encoded.length, SQLITE_STATIC);
    sqlite3_bind_blob64(s, 8, job->encoded_deltas.data, job->encoded_deltas.length, SQLITE_STATIC);
    store_step(a->store, s);
    sqlite3_clear_bindings(s);
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

static void new_generation(struct account *a)
{
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++)
        if (a->devices[i])
            a->devices[i]->generation++;
}

void account_chunk_full(struct account *a)
{
    if (a->chunk) {
        struct chunk_event *full = a->chunk;
        begin(a);
        drop_old(a);
        a->chunk = a->job.spare;
        a->job.spare = full;
    }
    a->chunk_id++;
    a->chunk_fill = a->chunk_written = 0;
    a->chunk_touched = a->tuple_count = 0;
    memset(a->last_tuples, 0xff, sizeof a->last_tuples);
    a->device_mask = 0;
    new_generation(a);
    keyframe_chunk_begins(a);
}

void account_chunk_partial(struct account *a)
{
    if (a->chunk && a->chunk_fill > a->chunk_written)
        begin(a);
}
