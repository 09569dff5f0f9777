#include "many.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "device.h"
#include "estimate.h"
#include "merged.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_LEAST = 64, BUCKETS_MOST = 8192 };

/* Above what any machine has, and low enough for sums of all files. */
#define BYTES_MOST (INT64_MAX / RECORDINGS_MAX / 2)
#define TIME_MOST  (INT64_MAX / 4)

static int64_t clamp(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* -1: there are too many. */
static int device_number(struct many *m, const char *name)
{
    for (int i = 0; i < m->device_count; i++)
        if (strcmp(m->devices[i], name) == 0)
            return i;
    if (m->device_count == MANY_DEVICES_MAX)
        return -1;
    *ARRAY_ADD(m->devices, m->device_count, m->device_capacity) = xstrdup(name);
    return m->device_count - 1;
}

struct load {
    struct many *many;
    const struct many_options *options;
    int64_t buckets; /* of a timeline, at most */
};

static int finest_level(const struct load *l, sqlite3 *db, int64_t device_id, int64_t *level, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT level FROM timeline WHERE device_id = ?1 GROUP BY level HAVING count(*) <= ?2 ORDER BY "
                        "level LIMIT 1",
                        &s, err);
    *level = -1;
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, device_id);
        sqlite3_bind_int64(s, 2, l->buckets);
        if (db_next(s, &rc, err))
            *level = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Its times are made to rise, and its extremes to hold what is between them, whatever the file says. */
static void take_bucket(struct many_row *row, sqlite3_stmt *s, int64_t before_bytes)
{
    const struct many_bucket *before = row->bucket_count ? &row->buckets[row->bucket_count - 1] : NULL;
    int64_t start_ns = sqlite3_column_int64(s, 0);
    if (start_ns < 0 || start_ns > TIME_MOST || (before && start_ns < before->start_ns + row->width_ns))
        return;
    struct many_bucket *b = ARRAY_ADD(row->buckets, row->bucket_count, row->bucket_capacity);
    b->start_ns = start_ns;
    b->min_bytes = clamp(sqlite3_column_int64(s, 1), before_bytes);
    b->max_bytes = clamp(sqlite3_column_int64(s, 2), BYTES_MOST);
    b->max_ns = clamp(sqlite3_column_int64(s, 3), TIME_MOST);
    b->last_bytes = clamp(sqlite3_column_int64(s, 4), b->max_bytes);
    b->alloc_count = clamp(sqlite3_column_int64(s, 5), UINT32_MAX);
    if (b->max_bytes < before_bytes)
        b->max_bytes = before_bytes;
    if (b->min_bytes > b->last_bytes)
        b->min_bytes = b->last_bytes;
    if (b->max_ns < start_ns || b->max_ns >= start_ns + row->width_ns)
        b->max_ns = start_ns;
}

static int load_timeline(const struct load *l, sqlite3 *db, int64_t device_id, struct many_row *row, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t level;
    int rc = finest_level(l, db, device_id, &level, err);
    if (rc == 0)
        rc = db_prepare(db,
                        "SELECT time_ns, active_min_bytes, active_max_bytes, active_max_ns, active_last_bytes, "
                        "alloc_count, width_ns FROM timeline WHERE device_id = ? AND level = ? ORDER BY time_ns",
                        &s, err);
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, device_id);
        sqlite3_bind_int64(s, 2, level);
    }
    while (rc == 0 && db_next(s, &rc, err) && row->bucket_count < l->buckets) {
        if (!row->bucket_count)
            row->width_ns = clamp(sqlite3_column_int64(s, 6), TIME_MOST);
        if (row->width_ns > 0)
            take_bucket(row, s, row->bucket_count ? row->buckets[row->bucket_count - 1].last_bytes : 0);
    }
    sqlite3_finalize(s);
    return rc;
}

/* The extremes of a merged file's buckets are sums of what its recordings had at different instants. */
static int load_held(sqlite3 *db, struct many_row *row, struct error *err)
{
    sqlite3_stmt *s = NULL;
    row->is_sum = merged_count(db) > 1;
    row->held_bytes = row->is_sum ? 0 : row->peak_bytes;
    row->held_ns = row->is_sum ? -1 : row->peak_ns;
    if (!row->is_sum)
        return 0;
    int rc = db_prepare(db, "SELECT least_bytes, most_bytes, time_ns FROM common_peak WHERE device_id = ?", &s, err);
    if (rc == 0)
        sqlite3_bind_int64(s, 1, row->device_id);
    if (rc == 0 && db_next(s, &rc, err)) {
        const int64_t most_bytes = clamp(sqlite3_column_int64(s, 1), row->peak_bytes);
        row->held_bytes = clamp(sqlite3_column_int64(s, 0), row->peak_bytes);
        row->held_ns = clamp(sqlite3_column_int64(s, 2), TIME_MOST);
        for (uint32_t i = 0; most_bytes > 0 && i < row->bucket_count; i++)
            if (row->buckets[i].max_bytes > most_bytes)
                row->buckets[i].max_bytes =
                    most_bytes > row->buckets[i].min_bytes ? most_bytes : row->buckets[i].min_bytes;
    }
    sqlite3_finalize(s);
    return rc;
}

/* Without a timeline all that is known is how much there was at most. */
static void add_whole(struct many_row *row, int64_t duration_ns)
{
    if (row->bucket_count || !row->peak_bytes)
        return;
    row->width_ns = clamp(duration_ns, TIME_MOST) + 1;
    *ARRAY_ADD(row->buckets, row->bucket_count, row->bucket_capacity) =
        (struct many_bucket){.max_bytes = row->peak_bytes,
                             .max_ns = row->peak_ns < row->width_ns ? row->peak_ns : 0,
                             .last_bytes = row->end_bytes < row->peak_bytes ? row->end_bytes : row->peak_bytes};
}

static int load_row(struct load *l, struct many_file *file, int64_t duration_ns, sqlite3 *db, sqlite3_stmt *s,
                    struct error *err)
{
    int has_uuid = l->options->is_by_uuid && *db_text(s, 2);
    int device = device_number(l->many, db_text(s, has_uuid ? 2 : 1));
    if (device < 0)
        return error_set(err, E2BIG, "more than %d devices; the others are left out", MANY_DEVICES_MAX);
    struct many_row *row = ARRAY_ADD(file->rows, file->row_count, file->row_capacity);
    row->device = device;
    row->device_id = sqlite3_column_int64(s, 0);
    row->uuid = db_own_text(s, 2);
    row->peak_bytes = clamp(sqlite3_column_int64(s, 3), BYTES_MOST);
    row->peak_ns = clamp(sqlite3_column_int64(s, 4), TIME_MOST);
    row->peak_count = sqlite3_column_int64(s, 5);
    row->reserved_bytes = sqlite3_column_type(s, 6) == SQLITE_NULL ? -1 : clamp(sqlite3_column_int64(s, 6), BYTES_MOST);
    row->end_bytes = clamp(sqlite3_column_int64(s, 7), BYTES_MOST);
    row->end_count = sqlite3_column_int64(s, 8);
    row->alloc_count = sqlite3_column_int64(s, 9);
    row->alloc_bytes = sqlite3_column_int64(s, 10);
    row->temporary_count = sqlite3_column_int64(s, 11);
    int rc = load_timeline(l, db, row->device_id, row, err);
    add_whole(row, duration_ns);
    if (rc == 0)
        rc = load_held(db, row, err);
    const struct rows_query query = {.by = ROW_LINE,
                                     .device = l->many->devices[device],
                                     .sort = STAT_at_peak_bytes,
                                     .limit = l->options->lines,
                                     .at_least = 1};
    return rc || !query.limit ? rc : rows_load(db, &query, &row->lines, err);
}

static int take_file(void *arg, struct recording *r, int index, sqlite3 *db, struct error *err)
{
    struct load *l = arg;
    struct many_file *file = &l->many->files[index];
    sqlite3_stmt *s = NULL;
    file->cwd = db_meta_text(db, "cwd");
    if (l->options->look)
        l->options->look(file, db);
    int rc = estimate_refuse(db, r->path, "numbers of several files are compared", err);
    if (rc)
        return rc;
    rc = db_prepare(db,
                    "SELECT d.device_id, d.name, d.uuid, t.peak_active_bytes, t.peak_active_ns, "
                    "t.peak_active_count, t.peak_reserved_bytes, t.end_active_bytes, t.end_count, t.alloc_count, "
                    "t.alloc_bytes, t.temporary_count FROM total t JOIN device d USING(device_id) WHERE t.kind = "
                    "'all' AND (d.device_id = 0 OR t.alloc_count > 0 OR t.peak_reserved_bytes > 0) AND " DEVICE_IS(
                        "d.name", "?1") " "
                                        "ORDER BY d.device_id",
                    &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, l->options->device, -1, SQLITE_STATIC);
    while (rc == 0 && db_next(s, &rc, err))
        rc = load_row(l, file, r->duration_ns, db, s, err);
    sqlite3_finalize(s);
    return rc;
}

static void sort(struct many *m)
{
    struct many_file *files = xcalloc((size_t)m->list.count + 1, sizeof *files);
    recordings_sort(&m->list);
    for (int i = 0; i < m->list.count; i++) {
        files[i] = m->files[m->list.recording[i].number];
        m->list.recording[i].number = i;
    }
    free(m->files);
    m->files = files;
}

static int first_problem(const struct many *m, struct error *err)
{
    char *text = recordings_problem(&m->list.recording[0]);
    int rc = m->list.count == 1
                 ? error_set(err, EIO, "%s", text)
                 : error_set(err, EIO, "none of %d files can be read; the first: %s", m->list.count, text);
    free(text);
    return rc;
}

int many_load(struct recordings *list, recordings_open *open, const struct many_options *options, struct many *m,
              struct error *err)
{
    *m = (struct many){.list = *list, .files = xcalloc((size_t)list->count + 1, sizeof *m->files)};
    *list = (struct recordings){.recording = NULL};
    struct load l = {.many = m, .options = options, .buckets = MANY_BUCKETS_MAX / (m->list.count + 1)};
    l.buckets = l.buckets < BUCKETS_LEAST ? BUCKETS_LEAST : l.buckets > BUCKETS_MOST ? BUCKETS_MOST : l.buckets;
    m->read_count = recordings_each(&m->list, open, take_file, &l);
    sort(m);
    if (m->read_count == 0)
        return first_problem(m, err);
    if (options->device && !m->device_count)
        return error_set(err, EINVAL, "no device '%s' in these recordings", options->device);
    return 0;
}

void many_free(struct many *m)
{
    for (int i = 0; m->files && i < m->list.count; i++) {
        struct many_file *f = &m->files[i];
        for (int k = 0; k < f->row_count; k++) {
            free(f->rows[k].uuid);
            free(f->rows[k].buckets);
            rows_free(&f->rows[k].lines);
        }
        for (int k = 0; k < f->note_count; k++)
            free(f->notes[k]);
        free(f->notes);
        free(f->rows);
        free(f->state);
        free(f->ended);
        free(f->cwd);
    }
    for (int i = 0; i < m->device_count; i++)
        free(m->devices[i]);
    free(m->devices);
    free(m->files);
    recordings_free(&m->list);
    *m = (struct many){.files = NULL};
}

const struct many_row *many_row(const struct many *m, int file, int device)
{
    const struct many_file *f = &m->files[file];
    for (int i = 0; i < f->row_count; i++)
        if (f->rows[i].device == device)
            return &f->rows[i];
    return NULL;
}

static int is_same(const char *a, const char *b)
{
    return a && b && *a && strcmp(a, b) == 0;
}

static int64_t began(const struct recording *r, enum many_clock clock)
{
    return clock == MANY_CLOCK_MACHINE ? r->start_monotonic_ns : clock == MANY_CLOCK_NONE ? 0 : r->start_unix_ns;
}

enum many_clock many_align(const struct many *m, int64_t *starts_ns)
{
    int is_boot = 1, is_host = 1, is_known = 1;
    const struct recording *first = NULL;
    int64_t least_ns = INT64_MAX;
    for (int i = 0; i < m->list.count; i++) {
        const struct recording *r = &m->list.recording[i];
        if (!r->is_read)
            continue;
        first = first ? first : r;
        is_boot &= is_same(first->boot_id, r->boot_id) && r->start_monotonic_ns > 0;
        is_host &= is_same(first->host, r->host);
        is_known &= r->start_unix_ns > 0;
    }
    enum many_clock clock = is_boot     ? MANY_CLOCK_MACHINE
                            : !is_known ? MANY_CLOCK_NONE
                            : is_host   ? MANY_CLOCK_WALL
                                        : MANY_CLOCK_WALLS;
    for (int i = 0; i < m->list.count; i++)
        if (m->list.recording[i].is_read && began(&m->list.recording[i], clock) < least_ns)
            least_ns = began(&m->list.recording[i], clock);
    for (int i = 0; i < m->list.count; i++)
        starts_ns[i] =
            m->list.recording[i].is_read ? clamp(began(&m->list.recording[i], clock) - least_ns, TIME_MOST) : 0;
    return clock;
}

void many_add(const struct many *m, int device, struct many_sum *sum)
{
    *sum = (struct many_sum){.most_file = -1};
    for (int i = 0; i < m->list.count; i++) {
        const struct many_row *row = many_row(m, i, device);
        if (!row)
            continue;
        sum->count++;
        sum_add(&sum->peak_bytes, row->peak_bytes);
        sum->held_bytes = row->held_bytes > sum->held_bytes ? row->held_bytes : sum->held_bytes;
        if (sum->reserved_bytes < 0 || row->reserved_bytes < 0)
            sum->reserved_bytes = -1;
        else
            sum_add(&sum->reserved_bytes, row->reserved_bytes);
        sum_add(&sum->end_bytes, row->end_bytes);
        if (sum->most_file < 0 || row->peak_bytes > sum->most_bytes) {
            sum->most_bytes = row->peak_bytes;
            sum->most_file = i;
        }
    }
    if (sum->peak_bytes > 0)
        sum->imbalance = (double)sum->most_bytes * sum->count / (double)sum->peak_bytes;
}
