/*
 * A file of massif: a device's memory over time in at most 100 snapshots, the last of what was live at the end, and
 * one, at the exact peak, with the tree of who held it: allocating lines, under each its callers. What is less than a
 * hundredth of the peak is summed up, as massif does; so is what is deeper than its default depth.
 */
#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/units.h"
#include "../query/vtab_event.h"
#include "massif_tree.h"
#include "one_process.h"
#include "sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SNAPSHOTS_MAX = 100, SERIES_MAX = SNAPSHOTS_MAX - 3 }; /* beside the start, the peak and the end */

struct snapshot {
    int64_t time_ns, active_bytes, extra_bytes;
};

struct massif {
    sqlite3 *db;
    const struct export_options *options;
    const char *device;
    int64_t device_id, end_ns, end_bytes;
    struct snapshot series[SERIES_MAX], peak;
    int count;
    int has_series; /* else only the peak and the end are known */
    struct massif_tree tree;
};

/* --- the series --------------------------------------------------------------------------------------------------- */

static void add_snapshot(struct massif *m, int64_t time_ns, int64_t active_bytes, int64_t reserved_bytes)
{
    int64_t extra = reserved_bytes > active_bytes ? reserved_bytes - active_bytes : 0;
    if (m->count < SERIES_MAX && time_ns < m->end_ns)
        m->series[m->count++] = (struct snapshot){time_ns, active_bytes, extra};
}

/* The ends of the timeline's buckets, of the finest level that has few enough; of one that has too many, each nth. */
static int read_timeline(struct massif *m, struct error *err)
{
    static const char sql[] =
        "WITH levels AS (SELECT level, count(*) AS n FROM timeline WHERE device_id = ?1 GROUP BY level), chosen AS "
        "(SELECT level, (n + ?2 - 1) / ?2 AS step FROM levels WHERE level = coalesce((SELECT min(level) FROM levels "
        "WHERE n <= ?2), (SELECT max(level) FROM levels))) SELECT end_ns, active_last_bytes, reserved_last_bytes FROM "
        "(SELECT time_ns + width_ns AS end_ns, active_last_bytes, reserved_last_bytes, row_number() OVER (ORDER BY "
        "time_ns) AS nth, step FROM timeline JOIN chosen USING(level) WHERE device_id = ?1) WHERE nth % step = 0 ORDER "
        "BY 1";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(m->db, sql, &s, err);
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, m->device_id);
        sqlite3_bind_int(s, 2, SERIES_MAX);
    }
    while (rc == 0 && db_next(s, &rc, err))
        add_snapshot(m, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
    sqlite3_finalize(s);
    m->has_series = m->count > 0;
    return rc;
}

/* What one process of several held at the ends of equal parts of the run. What its allocators had is not known. */
static int read_events(struct massif *m, const struct one_process *one, struct error *err)
{
    static const char sql[] =
        "SELECT time_ns, CASE WHEN op IN ('alloc', 'realloc') THEN size_bytes ELSE -size_bytes END FROM v_event WHERE "
        "device = ?1 AND process_id IN (SELECT process_id FROM process WHERE pid = ?2) AND op IN ('alloc', 'realloc', "
        "'free', 'cut', 'end', 'to_segment')";
    int64_t width_ns = m->end_ns / SERIES_MAX + 1, bucket_end_ns = width_ns, active = 0;
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(m->db, sql, &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, m->device, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(s, 2, one->pid);
    }
    while (rc == 0 && db_next(s, &rc, err)) {
        for (; sqlite3_column_int64(s, 0) >= bucket_end_ns && bucket_end_ns < m->end_ns; bucket_end_ns += width_ns)
            add_snapshot(m, bucket_end_ns, active, active);
        m->has_series = 1;
        if (__builtin_add_overflow(active, sqlite3_column_int64(s, 1), &active) || active < 0)
            active = 0; /* a damaged chunk is missing */
    }
    sqlite3_finalize(s);
    return rc;
}

/* What the allocator had beside: the most that was reserved within the shortest stretch that is known. */
static int read_peak_extra(struct massif *m, struct error *err)
{
    static const char sql[] =
        "SELECT reserved_max_bytes FROM timeline WHERE device_id = ?1 AND level = 0 AND time_ns <= "
        "?2 ORDER BY time_ns DESC LIMIT 1";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(m->db, sql, &s, err);
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, m->device_id);
        sqlite3_bind_int64(s, 2, m->peak.time_ns);
    }
    if (rc == 0 && db_next(s, &rc, err) && sqlite3_column_int64(s, 0) > m->peak.active_bytes)
        m->peak.extra_bytes = sqlite3_column_int64(s, 0) - m->peak.active_bytes;
    sqlite3_finalize(s);
    return rc;
}

/* Of what the options keep. */
static int read_peak(struct massif *m, struct error *err)
{
    static const char sql[] =
        "SELECT peak_active_ns, end_active_bytes FROM total WHERE device_id = ?1 AND kind = 'all'";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(m->db, sql, &s, err);
    if (rc == 0)
        sqlite3_bind_int64(s, 1, m->device_id);
    if (rc == 0 && db_next(s, &rc, err)) {
        m->peak.time_ns = sqlite3_column_int64(s, 0);
        m->end_bytes = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    return rc;
}

/* --- the tree ----------------------------------------------------------------------------------------------------- */

static int each_site(struct massif *m, struct export_sites *sites, void (*take)(struct massif_tree *, const void *),
                     struct error *err)
{
    const int stat = export_peak_stat(m->options);
    struct export_site site;
    int rc = export_sites_begin(sites, m->device_id, err);
    while (rc == 0 && (rc = export_sites_next(sites, &site, err)) == 1) {
        struct massif_stack stack = {site.frames, site.count, export_value(sites, &site, stat)};
        if (stack.bytes > 0)
            take(&m->tree, &stack);
        rc = 0;
    }
    return rc;
}

/* Twice over the sites, so that only what has its own line is kept: at most a hundred allocating lines. */
static int build_tree(struct massif *m, struct export_sites *sites, struct error *err)
{
    int rc = each_site(m, sites, massif_tree_count, err);
    if (rc == 0)
        rc = each_site(m, sites, massif_tree_add, err);
    m->peak.active_bytes = massif_tree_bytes(&m->tree);
    return rc;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void put_snapshot(FILE *out, int number, const struct snapshot *s, const char *tree)
{
    fprintf(out,
            "#-----------\nsnapshot=%d\n#-----------\ntime=%lld\nmem_heap_B=%lld\nmem_heap_extra_B=%lld\n"
            "mem_stacks_B=0\nheap_tree=%s\n",
            number, (long long)(s->time_ns / 1000000), (long long)s->active_bytes, (long long)s->extra_bytes, tree);
}

static int write_all(struct massif *m, const struct one_process *one, FILE *out)
{
    const struct snapshot start = {0}, end = {m->end_ns, m->end_bytes, 0};
    int number = 0, has_peak = 0;
    fprintf(out, "desc: memprof export, %s\ncmd: ", m->device);
    for (const char *c = one->command; *c; c++)
        fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
    fputs("\ntime_unit: ms\n", out);
    put_snapshot(out, number++, &start, "empty");
    for (int i = 0; i <= m->count; i++) {
        if (!has_peak && m->peak.active_bytes > 0 && (i == m->count || m->series[i].time_ns >= m->peak.time_ns)) {
            has_peak = 1;
            put_snapshot(out, number++, &m->peak, "peak");
            massif_tree_write(&m->tree, out);
        }
        if (i < m->count)
            put_snapshot(out, number++, &m->series[i], "empty");
    }
    put_snapshot(out, number++, &end, "empty");
    return number;
}

static void tell(const struct massif *m, int snapshots, struct export_result *result)
{
    struct buf note = BUF(sizeof result->note - 1);
    char bytes[UNITS_TEXT];
    result->item_count = snapshots;
    result->item = "snapshots";
    buf_printf(&note, "peak %s; a line needs %s of it\n", units_bytes(bytes, m->peak.active_bytes), "a hundredth");
    if (!m->has_series)
        buf_puts(&note, "what was live between start, peak and end is not in the recording\n");
    snprintf(result->note, sizeof result->note, "%s", buf_text(&note));
    buf_free(&note);
}

/* The device asked for, or the host. */
static int find_device(struct massif *m, struct error *err)
{
    sqlite3_stmt *s = NULL;
    m->device = m->options->device ? m->options->device : "host";
    int rc = db_prepare(m->db, "SELECT device_id FROM device WHERE name = ?1", &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, m->device, -1, SQLITE_TRANSIENT);
    if (db_next(s, &rc, err))
        m->device_id = sqlite3_column_int64(s, 0);
    else if (rc == 0)
        rc = error_set(err, EINVAL, "export: no device '%s' in this recording; a massif file is of one (--device)",
                       m->device);
    sqlite3_finalize(s);
    return rc;
}

int export_massif(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                  struct error *err)
{
    struct massif m = {.db = db, .options = options, .end_ns = db_meta_int(db, "duration_ns", 0)};
    struct export_options one_device = *options;
    struct export_sites *sites = NULL;
    struct one_process one = {0};
    int rc = vtab_event_register(db) == SQLITE_OK ? find_device(&m, err) : db_error(db, err);
    one_device.device = m.device;
    if (rc == 0)
        rc = one_process_find(db, options, m.device, &one, err);
    if (rc == 0)
        rc = export_sites_open(db, &one_device, &sites, err);
    if (rc == 0)
        rc = read_peak(&m, err);
    if (rc == 0)
        rc = one.is_only ? read_timeline(&m, err) : read_events(&m, &one, err);
    if (rc == 0)
        rc = build_tree(&m, sites, err);
    if (rc == 0 && one.is_only)
        rc = read_peak_extra(&m, err);
    if (rc == 0)
        rc = export_check_known(sites, export_peak_stat(options), err);
    if (rc == 0) {
        tell(&m, write_all(&m, &one, out), result);
    }
    massif_tree_free(&m.tree);
    export_sites_close(sites);
    one_process_close(&one);
    return rc;
}
