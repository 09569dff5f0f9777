#include "keyframe.h"

#include "account_private.h"

#include "../../common/error.h"

#include <errno.h>
#include <stdlib.h>

#define NO_DEVICE UINT32_MAX

void keyframes_open(struct account *a)
{
    struct keyframes *k = &a->keyframes;
    k->end = (struct buf)BUF(1u << 30);
    k->spacing = KEYFRAME_CHUNKS;
    /* with --max-events chunks go up to a key frame, so those must lie closer than the events that are kept */
    uint64_t kept_chunks = a->options.max_events / CHUNK_EVENTS;
    if (a->options.max_events && kept_chunks < KEYFRAME_CHUNKS * 8)
        k->spacing = kept_chunks < 16 ? 1 : (uint32_t)(kept_chunks / 8);
}

void keyframes_close(struct account *a)
{
    buf_free(&a->keyframes.end);
}

/* What the sites hold now, encoded; at_peak: at the peak of that device (its sites only). */
static int encode(struct account *a, uint32_t at_peak_device, struct buf *out)
{
    size_t count = 0;
    struct chunk_live *live = xmalloc((a->sites.count + 1ul) * sizeof *live);
    for (uint32_t id = 1; id <= a->sites.count; id++) {
        const struct site *s = site_at(&a->sites, id);
        struct chunk_live l = {id, 0, tally_live_count(&s->tally), tally_live_bytes(&s->tally)};
        if (at_peak_device != NO_DEVICE) {
            const struct device_account *d = a->devices[s->device];
            struct tally_peaks peaks = tally_peaks(&s->tally, d, d->kinds[s->kind]);
            l.live_count = s->device == at_peak_device ? peaks.count : 0;
            l.live_bytes = peaks.bytes;
        }
        if (l.live_count)
            live[count++] = l;
    }
    int rc = chunk_encode_live(a->codec, live, count, out);
    free(live);
    return rc;
}

/* chunk: the chunk that holds the first event after it; 0: none. */
static void write(struct account *a, struct keyframe_key key, uint32_t chunk, const char *reason, uint32_t device,
                  const struct buf *data)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO keyframe(time_ns, event_count, chunk_id, reason, device_id, data) "
        "VALUES(?,?,?,?,?,?)";
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, (int64_t)key.time_ns);
    sqlite3_bind_int64(s, 2, (int64_t)key.event_count);
    if (a->chunk && chunk >= a->chunk_first_kept)
        sqlite3_bind_int64(s, 3, chunk);
    else
        sqlite3_bind_null(s, 3);
    sqlite3_bind_text(s, 4, reason, -1, SQLITE_STATIC);
    if (device != NO_DEVICE)
        sqlite3_bind_int64(s, 5, device);
    else
        sqlite3_bind_null(s, 5);
    sqlite3_bind_blob64(s, 6, data->data, data->length, SQLITE_STATIC);
    store_step(a->store, s);
    sqlite3_clear_bindings(s);
}

static void write_now(struct account *a, const char *reason)
{
    struct keyframe_key key = {a->now_ns, a->event_count};
    buf_reset(&a->encoded);
    if (encode(a, NO_DEVICE, &a->encoded) == 0)
        write(a, key, a->chunk_id, reason, NO_DEVICE, &a->encoded);
}

/* Every second one goes, and the next ones come half as often. */
static void thin(struct account *a)
{
    static const char sql[] = "DELETE FROM keyframe WHERE time_ns = ? AND event_count = ? AND reason = 'periodic'";
    struct keyframes *k = &a->keyframes;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->periodic_count; i++) {
        if (i % 2) {
            k->periodic[kept++] = k->periodic[i];
            continue;
        }
        sqlite3_stmt *s = store_statement(a->store, sql);
        if (!s)
            return;
        sqlite3_bind_int64(s, 1, (int64_t)k->periodic[i].time_ns);
        sqlite3_bind_int64(s, 2, (int64_t)k->periodic[i].event_count);
        store_step(a->store, s);
    }
    k->periodic_count = kept;
    k->spacing *= 2;
}

void keyframe_chunk_begins(struct account *a)
{
    struct keyframes *k = &a->keyframes;
    if ((a->chunk_id - 1) % k->spacing)
        return;
    if (!a->chunk) {
        if (k->periodic_count == KEYFRAME_AGGREGATE_MAX)
            thin(a);
        if ((a->chunk_id - 1) % k->spacing)
            return;
        k->periodic[k->periodic_count++] = (struct keyframe_key){a->now_ns, a->event_count};
    }
    write_now(a, "periodic");
}

void keyframe_cut(struct account *a)
{
    write_now(a, "periodic");
}

uint32_t keyframe_chunk_before(const struct account *a, uint32_t chunk_id)
{
    return chunk_id - (chunk_id - 1) % a->keyframes.spacing;
}

void keyframe_oom(struct account *a)
{
    if (a->keyframes.oom_count++ < KEYFRAME_OOM_MAX)
        write_now(a, "oom");
}

void keyframe_teardown(struct account *a)
{
    if (a->keyframes.teardown_count++ < KEYFRAME_TEARDOWN_MAX)
        write_now(a, "teardown");
}

void account_keyframe(struct account *a)
{
    if (a->keyframes.policy_count++ < KEYFRAME_POLICY_MAX)
        write_now(a, "policy");
}

void keyframe_process_ends(struct account *a)
{
    struct keyframes *k = &a->keyframes;
    buf_reset(&k->end);
    if (encode(a, NO_DEVICE, &k->end) != 0)
        buf_reset(&k->end);
    k->end_key = (struct keyframe_key){a->now_ns, a->event_count};
    k->end_chunk = a->chunk_id;
}

/* The chunk of an event, numbered from 0. */
static uint32_t chunk_of(const struct account *a, uint64_t event)
{
    for (uint32_t i = a->short_count; i-- > 0;)
        if (a->short_chunks[i].first_event <= event)
            return a->short_chunks[i].chunk_id + (uint32_t)((event - a->short_chunks[i].first_event) / CHUNK_EVENTS);
    return (uint32_t)(event / CHUNK_EVENTS) + 1;
}

void keyframes_finish(struct account *a)
{
    struct keyframes *k = &a->keyframes;
    if (a->counts.live_blocks || !k->end.length) /* processes that were not seen to end */
        keyframe_process_ends(a);
    if (k->end.length)
        write(a, k->end_key, k->end_chunk, "end", NO_DEVICE, &k->end);
    for (uint32_t i = 0; i < ACCOUNT_DEVICES; i++) {
        const struct device_account *d = a->devices[i];
        if (!d || !d->level.peak_bytes)
            continue;
        struct keyframe_key key = {d->level.peak_ns, d->level.peak_event};
        buf_reset(&a->encoded);
        if (encode(a, i, &a->encoded) == 0)
            write(a, key, chunk_of(a, key.event_count), "peak", i, &a->encoded);
    }
}
