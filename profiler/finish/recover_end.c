/*
 * What a site holds follows from its own row, which is of the same commit as the events: inherited and allocated, less
 * freed, less what ended with its process. The file is untrusted: what does not add up counts as nothing.
 */
#include "recover_end.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/rotated.h"
#include "../../common/wrap.h"
#include "finish_private.h"
#include "packed_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct site {
    int64_t id;
    int64_t device_id;
    int64_t end_bytes, end_count; /* as they are from now on */
    int64_t live_bytes, live_count;
    int64_t torn_bytes, torn_count; /* of end: freed since, as site_teardown says it from now on */
    int64_t peak_bytes, peak_count; /* at the device's peak */
    uint8_t is_changed;
};

struct total {
    int64_t device_id;
    char kind[32];
    int64_t end_bytes, end_count; /* to be added */
};

struct ending {
    sqlite3 *db;
    struct error *err;
    struct chunk_codec *codec;
    struct site *sites;
    size_t site_count, site_capacity;
    struct total *totals;
    size_t total_count, total_capacity;
    int is_tearing;        /* an interpreter was taking itself down */
    struct packed *packed; /* the connection's, where sites are packed */
};

static int64_t not_negative(int64_t value)
{
    return value > 0 ? value : 0;
}

/* --- sites --- */

/* What is live now and was when an interpreter began to take itself down is in end already, once. Where one was at it,
 * what it allocates meanwhile is taken for blocks of before. */
static int64_t new_end(const struct ending *x, int64_t end, int64_t torn, int64_t live)
{
    int64_t more = x->is_tearing && live <= torn ? 0 : x->is_tearing ? wrap_subtract(live, torn) : live;
    int64_t sum;
    return __builtin_add_overflow(end, more, &sum) ? end : sum;
}

static void add_total(struct ending *x, int64_t device_id, const char *kind, int64_t bytes, int64_t count)
{
    for (size_t i = 0; i < x->total_count; i++) {
        struct total *t = &x->totals[i];
        if (t->device_id != device_id || (strcmp(t->kind, kind) != 0 && strcmp(t->kind, "all") != 0))
            continue;
        wrap_change(&t->end_bytes, (uint64_t)bytes);
        wrap_change(&t->end_count, (uint64_t)count);
    }
}

enum site_column { /* of a row of SQL; the first three are no numbers that add up */
                   SITE_ID,
                   SITE_DEVICE,
                   SITE_KIND,
                   SITE_ALLOC_BYTES,
                   SITE_ALLOC_COUNT,
                   SITE_FREE_BYTES,
                   SITE_FREE_COUNT,
                   SITE_END_BYTES,
                   SITE_END_COUNT,
                   SITE_PEAK_BYTES,
                   SITE_PEAK_COUNT,
                   SITE_TORN_BYTES,
                   SITE_TORN_COUNT,
                   SITE_START_BYTES,
                   SITE_START_COUNT,
                   SITE_COLUMNS
};

static void add_site(struct ending *x, const int64_t v[SITE_COLUMNS], const char *kind)
{
    struct site *site = ARRAY_ADD(x->sites, x->site_count, x->site_capacity);
    int64_t ended_bytes = wrap_subtract(v[SITE_END_BYTES], v[SITE_TORN_BYTES]);
    int64_t ended_count = wrap_subtract(v[SITE_END_COUNT], v[SITE_TORN_COUNT]);
    int64_t had_bytes = wrap_add(v[SITE_START_BYTES], v[SITE_ALLOC_BYTES]);
    int64_t had_count = wrap_add(v[SITE_START_COUNT], v[SITE_ALLOC_COUNT]);
    *site = (struct site){
        .id = v[SITE_ID],
        .device_id = v[SITE_DEVICE],
        .live_bytes = not_negative(wrap_subtract(wrap_subtract(had_bytes, v[SITE_FREE_BYTES]), ended_bytes)),
        .live_count = not_negative(wrap_subtract(wrap_subtract(had_count, v[SITE_FREE_COUNT]), ended_count)),
        .peak_bytes = v[SITE_PEAK_BYTES],
        .peak_count = v[SITE_PEAK_COUNT],
    };
    site->end_bytes = new_end(x, v[SITE_END_BYTES], v[SITE_TORN_BYTES], site->live_bytes);
    site->end_count = new_end(x, v[SITE_END_COUNT], v[SITE_TORN_COUNT], site->live_count);
    site->torn_bytes = not_negative(wrap_subtract(wrap_subtract(site->end_bytes, ended_bytes), site->live_bytes));
    site->torn_count = not_negative(wrap_subtract(wrap_subtract(site->end_count, ended_count), site->live_count));
    site->is_changed = site->end_bytes != v[SITE_END_BYTES] || site->end_count != v[SITE_END_COUNT];
    if (site->is_changed)
        add_total(x, site->device_id, kind, wrap_subtract(site->end_bytes, v[SITE_END_BYTES]),
                  wrap_subtract(site->end_count, v[SITE_END_COUNT]));
}

#define SITES                                                                                                          \
    "SELECT s.site_id, s.device_id, s.kind, s.alloc_bytes, s.alloc_count, s.free_bytes, s.free_count, s.end_bytes, "   \
    "s.end_count, s.at_peak_bytes, s.at_peak_count, t.freed_bytes, t.freed_count"
#define OF_SITES " FROM main.site s LEFT JOIN main.site_teardown t ON t.site_id = s.site_id"

static int read_plain_sites(struct ending *x)
{
    static const char plain[] = SITES ", 0, 0" OF_SITES " ORDER BY s.site_id";
    static const char started[] = SITES ", b.start_bytes, b.start_count" OF_SITES
                                        " LEFT JOIN main.site_start b ON b.site_id = s.site_id ORDER BY s.site_id";
    sqlite3_stmt *s = NULL;
    int64_t v[SITE_COLUMNS];
    int rc = db_prepare(x->db, rotated_has_start(x->db) ? started : plain, &s, x->err);
    while (rc == 0 && db_next(s, &rc, x->err)) {
        for (int i = 0; i < SITE_COLUMNS; i++)
            v[i] = sqlite3_column_int64(s, i);
        add_site(x, v, db_text(s, SITE_KIND));
    }
    sqlite3_finalize(s);
    return rc;
}

/* What earlier versions had as rows beside packed sites: by site id, freed_bytes and then freed_count. */
static int read_teardown(struct ending *x, uint32_t rows, int64_t *torn)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(x->db, "SELECT site_id, freed_bytes, freed_count FROM main.site_teardown", &s, x->err);
    while (rc == 0 && db_next(s, &rc, x->err)) {
        int64_t id = sqlite3_column_int64(s, 0);
        if (id < 1 || id > rows)
            continue;
        torn[2 * id] = sqlite3_column_int64(s, 1);
        torn[2 * id + 1] = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return rc;
}

/* By site id, start_bytes and then start_count; NULL: there is none. */
static int read_starts(struct ending *x, uint32_t rows, int64_t **starts)
{
    sqlite3_stmt *s = NULL;
    int rc = 0;
    if (!rotated_has_start(x->db))
        return 0;
    rc = db_prepare(x->db, "SELECT site_id, start_bytes, start_count FROM main.site_start", &s, x->err);
    while (rc == 0 && db_next(s, &rc, x->err)) {
        int64_t id = sqlite3_column_int64(s, 0);
        if (!*starts)
            *starts = xcalloc(2 * (size_t)rows + 2, sizeof **starts);
        if (id < 1 || id > rows)
            continue;
        (*starts)[2 * id] = sqlite3_column_int64(s, 1);
        (*starts)[2 * id + 1] = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return rc;
}

static void add_packed_sites(struct ending *x, const struct packed_values *const *columns, const int64_t *torn,
                             const int64_t *starts)
{
    uint32_t rows = (uint32_t)packed_count(x->packed, PACKED_TABLE_site);
    ARRAY_ROOM(x->sites, rows, x->site_capacity);
    for (uint32_t row = 1; row <= rows; row++) {
        int64_t v[SITE_COLUMNS] = {[SITE_ID] = row};
        for (int i = SITE_DEVICE; i <= SITE_TORN_COUNT; i++)
            v[i] = (int64_t)packed_at(columns[i], row);
        if (starts) {
            v[SITE_START_BYTES] = starts[2 * row];
            v[SITE_START_COUNT] = starts[2 * row + 1];
        }
        if (torn) {
            v[SITE_TORN_BYTES] = torn[2 * row];
            v[SITE_TORN_COUNT] = torn[2 * row + 1];
        }
        add_site(x, v, kind_name((unsigned)v[SITE_KIND]));
    }
}

static int read_packed_sites(struct ending *x)
{
    static const enum packed_column of[SITE_TORN_COUNT + 1] = {
        [SITE_DEVICE] = PACKED_site_device_id,         [SITE_KIND] = PACKED_site_kind,
        [SITE_ALLOC_BYTES] = PACKED_site_alloc_bytes,  [SITE_ALLOC_COUNT] = PACKED_site_alloc_count,
        [SITE_FREE_BYTES] = PACKED_site_free_bytes,    [SITE_FREE_COUNT] = PACKED_site_free_count,
        [SITE_END_BYTES] = PACKED_site_end_bytes,      [SITE_END_COUNT] = PACKED_site_end_count,
        [SITE_PEAK_BYTES] = PACKED_site_at_peak_bytes, [SITE_PEAK_COUNT] = PACKED_site_at_peak_count,
        [SITE_TORN_BYTES] = PACKED_site_torn_bytes,    [SITE_TORN_COUNT] = PACKED_site_torn_count};
    const struct packed_values *columns[SITE_TORN_COUNT + 1];
    int64_t *torn = NULL, *starts = NULL;
    long count = packed_count(x->packed, PACKED_TABLE_site);
    int read_rc = count < 0 ? (int)count : 0, rc = 0;
    for (int i = SITE_DEVICE; i <= SITE_TORN_COUNT && read_rc == 0; i++)
        read_rc = packed_read(x->packed, of[i], &columns[i]);
    if (read_rc)
        return error_set(x->err, -read_rc, "%s: %s", sqlite3_db_filename(x->db, "main"), packed_error(read_rc));
    if (!packed_has_column(x->db, PACKED_site_torn_count)) {
        torn = xcalloc(2 * (size_t)count + 2, sizeof *torn);
        rc = read_teardown(x, (uint32_t)count, torn);
    }
    if (rc == 0)
        rc = read_starts(x, (uint32_t)count, &starts);
    if (rc == 0)
        add_packed_sites(x, columns, torn, starts);
    free(starts);
    free(torn);
    return rc;
}

static int write_plain(struct ending *x)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(x->db, "UPDATE main.site SET end_bytes = ?, end_count = ? WHERE site_id = ?", &s, x->err);
    for (size_t i = 0; rc == 0 && i < x->site_count; i++) {
        if (!x->sites[i].is_changed)
            continue;
        sqlite3_bind_int64(s, 1, x->sites[i].end_bytes);
        sqlite3_bind_int64(s, 2, x->sites[i].end_count);
        sqlite3_bind_int64(s, 3, x->sites[i].id);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(x->db, x->err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_torn(struct ending *x)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(x->db, "DELETE FROM site_teardown", x->err);
    if (rc == 0)
        rc = db_prepare(x->db, "INSERT INTO site_teardown(site_id, freed_bytes, freed_count) VALUES(?, ?, ?)", &s,
                        x->err);
    for (size_t i = 0; rc == 0 && i < x->site_count; i++) {
        if (!x->sites[i].torn_count)
            continue;
        sqlite3_bind_int64(s, 1, x->sites[i].id);
        sqlite3_bind_int64(s, 2, x->sites[i].torn_bytes);
        sqlite3_bind_int64(s, 3, x->sites[i].torn_count);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(x->db, x->err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

/* --- the same, packed: all columns anew, as at the end of a recording --- */

static uint64_t packed_value(const struct ending *x, enum packed_column c, const struct packed_values *old,
                             uint32_t row)
{
    if (c == PACKED_site_end_bytes)
        return (uint64_t)x->sites[row - 1].end_bytes;
    if (c == PACKED_site_end_count)
        return (uint64_t)x->sites[row - 1].end_count;
    if (c == PACKED_site_torn_bytes)
        return x->sites[row - 1].torn_count ? (uint64_t)x->sites[row - 1].torn_bytes : 0;
    if (c == PACKED_site_torn_count)
        return (uint64_t)x->sites[row - 1].torn_count;
    return packed_at(old, row);
}

static int write_columns(struct ending *x, const struct packed_values *const *columns)
{
    sqlite3_stmt *insert = NULL;
    uint32_t rows = (uint32_t)x->site_count;
    uint64_t *values = xmalloc((rows + 1ul) * sizeof *values);
    int rc = db_exec(x->db, "DELETE FROM main.packed WHERE table_name = 'site'", x->err);
    if (rc == 0)
        rc = db_prepare(x->db, PACKED_INSERT, &insert, x->err);
    for (enum packed_column c = PACKED_KEY_site; rc == 0 && c < PACKED_site_line_id; c++) {
        for (uint32_t row = 1; row <= rows; row++)
            values[row] = packed_value(x, c, columns[c], row);
        rc = packed_write(insert, x->codec, c, values, rows, x->err);
    }
    sqlite3_finalize(insert);
    free(values);
    return rc;
}

static int write_packed(struct ending *x)
{
    const struct packed_values *columns[PACKED_site_line_id] = {NULL};
    int rc = 0;
    for (enum packed_column c = PACKED_KEY_site; rc == 0 && c < PACKED_site_line_id; c++)
        rc = packed_read(x->packed, c, &columns[c]);
    if (rc)
        return error_set(x->err, -rc, "%s: %s", sqlite3_db_filename(x->db, "main"), packed_error(rc));
    rc = write_columns(x, columns);
    return rc ? rc : db_exec(x->db, "DELETE FROM site_teardown", x->err); /* in the columns now */
}

/* Not where there is a teardown: it would need columns that the copy's file lacks. */
static int is_in_memory(const struct ending *x, int is_private)
{
    return is_private && !x->is_tearing && !packed_has_column(x->db, PACKED_site_torn_count) &&
           !db_int(x->db, "SELECT EXISTS (SELECT 1 FROM main.site_teardown)", 0);
}

static void set_packed(struct ending *x)
{
    uint64_t *bytes = xcalloc(x->site_count + 1, sizeof *bytes), *counts = xcalloc(x->site_count + 1, sizeof *counts);
    for (size_t i = 0; i < x->site_count; i++) {
        bytes[i + 1] = (uint64_t)x->sites[i].end_bytes;
        counts[i + 1] = (uint64_t)x->sites[i].end_count;
    }
    packed_set(x->packed, PACKED_site_end_bytes, bytes);
    packed_set(x->packed, PACKED_site_end_count, counts);
    packed_keep(x->packed);
}

/* --- totals and threads --- */

static int read_totals(struct ending *x)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(x->db, "SELECT device_id, kind FROM total LIMIT 4096", &s, x->err);
    while (rc == 0 && db_next(s, &rc, x->err)) {
        struct total *t = ARRAY_ADD(x->totals, x->total_count, x->total_capacity);
        *t = (struct total){.device_id = sqlite3_column_int64(s, 0)};
        snprintf(t->kind, sizeof t->kind, "%s", db_text(s, 1));
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_totals(struct ending *x)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(x->db,
                        "UPDATE total SET end_active_bytes = CAST(end_active_bytes + ? AS INTEGER), "
                        "end_count = CAST(end_count + ? AS INTEGER) WHERE device_id = ? AND kind = ?",
                        &s, x->err);
    for (size_t i = 0; rc == 0 && i < x->total_count; i++) {
        const struct total *t = &x->totals[i];
        sqlite3_bind_int64(s, 1, t->end_bytes);
        sqlite3_bind_int64(s, 2, t->end_count);
        sqlite3_bind_int64(s, 3, t->device_id);
        sqlite3_bind_text(s, 4, t->kind, -1, SQLITE_STATIC);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(x->db, x->err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

#define IS_RUNNING                                                                                                     \
    " WHERE scope = 'thread' AND key_id IN (SELECT thread_id FROM thread JOIN process p USING(process_id) WHERE "      \
    "p.end_ns IS NULL)"
#define THREAD_END(bytes, count)                                                                                       \
    "UPDATE account SET end_bytes = CAST(max(end_bytes, alloc_bytes - free_bytes" bytes ") AS INTEGER), "              \
    "end_count = CAST(max(end_count, alloc_count - free_count" count ") AS INTEGER)" IS_RUNNING
#define INHERITED(what)                                                                                                \
    " + coalesce((SELECT " what " FROM main.account_start i WHERE i.scope = account.scope AND i.inclusive = "          \
    "account.inclusive AND i.device_id = account.device_id AND i.kind = account.kind AND i.key_id = account.key_id), " \
    "0)"

/* A thread belongs to one process: where that has not ended, nothing of it has but what a teardown counted. */
static int write_threads(struct ending *x)
{
    static const char plain[] = THREAD_END("", "");
    static const char started[] = THREAD_END(INHERITED("start_bytes"), INHERITED("start_count"));
    return db_exec(x->db, rotated_has_start(x->db) ? started : plain, x->err);
}

/* --- key frames --- */

struct instant {
    int64_t time_ns, event_count;
    int64_t chunk_id; /* 0: none */
};

static int write_keyframe(struct ending *x, const struct instant *at, const char *reason, int64_t device_id)
{
    int is_peak = device_id >= 0;
    size_t count = 0;
    sqlite3_stmt *s = NULL;
    struct buf data = BUF(1u << 30);
    struct chunk_live *live = xmalloc((x->site_count + 1) * sizeof *live);
    for (size_t i = 0; i < x->site_count; i++) {
        const struct site *site = &x->sites[i];
        int64_t held = is_peak ? (site->device_id == device_id ? site->peak_count : 0) : site->live_count;
        if (held > 0 && site->id > 0 && site->id <= UINT32_MAX)
            live[count++] = (struct chunk_live){(uint32_t)site->id, 0, (uint64_t)held,
                                                (uint64_t)(is_peak ? site->peak_bytes : site->live_bytes)};
    }
    int rc = chunk_encode_live(x->codec, live, count, &data);
    free(live);
    if (rc == 0)
        rc = db_prepare(x->db,
                        "INSERT OR REPLACE INTO keyframe(time_ns, event_count, chunk_id, reason, device_id, data) "
                        "VALUES(?, ?, nullif(?, 0), ?, nullif(?, -1), ?)",
                        &s, x->err);
    else
        rc = error_set(x->err, -rc, "what was live cannot be written: %s", strerror(-rc));
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, at->time_ns);
        sqlite3_bind_int64(s, 2, at->event_count);
        sqlite3_bind_int64(s, 3, at->chunk_id);
        sqlite3_bind_text(s, 4, reason, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 5, device_id);
        sqlite3_bind_blob64(s, 6, data.data, data.length, SQLITE_STATIC);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(x->db, x->err);
    }
    sqlite3_finalize(s);
    buf_free(&data);
    return rc;
}

/* Where there are no events, those of the key frames tell how they lie to each other. */
static struct instant end_of_events(struct ending *x)
{
    int64_t last_ns = db_int(x->db, "SELECT max(last_ns) FROM event_chunk", 0);
    int64_t keyframe_ns = db_int(x->db, "SELECT max(time_ns) FROM keyframe", 0);
    struct instant at = {.time_ns = db_meta_int(x->db, "duration_ns", 0)};
    at.time_ns = at.time_ns > last_ns ? at.time_ns : last_ns;
    at.time_ns = at.time_ns > keyframe_ns ? at.time_ns : keyframe_ns;
    at.chunk_id = db_int(x->db, "SELECT max(chunk_id) FROM event_chunk", 0);
    at.event_count = at.chunk_id ? db_int(x->db,
                                          "SELECT first_event + event_count FROM event_chunk ORDER BY chunk_id DESC "
                                          "LIMIT 1",
                                          0)
                                 : db_int(x->db, "SELECT max(event_count) FROM keyframe", 0);
    return at;
}

/* Within a chunk that the peak's instant lies in: the first of its events that reach the most. */
struct search {
    int64_t device_id, peak_ns;
    int64_t active_bytes; /* since the first such chunk began */
    int64_t most_bytes;
    struct instant found;
};

static void search_events(struct search *x, const struct chunk_event *events, long count, int64_t first_event,
                          int64_t chunk_id)
{
    for (long i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        int is_birth = chunk_op_is_birth(e->op);
        if (e->device != x->device_id || (!is_birth && !chunk_op_is_loss(e->op)))
            continue;
        uint64_t change = is_birth ? e->size_bytes : -e->size_bytes;
        wrap_change(&x->active_bytes, change);
        if (!is_birth || (int64_t)e->time_ns != x->peak_ns ||
            (x->found.event_count && x->active_bytes <= x->most_bytes))
            continue;
        x->most_bytes = x->active_bytes;
        x->found = (struct instant){x->peak_ns, first_event + i + 1, chunk_id};
    }
}

static int search_chunks(struct ending *x, struct search *search)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(x->db,
                        "SELECT data, first_event, chunk_id FROM event_chunk WHERE first_ns <= ?1 AND last_ns >= ?1 "
                        "ORDER BY chunk_id",
                        &s, x->err);
    if (rc == 0)
        sqlite3_bind_int64(s, 1, search->peak_ns);
    while (rc == 0 && db_next(s, &rc, x->err)) {
        const struct chunk_event *events;
        const void *data = sqlite3_column_blob(s, 0);
        int64_t first = sqlite3_column_int64(s, 1);
        long n = data ? chunk_decode_events(x->codec, data, (size_t)sqlite3_column_bytes(s, 0), &events) : 0;
        if (first >= 0 && first < INT64_MAX / 2)
            search_events(search, events, n > 0 ? n : 0, first, sqlite3_column_int64(s, 2));
    }
    sqlite3_finalize(s);
    return rc;
}

/* Without the peak's event there is no telling what came before it: then only its time is known. */
static int write_peak(struct ending *x, int64_t device_id, int64_t peak_ns, int64_t peak_bytes)
{
    struct search search = {.device_id = device_id, .peak_ns = peak_ns};
    int64_t sum = 0;
    for (size_t i = 0; i < x->site_count; i++)
        if (x->sites[i].device_id == device_id)
            wrap_change(&sum, (uint64_t)x->sites[i].peak_bytes);
    if (sum != peak_bytes)
        return 0;
    int rc = search_chunks(x, &search);
    if (rc)
        return rc;
    if (search.found.event_count)
        return write_keyframe(x, &search.found, "peak", device_id);
    if (db_int(x->db, "SELECT 1 FROM event_chunk WHERE last_ns >= (SELECT min(peak_active_ns) FROM total)", 0))
        return 0; /* damaged */
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT max(event_count) FROM keyframe WHERE time_ns <= %lld", (long long)peak_ns);
    struct instant at = {peak_ns, db_int(x->db, sql, 0), 0};
    return write_keyframe(x, &at, "peak", device_id);
}

static int write_peaks(struct ending *x)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(x->db,
                        "SELECT device_id, peak_active_ns, peak_active_bytes FROM total WHERE kind = 'all' AND "
                        "peak_active_bytes > 0 AND device_id BETWEEN 0 AND 255",
                        &s, x->err);
    while (rc == 0 && db_next(s, &rc, x->err))
        rc = write_peak(x, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
    sqlite3_finalize(s);
    return rc;
}

static int write_sites(struct ending *x)
{
    if (x->packed)
        return write_packed(x);
    int rc = write_plain(x);
    return rc == 0 && x->is_tearing ? write_torn(x) : rc;
}

/* Own peaks are found where the events end all that the sites say has ended. */
static int note_running(struct ending *x)
{
    int is_changed = 0;
    for (size_t i = 0; i < x->site_count; i++)
        is_changed |= x->sites[i].is_changed;
    if (!is_changed || db_int(x->db, "SELECT EXISTS (SELECT 1 FROM teardown)", 0))
        return 0;
    return db_meta_set_text(x->db, "own_peak_incomplete", OWNPEAK_RUNNING) ? db_error(x->db, x->err) : 0;
}

static int write_all(struct ending *x, int is_private)
{
    int is_memory = x->packed && is_in_memory(x, is_private);
    int rc = is_memory ? 0 : write_sites(x);
    if (rc == 0)
        rc = write_totals(x);
    if (rc == 0)
        rc = write_threads(x);
    if (rc == 0)
        rc = write_peaks(x);
    if (rc == 0) {
        struct instant end = end_of_events(x);
        rc = write_keyframe(x, &end, "end", -1);
    }
    if (rc == 0 && is_private)
        rc = note_running(x);
    if (rc == 0 && is_memory) /* last: the caller cannot take it back */
        set_packed(x);
    return rc;
}

static int open_packed(struct ending *x)
{
    if (!packed_has(x->db, PACKED_TABLE_site))
        return 0;
    if (packed_register(x->db) != 0 || !(x->packed = packed_shared(x->db)))
        return error_set(x->err, ENOMEM, "no memory to read the sites");
    packed_hold(x->packed);
    return 0;
}

int recover_end(sqlite3 *db, int is_private, struct error *err)
{
    struct ending x = {.db = db, .err = err, .codec = chunk_codec_open()};
    x.is_tearing = (int)db_int(
        db, "SELECT EXISTS (SELECT 1 FROM teardown JOIN process p USING(process_id) WHERE p.end_ns IS NULL)", 0);
    int rc = x.codec ? 0 : error_set(err, ENOMEM, "no memory to read the events");
    if (rc == 0)
        rc = open_packed(&x);
    if (rc == 0)
        rc = read_totals(&x);
    if (rc == 0)
        rc = x.packed ? read_packed_sites(&x) : read_plain_sites(&x);
    if (rc == 0)
        rc = write_all(&x, is_private);
    if (x.packed)
        packed_let(x.packed);
    chunk_codec_close(x.codec);
    free(x.sites);
    free(x.totals);
    return rc;
}
