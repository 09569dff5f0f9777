#include "pass.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/search.h"
#include "../../common/wrap.h"
#include "replay.h"

#include <errno.h>
#include <stdlib.h>

#define BUCKET_EVENTS 1024
#define THREADS_MAX   65536 /* of others no temporaries are known */

struct reading {
    struct pass *pass;
    const struct pass_reader *readers;
    int reader_count;
    struct blocks blocks;
    struct map end_of; /* process_id -> the number of its last event of an end, and 1 */
    int64_t percent;
    int64_t *newest; /* by thread: the number of its newest allocation */
};

static struct pass_level *level_at(struct pass *p, uint8_t device_id)
{
    if (p->level_of[device_id])
        return &p->levels[p->level_of[device_id] - 1];
    struct pass_level *l = ARRAY_ADD(p->levels, p->level_count, p->level_capacity);
    l->device_id = device_id;
    ARRAY_ROOM_ZERO(l->most, p->bucket_capacity, l->most_capacity);
    ARRAY_ROOM_ZERO(l->start, p->chunk_capacity, l->start_capacity);
    p->level_of[device_id] = (uint16_t)p->level_count;
    return l;
}

static void begin_bucket(struct pass *p, int64_t number, uint64_t time_ns)
{
    *ARRAY_ADD(p->buckets, p->bucket_count, p->bucket_capacity) =
        (struct pass_bucket){number, (int64_t)time_ns, p->chunk_count - 1};
    for (uint32_t i = 0; i < p->level_count; i++) {
        struct pass_level *l = &p->levels[i];
        ARRAY_ROOM_ZERO(l->most, p->bucket_capacity, l->most_capacity);
        l->most[p->bucket_count - 1] = l->active_bytes;
    }
}

static void begin_chunk(struct pass *p, int64_t chunk_id, int64_t first_event, int64_t event_count)
{
    *ARRAY_ADD(p->chunks, p->chunk_count, p->chunk_capacity) = (struct pass_chunk){chunk_id, first_event, event_count};
    for (uint32_t i = 0; i < p->level_count; i++) {
        struct pass_level *l = &p->levels[i];
        ARRAY_ROOM_ZERO(l->start, p->chunk_capacity, l->start_capacity);
        l->start[p->chunk_count - 1] = l->active_bytes;
    }
}

static void raise(struct pass *p, struct pass_level *l, int64_t number)
{
    int64_t *most = &l->most[p->bucket_count - 1];
    if (l->active_bytes > *most)
        *most = l->active_bytes;
    if (l->active_bytes > l->peak_bytes) {
        l->peak_bytes = l->active_bytes;
        l->peak_event = number;
    }
}

static void put(struct reading *r, const struct block *from, uint64_t address, uint64_t size_bytes)
{
    struct chunk_event part = {.address = address,
                               .size_bytes = size_bytes,
                               .time_ns = from->time_ns,
                               .site_id = from->site_id,
                               .thread_id = from->thread_id};
    if (address)
        blocks_put(&r->blocks, &part, from->space);
}

static void split(struct reading *r, const struct chunk_event *e)
{
    struct block block;
    if (!blocks_take(&r->blocks, e->address, chunk_event_space(e), &block))
        return;
    put(r, &block, block.address, e->size_bytes);
    put(r, &block, block.address + e->size_bytes, block.size_bytes - e->size_bytes);
}

/* Its blocks end; events of each of its sites tell the bytes, the first of them stands for all. */
static void end_process(struct reading *r, const struct chunk_event *e, int64_t number)
{
    struct pass *p = r->pass;
    uint64_t *end = map_slot(&r->end_of, e->process_id, 0);
    int is_first = *end == 0;
    *end = (uint64_t)number + 1;
    size_t from = p->gone_count;
    for (uint64_t i = 0; is_first && r->blocks.slots && i <= r->blocks.mask; i++)
        if (r->blocks.slots[i].address && r->blocks.slots[i].space >> 8 == e->process_id)
            *ARRAY_ADD(p->gone, p->gone_count, p->gone_capacity) = (struct pass_gone){r->blocks.slots[i], 0};
    for (size_t i = from; i < p->gone_count; i++) {
        struct block taken;
        blocks_take(&r->blocks, p->gone[i].block.address, p->gone[i].block.space, &taken);
    }
}

static void apply(struct reading *r, const struct chunk_event *e, int64_t number)
{
    int is_birth = chunk_op_is_birth(e->op), is_loss = chunk_op_is_loss(e->op);
    struct block block;
    struct pass_event seen = {e, number, NULL, 0};
    if (e->op == CHUNK_split)
        split(r, e);
    if (is_birth && e->address) {
        struct chunk_event birth = *e;
        birth.time_ns = (uint64_t)number;
        blocks_put(&r->blocks, &birth, chunk_event_space(e));
    }
    if (is_birth && e->thread_id < THREADS_MAX)
        r->newest[e->thread_id] = number;
    if (e->op == CHUNK_end)
        end_process(r, e, number);
    else if (is_loss && blocks_take(&r->blocks, e->address, chunk_event_space(e), &block))
        seen.block = &block;
    if (e->op == CHUNK_free && seen.block && block.thread_id < THREADS_MAX)
        seen.is_temporary = r->newest[block.thread_id] == (int64_t)block.time_ns;
    if (e->op == CHUNK_cut && seen.block && e->size_bytes < block.size_bytes)
        put(r, &block, block.address, block.size_bytes - e->size_bytes);
    if (is_birth || is_loss) {
        struct pass_level *l = level_at(r->pass, e->device);
        wrap_change(&l->active_bytes, is_birth ? e->size_bytes : -e->size_bytes);
        raise(r->pass, l, number);
    }
    for (int i = 0; i < r->reader_count; i++)
        r->readers[i].see(r->readers[i].arg, &seen);
}

static void read_chunk(struct reading *r, const struct pass_chunk *c, const struct chunk_event *events)
{
    begin_chunk(r->pass, c->chunk_id, c->first_event, c->event_count);
    for (int64_t i = 0; i < c->event_count; i++) {
        if (i % BUCKET_EVENTS == 0)
            begin_bucket(r->pass, c->first_event + i, events[i].time_ns);
        apply(r, &events[i], c->first_event + i);
    }
    r->pass->event_count += c->event_count;
}

/* What is still there ends with the recording; the processes whose ends are there are known by now. */
static void end_all(struct reading *r)
{
    struct pass *p = r->pass;
    for (size_t i = 0; i < p->gone_count; i++)
        p->gone[i].end_event = (int64_t)map_get(&r->end_of, p->gone[i].block.space >> 8, 0) - 1;
    for (uint64_t i = 0; r->blocks.slots && i <= r->blocks.mask; i++)
        if (r->blocks.slots[i].address)
            *ARRAY_ADD(p->gone, p->gone_count, p->gone_capacity) = (struct pass_gone){r->blocks.slots[i], PASS_END};
}

int pass_load(sqlite3 *db, const struct pass_reader *readers, int reader_count,
              void (*progress)(void *arg, int percent), void *progress_arg, struct pass *pass, struct error *err)
{
    struct reading r = {.pass = pass, .readers = readers, .reader_count = reader_count, .percent = -1};
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *s = NULL;
    *pass = (struct pass){.db = db};
    r.newest = xcalloc(THREADS_MAX, sizeof *r.newest);
    const int64_t all = db_int(db, "SELECT max(first_event + event_count) FROM event_chunk", 0);
    int rc = replay_is_possible(db) ? 0 : -ENODATA;
    if (rc == 0)
        rc = db_prepare(db, "SELECT chunk_id, first_event, data FROM event_chunk ORDER BY chunk_id", &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        const struct chunk_event *events;
        const void *data = sqlite3_column_blob(s, 2);
        long count = data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(s, 2), &events) : -EBADMSG;
        struct pass_chunk c = {sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1), count};
        if (count < 0 || c.first_event != pass->event_count) {
            rc = error_set(err, EBADMSG, "%s: chunk %lld of the events is damaged", sqlite3_db_filename(db, "main"),
                           (long long)c.chunk_id);
            break;
        }
        read_chunk(&r, &c, events);
        int percent = all > 0 ? (int)(100 * ((double)pass->event_count / (double)all)) : 100;
        if (progress && percent > r.percent && percent < 100)
            progress(progress_arg, (int)(r.percent = percent));
    }
    if (progress && r.percent >= 0)
        progress(progress_arg, 100);
    if (rc == 0)
        end_all(&r);
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    free(r.newest);
    free(r.blocks.slots);
    map_close(&r.end_of);
    return rc;
}

void pass_close(struct pass *p)
{
    for (uint32_t i = 0; i < p->level_count; i++) {
        free(p->levels[i].most);
        free(p->levels[i].start);
    }
    free(p->levels);
    free(p->buckets);
    free(p->chunks);
    free(p->gone);
    *p = (struct pass){.db = NULL};
}

int64_t pass_time(const struct pass *p, int64_t number)
{
    const uint32_t low = SEARCH_FIRST(p->bucket_count, i, p->buckets[i].first_event <= number);
    return low ? p->buckets[low - 1].first_ns : 0;
}

const struct pass_level *pass_level_of(const struct pass *p, int64_t device_id)
{
    uint16_t level = device_id >= 0 && device_id < 256 ? p->level_of[device_id] : 0;
    return level ? &p->levels[level - 1] : NULL;
}
