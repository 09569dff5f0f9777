#include "glance.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/packed.h"
#include "../../common/wrap.h"
#include "../query/estimate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SITES_MAX      (1u << 24) /* ids beyond are of no file that a collector wrote */
#define CHANGE_CHUNKS  128        /* of events; where the last seconds have more, what grew is not told */
#define OPEN_TRIES     60         /* of a file that nothing is in yet; */
#define OPEN_NS        50000000   /* and between two of them */
#define GLANCE_PART_NS 1000000000

/* --- the recording --- */

static void read_meta(sqlite3 *db, struct glance *l)
{
    char *state = db_meta_text(db, "state"), *kept = db_meta_text(db, "events_kept");
    l->command = db_meta_text(db, "command");
    l->cwd = db_meta_text(db, "cwd");
    l->partial = db_meta_text(db, "partial");
    l->sample_bytes = estimate_mean_bytes(db);
    l->is_recording = (!state || !strcmp(state, "recording")) && !l->partial; /* NULL: it has just begun */
    l->has_events = kept && !strcmp(kept, "all");
    l->duration_ns = db_meta_int(db, "duration_ns", 0);
    l->duration_ns = l->duration_ns < 0 ? 0 : l->duration_ns;
    l->event_count = db_meta_int(db, "event_count", 0);
    l->pid = db_int(db, "SELECT pid FROM process ORDER BY process_id LIMIT 1", 0);
    free(state);
    free(kept);
}

static int64_t int_or_unknown(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? GLANCE_UNKNOWN : sqlite3_column_int64(s, column);
}

/* Of a run that is over, the end of the timeline has nothing: all processes have ended. */
static int read_devices(sqlite3 *db, struct glance *l, struct error *err)
{
    static const char sql[] =
        "SELECT d.device_id, d.name, t.reserved_last_bytes, t.rss_last_bytes, d.total_bytes, o.peak_active_bytes, "
        "o.peak_reserved_bytes FROM main.device d LEFT JOIN main.timeline t ON ?1 AND t.device_id = d.device_id AND "
        "t.level = 0 AND t.time_ns = (SELECT max(time_ns) FROM main.timeline x WHERE x.device_id = d.device_id AND "
        "x.level = 0) LEFT JOIN main.total o ON o.device_id = d.device_id AND o.kind = 'all' WHERE d.device_id "
        "BETWEEN 0 AND 255 ORDER BY d.device_id";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    if (rc == 0)
        sqlite3_bind_int(s, 1, l->is_recording);
    while (rc == 0 && db_next(s, &rc, err)) {
        struct glance_device *d = ARRAY_ADD(l->devices, l->device_count, l->device_capacity);
        d->id = sqlite3_column_int64(s, 0);
        d->name = xstrdup(db_text(s, 1));
        d->reserved_bytes = int_or_unknown(s, 2);
        d->used_bytes = int_or_unknown(s, 3);
        d->total_bytes = int_or_unknown(s, 4);
        d->peak_active_bytes = int_or_unknown(s, 5);
        d->peak_reserved_bytes = int_or_unknown(s, 6);
    }
    sqlite3_finalize(s);
    return rc;
}

/* A part without a bucket of its own has what the one before ended with. */
static int read_sparks(sqlite3 *db, struct glance *l, struct error *err)
{
    static const char sql[] = "SELECT device_id, time_ns, active_max_bytes, active_last_bytes FROM main.timeline WHERE "
                              "level = 0 AND time_ns >= ? - width_ns ORDER BY device_id, time_ns";
    sqlite3_stmt *s = NULL;
    int64_t from_ns = l->is_recording && l->duration_ns > GLANCE_SPARK_NS ? l->duration_ns - GLANCE_SPARK_NS : 0;
    l->spark_ns = l->duration_ns - from_ns;
    struct glance_device *d = NULL;
    int64_t last = 0;
    int next = 0, rc = l->spark_ns > 0 ? db_prepare(db, sql, &s, err) : 0;
    if (s)
        sqlite3_bind_int64(s, 1, from_ns);
    while (s && db_next(s, &rc, err)) {
        struct glance_device *of = glance_device_of(l, sqlite3_column_int64(s, 0));
        if (of != d) {
            while (d && next < GLANCE_SPARKS)
                d->spark_bytes[next++] = last;
            d = of;
            next = 0;
            last = 0;
        }
        int64_t time_ns = wrap_subtract(sqlite3_column_int64(s, 1), from_ns), most = sqlite3_column_int64(s, 2);
        int part = time_ns < 0              ? 0
                   : time_ns >= l->spark_ns ? GLANCE_SPARKS - 1
                                            : (int)((double)time_ns / (double)l->spark_ns * GLANCE_SPARKS);
        while (d && next <= part)
            d->spark_bytes[next++] = last;
        if (d && most > d->spark_bytes[part])
            d->spark_bytes[part] = most;
        last = sqlite3_column_int64(s, 3);
    }
    while (d && next < GLANCE_SPARKS)
        d->spark_bytes[next++] = last;
    sqlite3_finalize(s);
    return rc;
}

/* --- sites --- */

static void make_room(struct glance *l, uint32_t site_end)
{
    l->site_end = site_end;
    l->bytes = xcalloc(site_end + 1ul, sizeof *l->bytes);
    l->count = xcalloc(site_end + 1ul, sizeof *l->count);
    l->device = xcalloc(site_end + 1ul, sizeof *l->device);
}

/* What no writer wrote counts as nothing. */
static int64_t live(uint64_t allocated, uint64_t freed, uint64_t ended, uint64_t torn)
{
    int64_t value = (int64_t)(allocated - freed - (ended - torn));
    return value > 0 ? value : 0;
}

static int read_columns(struct packed *p, const enum packed_column *columns, size_t count,
                        const struct packed_values **values)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = packed_read(p, columns[i], &values[i]);
    return rc;
}

static void take_packed(struct glance *l, const struct packed_values *const v[9])
{
    for (uint32_t i = 1; i < l->site_end; i++) {
        l->device[i] = (uint8_t)packed_at(v[0], i);
        if (l->is_recording) {
            l->bytes[i] = live(packed_at(v[3], i), packed_at(v[4], i), packed_at(v[1], i), packed_at(v[7], i));
            l->count[i] = live(packed_at(v[5], i), packed_at(v[6], i), packed_at(v[2], i), packed_at(v[8], i));
        } else {
            l->bytes[i] = (int64_t)packed_at(v[1], i);
            l->count[i] = (int64_t)packed_at(v[2], i);
        }
    }
}

static int read_packed_sites(sqlite3 *db, struct glance *l, struct error *err)
{
    static const enum packed_column columns[] = {
        PACKED_site_device_id,   PACKED_site_end_bytes,  PACKED_site_end_count,
        PACKED_site_alloc_bytes, PACKED_site_free_bytes, PACKED_site_alloc_count,
        PACKED_site_free_count,  PACKED_site_torn_bytes, PACKED_site_torn_count};
    const struct packed_values *values[9];
    struct packed *p = packed_open(db);
    if (!p)
        return error_set(err, ENOMEM, "out of memory");
    long rows = packed_count(p, PACKED_TABLE_site);
    int rc = rows < 0 ? (int)rows : read_columns(p, columns, l->is_recording ? 9 : 3, values);
    if (rc)
        error_set(err, -rc, "%s: %s", sqlite3_db_filename(db, "main"), packed_error(rc));
    else if (rows < SITES_MAX) {
        make_room(l, (uint32_t)rows + 1);
        take_packed(l, values);
    } else
        rc = error_set(err, EFBIG, "%s: too many sites", sqlite3_db_filename(db, "main"));
    packed_close(p);
    return rc;
}

/* What files of older versions lack is empty there. */
static const char *site_sql(sqlite3 *db)
{
    return db_int(db, "SELECT 1 FROM main.sqlite_schema WHERE name = 'site_teardown' AND type = 'table'", 0)
               ? "SELECT s.site_id, s.device_id, s.alloc_bytes, s.free_bytes, s.end_bytes, t.freed_bytes, "
                 "s.alloc_count, s.free_count, s.end_count, t.freed_count FROM main.site s LEFT JOIN "
                 "main.site_teardown t ON t.site_id = s.site_id"
               : "SELECT site_id, device_id, alloc_bytes, free_bytes, end_bytes, 0, alloc_count, free_count, "
                 "end_count, 0 FROM main.site";
}

static int read_plain_sites(sqlite3 *db, struct glance *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t last = db_int(db, "SELECT max(site_id) FROM main.site", 0);
    if (last < 0 || last >= SITES_MAX)
        return error_set(err, EFBIG, "%s: too many sites", sqlite3_db_filename(db, "main"));
    make_room(l, (uint32_t)last + 1);
    int rc = db_prepare(db, site_sql(db), &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        uint64_t v[10];
        for (int i = 0; i < 10; i++)
            v[i] = (uint64_t)sqlite3_column_int64(s, i);
        if (v[0] == 0 || v[0] >= l->site_end)
            continue;
        l->device[v[0]] = (uint8_t)v[1];
        l->bytes[v[0]] = l->is_recording ? live(v[2], v[3], v[4], v[5]) : (int64_t)v[4];
        l->count[v[0]] = l->is_recording ? live(v[6], v[7], v[8], v[9]) : (int64_t)v[8];
    }
    sqlite3_finalize(s);
    return rc;
}

static void sum_devices(struct glance *l)
{
    int64_t bytes[256] = {0}, count[256] = {0};
    for (uint32_t i = 1; i < l->site_end; i++) {
        wrap_change(&bytes[l->device[i]], (uint64_t)l->bytes[i]);
        wrap_change(&count[l->device[i]], (uint64_t)l->count[i]);
    }
    for (size_t i = 0; i < l->device_count; i++) {
        struct glance_device *d = &l->devices[i];
        d->active_bytes = bytes[d->id];
        d->active_count = count[d->id];
    }
}

/* --- what grew --- */

struct growing { /* in a part of the last seconds */
    struct glance *look;
    int64_t *bytes;    /* by site */
    uint32_t *touched; /* sites that are not 0, or were not */
    size_t touched_count, touched_capacity;
    int64_t part;
};

static void end_part(struct growing *g)
{
    struct glance *l = g->look;
    for (size_t i = 0; i < g->touched_count; i++) {
        uint32_t site = g->touched[i];
        if (g->bytes[site])
            *ARRAY_ADD(l->changes, l->change_count, l->change_capacity) =
                (struct glance_change){(int64_t)((uint64_t)(g->part + 1) * GLANCE_PART_NS), g->bytes[site], site};
        g->bytes[site] = 0;
    }
    g->touched_count = 0;
}

static void add_event(struct growing *g, const struct chunk_event *e)
{
    const struct glance *l = g->look;
    int is_birth = chunk_op_is_birth(e->op);
    /* what a program still holds when it ends is live at the end */
    int is_loss = chunk_op_is_loss(e->op) && (l->is_recording || e->op != CHUNK_end);
    if (!e->site_id || e->site_id >= l->site_end || (!is_birth && !is_loss))
        return;
    if ((int64_t)e->time_ns / GLANCE_PART_NS != g->part) {
        end_part(g);
        g->part = (int64_t)e->time_ns / GLANCE_PART_NS;
    }
    if (!g->bytes[e->site_id])
        *ARRAY_ADD(g->touched, g->touched_count, g->touched_capacity) = e->site_id;
    wrap_change(&g->bytes[e->site_id], is_birth ? e->size_bytes : 0 - e->size_bytes);
}

static int read_changes(sqlite3 *db, struct glance *l, struct error *err)
{
    static const char sql[] = "SELECT data FROM main.event_chunk WHERE last_ns >= ? ORDER BY chunk_id";
    struct growing g = {.look = l, .bytes = xcalloc(l->site_end + 1ul, sizeof *g.bytes)};
    const struct chunk_event *events;
    sqlite3_stmt *s = NULL;
    int64_t from_ns = l->duration_ns - GLANCE_GROWTH_NS;
    struct chunk_codec *codec = chunk_codec_open();
    int rc = codec ? db_prepare(db, sql, &s, err) : error_set(err, ENOMEM, "out of memory"), chunks = 0;
    l->has_changes = rc == 0;
    if (s)
        sqlite3_bind_int64(s, 1, from_ns);
    while (l->has_changes && db_next(s, &rc, err)) {
        const void *data = ++chunks <= CHANGE_CHUNKS ? sqlite3_column_blob(s, 0) : NULL;
        long n = data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(s, 0), &events) : -EBADMSG;
        l->has_changes = n >= 0;
        for (long i = 0; i < n; i++)
            if ((int64_t)events[i].time_ns >= from_ns)
                add_event(&g, &events[i]);
    }
    end_part(&g);
    chunk_codec_close(codec);
    sqlite3_finalize(s);
    free(g.bytes);
    free(g.touched);
    return rc;
}

/* --- all --- */

/* The first commit may have less than what says that it is a recording. */
static int has_begun(sqlite3 *db)
{
    return db_int(db, "SELECT 1 FROM main.meta WHERE key = 'state'", 0) != 0;
}

int glance_open(const char *path, sqlite3 **db, struct error *err)
{
    int rc = db_open_read(path, db, err);
    for (int i = 0; (rc == -ENODATA || (rc == 0 && !has_begun(*db))) && i < OPEN_TRIES; i++) {
        if (rc == 0)
            sqlite3_close(*db);
        nanosleep(&(struct timespec){0, OPEN_NS}, NULL);
        rc = db_open_read(path, db, err);
    }
    return rc;
}

static int is_same(const struct glance *before, const struct glance *l)
{
    return before->event_count == l->event_count && before->is_recording == l->is_recording && before->site_end;
}

static void take_over(struct glance *before, struct glance *l)
{
    l->is_same = 1;
    l->site_end = before->site_end;
    l->bytes = before->bytes;
    l->count = before->count;
    l->device = before->device;
    before->bytes = before->count = NULL;
    before->device = NULL;
    before->site_end = 0;
}

int glance_take(const char *path, struct glance *before, struct glance *l, struct error *err)
{
    sqlite3 *db = NULL;
    *l = (struct glance){0};
    int rc = glance_open(path, &db, err);
    if (rc)
        return rc;
    rc = db_exec(db, "BEGIN", err);
    if (rc == 0) {
        read_meta(db, l);
        rc = read_devices(db, l, err);
    }
    if (rc == 0)
        rc = read_sparks(db, l, err);
    if (rc == 0 && before && is_same(before, l))
        take_over(before, l);
    else if (rc == 0)
        rc = packed_has(db, PACKED_TABLE_site) ? read_packed_sites(db, l, err) : read_plain_sites(db, l, err);
    if (rc == 0)
        sum_devices(l);
    if (rc == 0 && !before && l->has_events)
        rc = read_changes(db, l, err);
    sqlite3_close(db);
    return rc;
}

void glance_close(struct glance *l)
{
    for (size_t i = 0; i < l->device_count; i++)
        free(l->devices[i].name);
    free(l->devices);
    free(l->command);
    free(l->cwd);
    free(l->partial);
    free(l->bytes);
    free(l->count);
    free(l->device);
    free(l->changes);
    *l = (struct glance){0};
}

struct glance_device *glance_device_of(const struct glance *l, int64_t id)
{
    for (size_t i = 0; i < l->device_count; i++)
        if (l->devices[i].id == id)
            return &l->devices[i];
    return NULL;
}
