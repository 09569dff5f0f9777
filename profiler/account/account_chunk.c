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
    job->encoded_sums = (struct buf)BUF(1u << 30);
    job->encoded_freers = (struct buf)BUF(1u << 30);
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
    buf_free(&job->encoded_sums);
    buf_free(&job->encoded_freers);
    free(job->freers);
    free(job->numbers);
    free(job->sums.threads);
    free(job->sums.sizes);
    free(job->sums.owners);
    free(a->threads_before);
    free(a->owners);
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

static void note_thread(struct account *a, uint32_t thread_id, struct thread_device *t, unsigned kind,
                        const struct tally *now, uint64_t live_bytes)
{
    *ARRAY_ADD(a->threads_before, a->thread_touched, a->thread_room) =
        (struct thread_before){.device = t,
                               .was = {.thread_id = thread_id,
                                       .device = t->device,
                                       .kind = (uint8_t)kind,
                                       .alloc_count = now->alloc_count,
                                       .alloc_bytes = now->alloc_bytes,
                                       .left_count = now->left_count,
                                       .left_bytes = now->left_bytes,
                                       .temporary_count = now->temporary_count,
                                       .rise_bytes = live_bytes}};
}

void account_chunk_touch_thread(struct account *a, uint32_t thread_id, struct thread_device *t, unsigned kind)
{
    static const struct tally nothing;
    struct thread_tally *k = t->kinds[kind];
    k->chunk_id = a->chunk_id;
    if (k->tally.own_peak_bytes > k->peak_bytes)
        k->peak_bytes = k->tally.own_peak_bytes;
    k->tally.own_peak_bytes = tally_live_bytes(&k->tally);
    if (a->chunk)
        note_thread(a, thread_id, t, kind, &k->tally, k->tally.own_peak_bytes);
    if (t->chunk_id == a->chunk_id)
        return;
    t->chunk_id = a->chunk_id;
    if (t->own_peak_bytes > t->peak_bytes)
        t->peak_bytes = t->own_peak_bytes;
    t->own_peak_bytes = t->live_bytes;
    if (a->chunk)
        note_thread(a, thread_id, t, KIND_all, &nothing, t->live_bytes);
}

__attribute__((noinline)) void account_chunk_owner(struct account *a, uint32_t thread_id)
{
    if (a->chunk)
        *ARRAY_ADD(a->owners, a->owner_count, a->owner_room) = (struct chunk_owner){a->chunk_fill, thread_id};
}

/* Before it is full. */
static void end_short(struct account *a)
{
    *ARRAY_ADD(a->short_chunks, a->short_count, a->short_capacity) =
        (struct short_chunk){a->event_count, a->chunk_id + 1};
    account_chunk_full(a);
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
    end_short(a);
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

static struct chunk_thread thread_delta(const struct thread_before *b)
{
    struct chunk_thread d = b->was;
    if (d.kind == KIND_all) {
        d.rise_bytes = b->device->own_peak_bytes - d.rise_bytes;
        return d;
    }
    const struct tally *t = &b->device->kinds[d.kind]->tally;
    d.alloc_count = t->alloc_count - d.alloc_count;
    d.alloc_bytes = t->alloc_bytes - d.alloc_bytes;
    d.left_count = t->left_count - d.left_count;
    d.left_bytes = t->left_bytes - d.left_bytes;
    d.temporary_count = t->temporary_count - d.temporary_count;
    d.rise_bytes = t->own_peak_bytes - d.rise_bytes;
    return d;
}

/* How many kinds of the device the chunk touched: where it is one, that has the device's rise. */
static unsigned kinds_touched(const struct account *a, const struct thread_device *t)
{
    unsigned count = 0;
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        count += t->kinds[kind] && t->kinds[kind]->chunk_id == a->chunk_id;
    return count;
}

static void collect_sizes(struct account *a, unsigned device, unsigned kind)
{
    struct chunk_job *job = &a->job;
    const struct kind_account *k = a->devices[device]->kinds[kind];
    for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++) {
        const struct size_class *now = &k->histogram.sizes[i], *was = &k->chunk_sizes[i];
        const struct chunk_size c = {.device = (uint8_t)device,
                                     .kind = (uint8_t)kind,
                                     .class = (uint8_t)i,
                                     .alloc_count = now->alloc_count - was->alloc_count,
                                     .alloc_bytes = now->alloc_bytes - was->alloc_bytes,
                                     .free_count = now->free_count - was->free_count,
                                     .temporary_count = now->temporary_count - was->temporary_count};
        if (c.alloc_count || c.alloc_bytes || c.free_count || c.temporary_count)
            *ARRAY_ADD(job->sums.sizes, job->sums.size_count, job->size_room) = c;
    }
}

static void collect_sums(struct account *a)
{
    struct chunk_job *job = &a->job;
    job->sums.thread_count = job->sums.size_count = job->sums.owner_count = 0;
    for (uint32_t i = 0; i < a->thread_touched; i++) {
        const struct thread_before *b = &a->threads_before[i];
        if (b->was.kind != KIND_all || kinds_touched(a, b->device) > 1)
            *ARRAY_ADD(job->sums.threads, job->sums.thread_count, job->thread_room) = thread_delta(b);
    }
    for (unsigned device = 0; device < ACCOUNT_DEVICES; device++)
        for (unsigned kind = 0; a->devices[device] && kind < KIND_COUNT; kind++)
            if (a->devices[device]->kinds[kind])
                collect_sizes(a, device, kind);
    ARRAY_ROOM(job->sums.owners, a->owner_count, job->owner_room);
    if (a->owner_count)
        memcpy(job->sums.owners, a->owners, a->owner_count * sizeof *a->owners);
    job->sums.owner_count = a->owner_count;
}

static void collect_freers(struct account *a)
{
    struct chunk_job *job = &a->job;
    const struct freed *f = &a->freed;
    ARRAY_ROOM(job->freers, f->chunk_count, job->freer_room);
    if (f->chunk_count)
        memcpy(job->freers, f->chunk, f->chunk_count * sizeof *f->chunk);
    job->freer_count = f->chunk_count;
}

/* A number for each event that somebody may be known to have made, in order. */
static int encode_freers(struct chunk_job *job)
{
    uint32_t count = 0, next = 0;
    if (!job->freer_count)
        return 0;
    if (!job->numbers)
        job->numbers = xmalloc(CHUNK_EVENTS * sizeof *job->numbers);
    for (uint32_t i = 0; i < job->count && next < job->freer_count; i++) {
        int is_it = job->freers[next].index == i;
        if (chunk_op_has_freer(job->events[i].op))
            job->numbers[count++] = is_it ? job->freers[next].stack_id : 0;
        next += (uint32_t)is_it;
    }
    return chunk_encode_numbers(job->codec, job->numbers, count, &job->encoded_freers);
}

/* What is told by the chunk itself: the block was allocated in it. */
static void drop_told(struct chunk_job *job)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < job->sums.owner_count; i++) {
        const struct chunk_owner o = job->sums.owners[i];
        const struct chunk_event *e = &job->events[o.index], *birth = &job->events[e->match];
        int is_told = e->match < o.index && chunk_op_is_birth(birth->op) && birth->address == e->address &&
                      chunk_event_space(birth) == chunk_event_space(e) && birth->thread_id == o.thread_id;
        if (!is_told)
            job->sums.owners[kept++] = o;
    }
    job->sums.owner_count = kept;
}

static int encode(void *arg)
{
    struct chunk_job *job = arg;
    drop_told(job);
    int rc = chunk_encode_events(job->codec, job->events, job->count, &job->encoded);
    if (!rc)
        rc = chunk_encode_deltas(job->codec, job->deltas, job->delta_count, &job->encoded_deltas);
    if (!rc)
        rc = chunk_encode_sums(job->codec, &job->sums, &job->encoded_sums);
    if (!rc)
        rc = encode_freers(job);
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
    collect_sums(a);
    collect_freers(a);
    buf_reset(&job->encoded_freers);
    buf_reset(&job->encoded);
    buf_reset(&job->encoded_sums);
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
    static const char sums_sql[] = "INSERT OR REPLACE INTO chunk_sum(chunk_id, data) VALUES(?,?)";
    static const char freers_sql[] = "INSERT OR REPLACE INTO chunk_free(chunk_id, data) VALUES(?,?)";
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
    s = store_statement(a->store, sums_sql);
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, job->chunk_id);
    sqlite3_bind_blob64(s, 2, job->encoded_sums.data, job->encoded_sums.length, SQLITE_STATIC);
    store_step(a->store, s);
    sqlite3_clear_bindings(s);
    s = job->freer_count ? store_statement(a->store, freers_sql) : NULL;
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, job->chunk_id);
    sqlite3_bind_blob64(s, 2, job->encoded_freers.data, job->encoded_freers.length, SQLITE_STATIC);
    store_step(a->store, s);
    sqlite3_clear_bindings(s);
}

void account_drop_before(struct account *a, uint32_t chunk_id)
{
    static const char chunks_sql[] = "DELETE FROM event_chunk WHERE chunk_id < ?";
    static const char sums_sql[] = "DELETE FROM chunk_sum WHERE chunk_id < ?";
    static const char freers_sql[] = "DELETE FROM chunk_free WHERE chunk_id < ?";
    static const char keyframes_sql[] = "DELETE FROM keyframe WHERE reason = 'periodic' AND chunk_id < ?";
    if (!a->chunk || chunk_id <= a->chunk_first_kept)
        return;
    a->chunk_first_kept = chunk_id;
    const char *const statements[] = {chunks_sql, sums_sql, freers_sql, keyframes_sql};
    for (unsigned i = 0; i < sizeof statements / sizeof *statements; i++) {
        sqlite3_stmt *s = store_statement(a->store, statements[i]);
        if (!s)
            return;
        sqlite3_bind_int64(s, 1, chunk_id);
        store_step(a->store, s);
    }
}

/* --max-events: whole chunks go while the newer ones hold that many, up to a chunk that begins with a key frame, so
 * that what was live can be told at every instant that is left. */
static void drop_old(struct account *a)
{
    uint64_t chunks = (a->options.max_events + CHUNK_EVENTS - 1) / CHUNK_EVENTS;
    if (a->options.max_events && chunks <= a->chunk_id)
        account_drop_before(a, keyframe_chunk_before(a, (uint32_t)(a->chunk_id - chunks + 1)));
}

static void new_generation(struct account *a)
{
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++) {
        struct device_account *d = a->devices[i];
        if (!d)
            continue;
        d->generation++;
        for (unsigned kind = 0; a->chunk && kind < KIND_COUNT; kind++)
            if (d->kinds[kind])
                memcpy(d->kinds[kind]->chunk_sizes, d->kinds[kind]->histogram.sizes,
                       sizeof d->kinds[kind]->chunk_sizes);
    }
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
    a->chunk_touched = a->thread_touched = a->owner_count = a->tuple_count = a->freed.chunk_count = 0;
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

uint32_t account_cut(struct account *a)
{
    if (a->chunk_fill)
        end_short(a);
    keyframe_cut(a);
    return a->chunk_id;
}
