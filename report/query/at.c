#include "at.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../../common/wrap.h"
#include "merged.h"
#include "replay.h"
#include "rotated_part.h"
#include "site_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Instants one after the other, and the first of them that was not reached yet. */
struct series {
    const int64_t *times_ns;
    int count, next;
    at_reach *reach;
};

struct at {
    sqlite3 *db;
    struct chunk_codec *codec;
    at_take *take;
    void *arg;
    struct at_live *live; /* all sites, by site_id, for at_load */
    size_t count;
    int64_t first_event; /* events before this number are in the values already */
    int64_t stop_event;  /* and those from this number on do not count */
    int64_t first_ns;
    int is_one; /* process: only events of images count */
    struct series *series;
    struct replay_images images;
    struct at_result *result;
};

static int load_sites(struct at *a, struct error *err)
{
    struct site_rows rows;
    size_t capacity = 0;
    int rc = site_rows_open(a->db, NULL, 0, &rows, err);
    while (rc == 0 && (rc = site_rows_next(&rows, err)) == 1) {
        *ARRAY_ADD(a->live, a->count, capacity) = (struct at_live){rows.site_id, 0, 0};
        rc = 0;
    }
    site_rows_close(&rows);
    return rc;
}

/* Unsigned arithmetic: a hostile file may make the sums wrap, which is then merely wrong. */
static void change(void *arg, uint32_t site_id, uint64_t bytes, uint64_t count)
{
    struct at *a = arg;
    uint32_t index = at_find(a->live, a->count, site_id);
    if (index == AT_NONE)
        return;
    wrap_change(&a->live[index].bytes, bytes);
    wrap_change(&a->live[index].count, count);
}

/* The newest readable key frame that is not after time_ns; without one the run begins with nothing live. */
static int load_keyframe(struct at *a, int64_t time_ns, struct error *err)
{
    sqlite3_stmt *s = NULL;
    a->result->keyframe_ns = -1;
    int rc = db_prepare(a->db,
                        "SELECT time_ns, event_count, data FROM keyframe WHERE time_ns <= ? AND event_count <= ? "
                        /* those of a peak hold the sites of its device alone */
                        "AND (reason NOT IN ('peak', 'reserved peak') OR (SELECT count(*) FROM device) = 1) "
                        "ORDER BY time_ns DESC, event_count DESC",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, time_ns);
    sqlite3_bind_int64(s, 2, a->stop_event);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const struct chunk_live *sites;
        const void *data = sqlite3_column_blob(s, 2);
        long n = data ? chunk_decode_live(a->codec, data, (size_t)sqlite3_column_bytes(s, 2), &sites) : -EBADMSG;
        if (n < 0) {
            a->result->chunks_damaged++;
            continue;
        }
        for (long i = 0; i < n; i++)
            a->take(a->arg, sites[i].site_id, sites[i].live_bytes, sites[i].live_count);
        a->first_event = sqlite3_column_int64(s, 1);
        a->first_ns = a->result->keyframe_ns = sqlite3_column_int64(s, 0);
        break;
    }
    sqlite3_finalize(s);
    return 0;
}

static void apply_event(struct at *a, const struct chunk_event *e)
{
    switch (e->op) {
    case CHUNK_alloc:
    case CHUNK_realloc_alloc:
        a->take(a->arg, e->site_id, e->size_bytes, 1);
        break;
    case CHUNK_free:
    case CHUNK_realloc_free:
    case CHUNK_to_segment:
        a->take(a->arg, e->site_id, -e->size_bytes, (uint64_t)-1);
        break;
    case CHUNK_cut:
        a->take(a->arg, e->site_id, -e->size_bytes, 0);
        break;
    case CHUNK_end: /* all that the process still had of the site; address: how many blocks */
        a->take(a->arg, e->site_id, -e->size_bytes, -e->address);
        break;
    default:
        break;
    }
}

/* The events of one chunk from number a->first_event on, up to time_ns. */
static void read_events(struct at *a, sqlite3_stmt *s, int64_t first_event, int64_t time_ns)
{
    const struct chunk_event *events;
    const void *data = sqlite3_column_blob(s, 4);
    long n = data ? chunk_decode_events(a->codec, data, (size_t)sqlite3_column_bytes(s, 4), &events) : -EBADMSG;
    if (n < 0) {
        a->result->chunks_damaged++;
        return;
    }
    for (long i = 0; i < n && (int64_t)events[i].time_ns <= time_ns && i < a->stop_event - first_event; i++)
        if (a->is_one && !replay_has(&a->images, events[i].process_id))
            continue;
        else if (first_event >= a->first_event || a->first_event - first_event <= i)
            apply_event(a, &events[i]);
    a->result->events_read += n;
}

static int sum_chunk(struct at *a, sqlite3_stmt *s)
{
    const struct chunk_delta *deltas;
    const void *data = sqlite3_column_blob(s, 5);
    long n = data ? chunk_decode_deltas(a->codec, data, (size_t)sqlite3_column_bytes(s, 5), &deltas) : -EBADMSG;
    if (n < 0)
        return -EBADMSG;
    for (long i = 0; i < n; i++)
        a->take(a->arg, deltas[i].site_id, deltas[i].alloc_bytes - deltas[i].free_bytes,
                (uint64_t)deltas[i].alloc_count - deltas[i].free_count);
    a->result->chunks_summed++;
    return 0;
}

/* Of the chunk that the statement is at: events from number first on, before number after. */
typedef void read_chunk(struct at *a, sqlite3_stmt *s, int64_t first, int64_t after, int64_t time_ns);

static void read_until(struct at *a, sqlite3_stmt *s, int64_t first, int64_t after, int64_t time_ns)
{
    int whole =
        !a->is_one && first >= a->first_event && sqlite3_column_int64(s, 1) <= time_ns && after <= a->stop_event;
    if (!whole || sum_chunk(a, s))
        read_events(a, s, first, time_ns);
}

static int read_chunks(struct at *a, int64_t time_ns, read_chunk *read, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t next = a->first_event;
    int rc = db_prepare(a->db,
                        "SELECT first_ns, last_ns, event_count, first_event, data, site_delta FROM event_chunk"
                        " WHERE first_ns <= ?1 AND last_ns >= ?2 ORDER BY chunk_id",
                        &s, err);
    if (rc)
        return rc;
    a->result->is_exact = 1;
    sqlite3_bind_int64(s, 1, time_ns);
    sqlite3_bind_int64(s, 2, a->first_ns);
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t first = sqlite3_column_int64(s, 3), count = sqlite3_column_int64(s, 2), after;
        if (first < 0 || count < 0 || __builtin_add_overflow(first, count, &after) || after <= a->first_event)
            continue;
        if (first >= a->stop_event)
            break;
        if (first > next) { /* chunks between the key frame and this one were not kept */
            a->result->is_exact = 0;
            break;
        }
        next = after;
        read(a, s, first, after, time_ns);
    }
    sqlite3_finalize(s);
    return 0;
}

static int store_live(struct at *a, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(
        a->db,
        "DROP TABLE IF EXISTS temp.live; CREATE TEMP TABLE live(site_id INTEGER PRIMARY KEY, live_bytes INTEGER,"
        " live_count INTEGER); SAVEPOINT fill;",
        err);
    if (rc == 0)
        rc = db_prepare(a->db, "INSERT INTO temp.live VALUES(?, ?, ?)", &s, err);
    for (size_t i = 0; rc == 0 && i < a->count; i++) {
        if (a->live[i].bytes == 0 && a->live[i].count == 0)
            continue;
        sqlite3_bind_int64(s, 1, a->live[i].site_id);
        sqlite3_bind_int64(s, 2, a->live[i].bytes);
        sqlite3_bind_int64(s, 3, a->live[i].count);
        if (sqlite3_step(s) != SQLITE_DONE)
            rc = db_error(a->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    if (rc == 0)
        rc = db_exec(a->db, "RELEASE fill", err);
    return rc;
}

/* Without events a key frame holds for its own instant; the last one, at the end, for every later one too. */
static int holds_without_events(struct at *a, int64_t time_ns)
{
    return a->result->keyframe_ns == time_ns ||
           db_int(a->db, "SELECT max(time_ns) FROM keyframe WHERE reason = 'end'", -1) == a->result->keyframe_ns;
}

static int load(struct at *a, int64_t time_ns, int64_t pid, struct error *err)
{
    struct at_result *result = a->result;
    *result = (struct at_result){.time_ns = time_ns};
    int rc = 0;
    result->keyframe_ns = -1;
    a->is_one = pid && db_int(a->db, "SELECT count(DISTINCT pid) FROM main.process", 0) > 1;
    if (rc == 0 && a->is_one)
        rc = replay_images(a->db, pid, &a->images, err);
    else if (rc == 0)
        rc = load_keyframe(a, time_ns, err);
    if (rc == 0)
        rc = read_chunks(a, time_ns, read_until, err);
    if (rc == 0 && result->is_exact && db_int(a->db, "SELECT 1 FROM event_chunk LIMIT 1", 0) == 0)
        result->is_exact = holds_without_events(a, time_ns);
    if (rc == 0 && !result->is_exact)
        result->time_ns = result->keyframe_ns < 0 ? 0 : result->keyframe_ns;
    return rc;
}

int at_load(sqlite3 *db, int64_t time_ns, int64_t pid, struct at_result *result, struct error *err)
{
    struct at a = {
        .db = db, .codec = chunk_codec_open(), .take = change, .arg = &a, .result = result, .stop_event = INT64_MAX};
    int rc = load_sites(&a, err);
    if (rc == 0)
        rc = load(&a, time_ns, pid, err);
    if (rc == 0)
        rc = store_live(&a, err);
    chunk_codec_close(a.codec);
    free(a.live);
    return rc;
}

/* What is in *live is emptied, and listed once. */
static int begin(struct at *a, struct at_live *live, size_t count, struct error *err)
{
    a->codec = chunk_codec_open();
    a->take = change;
    a->arg = a;
    a->live = live;
    a->count = live ? count : 0;
    for (size_t i = 0; i < a->count; i++)
        a->live[i].bytes = a->live[i].count = 0;
    return live ? 0 : load_sites(a, err);
}

int at_values(sqlite3 *db, int64_t time_ns, int64_t stop_event, struct at_live **live, size_t *count,
              struct at_result *result, struct error *err)
{
    struct at a = {.db = db, .result = result, .stop_event = stop_event};
    int rc = begin(&a, *live, *count, err);
    if (rc == 0)
        rc = load(&a, time_ns, 0, err);
    chunk_codec_close(a.codec);
    *live = a.live;
    *count = a.count;
    return rc;
}

int at_keyframe(sqlite3 *db, int64_t time_ns, struct at_live **live, size_t *count, int64_t *first_event,
                struct at_result *result, struct error *err)
{
    struct at a = {.db = db, .result = result, .stop_event = INT64_MAX};
    *result = (struct at_result){.time_ns = time_ns};
    int rc = begin(&a, *live, *count, err);
    if (rc == 0)
        rc = load_keyframe(&a, time_ns, err);
    chunk_codec_close(a.codec);
    *live = a.live;
    *count = a.count;
    *first_event = a.first_event;
    return rc;
}

int at_changes(sqlite3 *db, int64_t time_ns, at_take *take, void *arg, struct at_result *result, struct error *err)
{
    struct at a = {
        .db = db, .codec = chunk_codec_open(), .take = take, .arg = arg, .result = result, .stop_event = INT64_MAX};
    int rc = load(&a, time_ns, 0, err);
    chunk_codec_close(a.codec);
    return rc;
}

/* The instants within a chunk read its events, each for itself; for those behind it its sums do. */
static void read_series(struct at *a, sqlite3_stmt *s, int64_t first, int64_t after, int64_t time_ns)
{
    struct series *series = a->series;
    const int64_t first_ns = sqlite3_column_int64(s, 0), last_ns = sqlite3_column_int64(s, 1);
    for (; series->next < series->count && series->times_ns[series->next] < last_ns; series->next++)
        if (series->times_ns[series->next] >= first_ns) {
            series->reach(a->arg, series->next, series->next);
            read_events(a, s, first, series->times_ns[series->next]);
        }
    if (series->next == series->count)
        return;
    series->reach(a->arg, series->next, series->count - 1);
    read_until(a, s, first, after, time_ns);
}

int at_series(sqlite3 *db, const int64_t *times_ns, int count, at_reach *reach, at_take *take, void *arg,
              struct error *err)
{
    struct at_result result = {0};
    struct series series = {times_ns, count, 0, reach};
    struct at a = {.db = db,
                   .codec = chunk_codec_open(),
                   .take = take,
                   .arg = arg,
                   .series = &series,
                   .result = &result,
                   .stop_event = INT64_MAX};
    reach(arg, 0, count - 1);
    int rc = load_keyframe(&a, times_ns[0], err);
    if (rc == 0)
        rc = read_chunks(&a, times_ns[count - 1], read_series, err);
    chunk_codec_close(a.codec);
    return rc ? rc : result.is_exact && !result.chunks_damaged && result.chunks_summed + result.events_read > 0;
}

void at_explain(const struct at_result *result, int64_t asked_ns, struct buf *title)
{
    char text[UNITS_TEXT];
    if (!result->is_exact && result->keyframe_ns < 0)
        buf_printf(title, ": no events are kept at %s, so nothing is known of that time", units_ns(text, asked_ns));
    else if (!result->is_exact)
        buf_printf(title, ": the stored instant before %s, as events around it are not kept", units_ns(text, asked_ns));
    if (result->chunks_damaged)
        buf_printf(title, "; %lld damaged parts were skipped, so this is not exact", (long long)result->chunks_damaged);
}

int64_t at_end_ns(sqlite3 *db)
{
    int64_t end_ns = db_meta_int(db, "duration_ns", 0);
    int64_t last_ns = db_int(db, "SELECT max(last_ns) FROM event_chunk", 0);
    return last_ns > end_ns ? last_ns : end_ns;
}

int at_check(sqlite3 *db, int64_t time_ns, const char *option, struct error *err)
{
    char text[2][UNITS_TEXT];
    int rc = merged_refuse(db, option, err);
    if (rc)
        return rc;
    const int64_t end_ns = at_end_ns(db);
    if (time_ns <= end_ns)
        return rotated_part_check(db, time_ns, option, err);
    int is_at = strcmp(option, "--at") == 0;
    return error_set(err, EINVAL, "%s %s: the run ended at %s%s", option, units_ns(text[0], time_ns),
                     units_ns(text[1], end_ns), is_at ? "; --at end shows what was live then" : "");
}
