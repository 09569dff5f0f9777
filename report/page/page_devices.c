/* What devices add to the page: the layers of their memory at the stored instants, copies and fills, and allocations
 * that failed. */
#include "page_data.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/search.h"
#include "../findings/failure.h"
#include "../query/short_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A device's memory at an instant, but for its active bytes, which the page sums from its sites. */
enum { ALLOCATED, RESERVED, ABOUT, USED, USED_NS, USED_RESERVED, TOTAL, LAYER_COLUMNS };
static const char *const layer_names[LAYER_COLUMNS] = {
    [ALLOCATED] = "allocated", [RESERVED] = "reserved",
    [ABOUT] = "about", /* 1, 2: allocated, reserved changed near the instant, and are the highest around it */
    [USED] = "used",   /* as the driver says, or RSS; -1: not sampled */
    [USED_NS] = "used_ns",     [USED_RESERVED] = "used_reserved", /* at that sample */
    [TOTAL] = "total",
};
struct layer {
    int64_t values[LAYER_COLUMNS];
};

/* Reserved bytes after each segment's birth or death, where segments are all that is reserved and all have a row. */
struct step {
    int64_t time_ns, bytes;
};

struct layers {
    struct page *page;
    sqlite3_stmt *bucket, *sample, *sample_after;
    struct step *steps; /* of the device being written */
    uint32_t step_count, step_capacity;
};

#define STEPS_MAX 400000

/* Whether the device's segments tell what is reserved on it: pools, mappings and arrays are sums, and the host's heap
 * is sampled; of very many segments some have no row. */
static int has_steps(struct page *page, int64_t device_id)
{
    static const char sql[] = "SELECT NOT EXISTS (SELECT 1 FROM total WHERE device_id = ?1 AND kind IN ('pool', 'vmm', "
                              "'array') AND (alloc_count > 0 OR peak_reserved_bytes > 0)) AND NOT EXISTS (SELECT 1 "
                              "FROM segment WHERE device_id = ?1 GROUP BY kind HAVING count(*) >= ?2)";
    sqlite3_stmt *s = device_id ? page_query(page, sql) : NULL;
    if (!s)
        return 0;
    sqlite3_bind_int64(s, 1, device_id);
    sqlite3_bind_int64(s, 2, SEGMENT_ROWS_MAX);
    int found = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return found;
}

static int read_steps(struct layers *w, int64_t device_id)
{
    /* what a process did not give back goes after its end; at the end it is still there */
    static const char sql[] =
        "WITH g AS (SELECT alloc_ns, coalesce(free_ns, p.end_ns + 1) AS end_ns, size_bytes FROM segment LEFT JOIN "
        "process p USING(process_id) WHERE device_id = ?1) "
        "SELECT time_ns, sum(bytes) OVER (ORDER BY time_ns, bytes) FROM (SELECT alloc_ns AS time_ns, size_bytes AS "
        "bytes FROM g UNION ALL SELECT end_ns, -size_bytes FROM g WHERE end_ns IS NOT NULL) ORDER BY 1, bytes LIMIT ?2";
    sqlite3_stmt *s = page_query(w->page, sql);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, device_id);
    sqlite3_bind_int(s, 2, STEPS_MAX + 1);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        *ARRAY_ADD(w->steps, w->step_count, w->step_capacity) =
            (struct step){sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1)};
    return page_query_end(w->page, s, rc);
}

/* Too many steps are not worth it, and those that do not lead to the device's peak are not all there is: then the
 * timeline tells. */
static int load_steps(struct layers *w, const struct page_device *device, int64_t peak_reserved)
{
    w->step_count = 0;
    int rc = has_steps(w->page, device->device_id) ? read_steps(w, device->device_id) : 0;
    int64_t most = 0;
    for (uint32_t i = 0; i < w->step_count; i++)
        if (w->steps[i].bytes > most)
            most = w->steps[i].bytes;
    if (w->step_count > STEPS_MAX || most != peak_reserved)
        w->step_count = 0;
    return rc;
}

/* The sum after the last step at or before an instant. */
static int64_t reserved_at(const struct layers *w, int64_t time_ns)
{
    const uint32_t low = SEARCH_FIRST(w->step_count, i, w->steps[i].time_ns <= time_ns);
    return low ? w->steps[low - 1].bytes : 0;
}

/* A bucket of the timeline and the one before it tell what was at an instant within, if nothing changed around it. */
static int64_t value_at(int64_t before, int64_t most, int64_t last, int is_reached, int *about)
{
    if (before == most && last == most)
        return most;
    if (is_reached && last == most)
        return most;
    *about = 1;
    return most;
}

static void from_timeline(sqlite3_stmt *s, int64_t time_ns, int is_host, struct layer *l)
{
    int64_t now[8] = {0}, before[8] = {0};
    if (sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < 8; i++)
            now[i] = sqlite3_column_int64(s, i);
    int has_rss = sqlite3_column_type(s, 7) == SQLITE_INTEGER;
    if (sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < 8; i++)
            before[i] = sqlite3_column_int64(s, i);
    int is_past = time_ns >= now[0] && time_ns - now[0] >= now[1], about[2] = {0};
    l->values[ALLOCATED] = is_past ? now[3] : value_at(before[3], now[2], now[3], 0, &about[0]);
    l->values[RESERVED] = is_past ? now[6] : value_at(before[6], now[4], now[6], time_ns >= now[5], &about[1]);
    l->values[ABOUT] = about[0] | about[1] << 1;
    if (is_host && has_rss) {
        l->values[USED] = now[7];
        l->values[USED_NS] = time_ns;
        l->values[USED_RESERVED] = l->values[RESERVED];
    }
}

/* A sample is of another instant: the one before it, or the one after it where that has the same bytes reserved, or is
 * the only one. The page adds what was reserved between the two. */
static void read_sample(sqlite3_stmt *s, const struct page_device *device, int64_t time_ns, struct layer *l)
{
    sqlite3_bind_int64(s, 1, device->device_id);
    sqlite3_bind_int64(s, 2, time_ns);
    if (sqlite3_step(s) == SQLITE_ROW) {
        int64_t reserved = sqlite3_column_int64(s, 2);
        int is_first = l->values[USED] < 0, is_exact = sqlite3_column_int64(s, 0) == time_ns;
        if (is_first || (l->values[USED_RESERVED] != l->values[RESERVED] && reserved == l->values[RESERVED])) {
            l->values[USED_NS] = sqlite3_column_int64(s, 0);
            l->values[USED] = sqlite3_column_int64(s, 1);
            l->values[USED_RESERVED] = reserved;
            l->values[TOTAL] = sqlite3_column_int64(s, 3);
        }
        if (is_exact) { /* of that very event */
            l->values[RESERVED] = reserved;
            l->values[ALLOCATED] = sqlite3_column_int64(s, 4);
            l->values[ABOUT] = 0;
        }
    }
    sqlite3_reset(s);
}

static void find_layer(struct layers *w, const struct page_device *device, int64_t time_ns, struct layer *l)
{
    *l = (struct layer){.values = {[USED] = -1, [USED_NS] = -1, [TOTAL] = device->total_bytes}};
    sqlite3_bind_int64(w->bucket, 1, device->device_id);
    sqlite3_bind_int64(w->bucket, 2, time_ns);
    from_timeline(w->bucket, time_ns, device->device_id == 0, l);
    sqlite3_reset(w->bucket);
    if (w->step_count) {
        l->values[RESERVED] = reserved_at(w, time_ns);
        l->values[ABOUT] &= 1;
    }
    read_sample(w->sample, device, time_ns, l);
    if (time_ns < w->page->duration_ns) /* after it the program's own use is over */
        read_sample(w->sample_after, device, time_ns, l);
}

/* The host's last RSS: after its end a program has none. */
static void find_last_rss(struct page *page, struct layer *l)
{
    l->values[USED] =
        db_int(page->db,
               "SELECT rss_last_bytes FROM timeline WHERE device_id = 0 AND level = 0 AND rss_last_bytes > 0 "
               "ORDER BY time_ns DESC LIMIT 1",
               -1);
}

/* All layers at the last instant with a sample, of the processes that were there then. Where several ended at different
 * times, what each held at its own end is no layer of one instant. */
static int write_last(struct page *page, struct page_pack *pack, const struct page_device *device)
{
    sqlite3_stmt *s =
        page_query(page, "SELECT v.time_ns, v.allocated_bytes, v.active_bytes, v.reserved_bytes, v.used_bytes, "
                         "v.untracked_bytes FROM v_layer v JOIN device d ON d.name = v.device WHERE d.device_id = ?1 "
                         "AND v.instant = 'last'");
    static const char *const names[] = {"time", "allocated", "active", "reserved", "used", "untracked"};
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, device->device_id);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        pack_open(pack, "last", '{');
        for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
            pack_int(pack, names[i], sqlite3_column_int64(s, i));
        pack_close(pack, '}');
        rc = SQLITE_DONE;
    }
    return page_query_end(page, s, rc);
}

/* What the interpreter freed as it took itself down: it counts as live at the end, and was not there any more. */
static int write_torn(struct page *page, struct page_pack *pack, const struct page_device *device)
{
    sqlite3_stmt *s = page_query(page, "SELECT coalesce(sum(x.freed_bytes), 0) FROM site_teardown x JOIN site s "
                                       "USING(site_id) WHERE s.device_id = ?1");
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, device->device_id);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        pack_int(pack, "torn", sqlite3_column_int64(s, 0));
        rc = SQLITE_DONE;
    }
    return page_query_end(page, s, rc);
}

/* Rows: the device's peak, the program's end, then the stored instants. */
static int write_device(struct layers *w, struct page_pack *pack, const struct page_device *device)
{
    struct page *page = w->page;
    uint32_t count = page->instant_count + 2;
    struct layer *rows = xcalloc(count, sizeof *rows);
    sqlite3_stmt *s =
        page_query(page, "SELECT peak_active_ns, (SELECT count(*) FROM device_sample x WHERE x.device_id = "
                         "?1), peak_reserved_bytes FROM total WHERE device_id = ?1 AND kind = 'all'");
    int64_t peak_ns = 0, samples = 0, peak_reserved = 0;
    if (s) {
        sqlite3_bind_int64(s, 1, device->device_id);
        if (sqlite3_step(s) == SQLITE_ROW) {
            peak_ns = sqlite3_column_int64(s, 0);
            samples = sqlite3_column_int64(s, 1);
            peak_reserved = sqlite3_column_int64(s, 2);
        }
        sqlite3_finalize(s);
    }
    int rc = load_steps(w, device, peak_reserved);
    find_layer(w, device, peak_ns, &rows[0]);
    find_layer(w, device, page->duration_ns, &rows[1]);
    if (device->device_id == 0)
        find_last_rss(page, &rows[1]);
    for (uint32_t i = 0; i < page->instant_count; i++)
        find_layer(w, device, page->instants[i].time_ns, &rows[i + 2]);
    pack_open(pack, NULL, '{');
    pack_int(pack, "device", page_device_index(page, device->device_id));
    pack_int(pack, "sample_count", samples);
    if (rc == 0)
        rc = write_last(page, pack, device);
    if (rc == 0)
        rc = write_torn(page, pack, device);
    for (unsigned i = 0; i < LAYER_COLUMNS; i++)
        pack_column(pack, layer_names[i], count, &rows[0].values[i], sizeof *rows, 1);
    pack_close(pack, '}');
    free(rows);
    return rc;
}

#define SAMPLE                                                                                                         \
    "SELECT time_ns, used_bytes, reserved_bytes, total_bytes, allocated_bytes FROM device_sample WHERE device_id = "   \
    "?1 "                                                                                                              \
    "AND time_ns "

static int write_layers(struct page *page, struct page_pack *pack)
{
    struct layers w = {.page = page};
    w.bucket =
        page_query(page, "SELECT time_ns, width_ns, allocated_max_bytes, allocated_last_bytes, reserved_max_bytes, "
                         "reserved_max_ns, reserved_last_bytes, rss_last_bytes FROM timeline WHERE device_id = ?1 "
                         "AND level = 0 AND time_ns <= ?2 ORDER BY time_ns DESC LIMIT 2");
    if (w.bucket)
        w.sample = page_query(page, SAMPLE "<= ?2 ORDER BY time_ns DESC LIMIT 1");
    if (w.sample)
        w.sample_after = page_query(page, SAMPLE "> ?2 ORDER BY time_ns LIMIT 1");
    int rc = w.sample_after ? 0 : -EIO;
    pack_open(pack, "layers", '[');
    for (uint32_t i = 0; i < page->device_count && !rc; i++)
        rc = write_device(&w, pack, &page->devices[i]);
    pack_close(pack, ']');
    free(w.steps);
    sqlite3_finalize(w.bucket);
    sqlite3_finalize(w.sample);
    sqlite3_finalize(w.sample_after);
    return rc;
}

/* --- allocations that failed --- */

static int write_frames(struct page *page, struct page_pack *pack, int64_t stack_id)
{
    sqlite3_stmt *s =
        page_query(page, "SELECT function, file, line, is_allocator, language FROM v_stack WHERE stack_id = ? ORDER BY "
                         "depth LIMIT 32");
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, stack_id);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        char *function = short_name_cut(db_text(s, 0)), *file = short_name_cut(db_text(s, 1));
        pack_open(pack, NULL, '[');
        pack_text(pack, NULL, function);
        pack_text(pack, NULL, file);
        pack_int(pack, NULL, page_line_number(s, 2));
        pack_int(pack, NULL, sqlite3_column_int(s, 3) != 0);
        pack_int(pack, NULL, !strcmp(db_text(s, 4), "python"));
        pack_close(pack, ']');
        free(function);
        free(file);
    }
    return page_query_end(page, s, rc);
}

/* of very many the last: what the program ended on is among them; without those that a program made good */
#define IS_SHOWN "oom_id NOT IN (SELECT oom_id FROM v_oom WHERE is_handled)"
#define FAILURES                                                                                                       \
    "SELECT * FROM (SELECT time_ns, device_id, kind, size_bytes, active_bytes, device_free_bytes, "                    \
    "device_total_bytes, coalesce(stack_id, 0), row_number() OVER (ORDER BY time_ns DESC, oom_id DESC) AS back, "      \
    "row_number() OVER (ORDER BY time_ns, oom_id) AS nth FROM oom WHERE " IS_SHOWN ") WHERE back <= ?1 ORDER BY nth"

static void write_failure(struct page *page, struct page_pack *pack, sqlite3_stmt *s)
{
    pack_open(pack, NULL, '{');
    pack_int(pack, "time", sqlite3_column_int64(s, 0));
    pack_int(pack, "device", page_device_index(page, sqlite3_column_int64(s, 1)));
    pack_text(pack, "kind", db_text(s, 2));
    pack_int(pack, "size", sqlite3_column_int64(s, 3));
    pack_int(pack, "active", sqlite3_column_int64(s, 4));
    if (sqlite3_column_type(s, 5) != SQLITE_NULL)
        pack_int(pack, "free", sqlite3_column_int64(s, 5));
    if (sqlite3_column_type(s, 6) != SQLITE_NULL)
        pack_int(pack, "total", sqlite3_column_int64(s, 6));
    pack_close(pack, '}');
}

int page_write_failures(struct page *page, struct page_pack *pack)
{
    sqlite3_stmt *s = page_query(page, FAILURES);
    if (!s)
        return -EIO;
    sqlite3_bind_int(s, 1, PAGE_FAILURES_MAX);
    int rc;
    pack_open(pack, "failures", '[');
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        write_failure(page, pack, s);
    pack_close(pack, ']');
    pack_int(pack, "failure_count", db_int(page->db, "SELECT count(*) FROM oom WHERE " IS_SHOWN, 0));
    pack_int(pack, "unlisted_count", failure_unlisted_count(page->db));
    pack_int(pack, "retry_count",
             db_int(page->db, "SELECT sum(value) FROM counter WHERE name = 'alloc_retry_count'", 0));
    return page_query_end(page, s, rc);
}

/* By the failures' numbers; empty where there are too many to give each its stack. */
static int write_failure_frames(struct page *page, struct page_pack *pack)
{
    sqlite3_stmt *s = page_query(page, FAILURES);
    if (!s)
        return -EIO;
    sqlite3_bind_int(s, 1, PAGE_FAILURES_MAX);
    int rc = SQLITE_DONE, failed = 0;
    pack_open(pack, "failure_frames", '[');
    for (int nth = 0; !failed && (rc = sqlite3_step(s)) == SQLITE_ROW; nth++) {
        int64_t back = sqlite3_column_int64(s, 8);
        int has_stack = nth < PAGE_FAILURE_STACKS / 2 || back <= PAGE_FAILURE_STACKS / 2;
        pack_open(pack, NULL, '[');
        failed = has_stack ? write_frames(page, pack, sqlite3_column_int64(s, 7)) : 0;
        pack_close(pack, ']');
    }
    pack_close(pack, ']');
    rc = page_query_end(page, s, failed ? SQLITE_DONE : rc);
    return failed ? failed : rc;
}

int page_write_devices(struct page *page, struct page_pack *pack)
{
    pack_open(pack, NULL, '{');
    int rc = write_layers(page, pack);
    if (!rc)
        rc = write_failure_frames(page, pack);
    pack_int(pack, "transfer_lines",
             db_int(page->db,
                    "SELECT count(*) FROM (SELECT 1 FROM v_transfer GROUP BY device, direction, function, file, line)",
                    0));
    if (!rc)
        rc = pack_query(page, pack, "transfers",
                        "SELECT device, direction, function, file, line, sum(transfer_count) AS count, "
                        "sum(transfer_bytes) AS bytes FROM v_transfer GROUP BY device, direction, function, file, line "
                        "ORDER BY 7 DESC, 6 DESC, function, line",
                        PAGE_TRANSFERS_MAX);
    pack_close(pack, '}');
    return rc;
}
