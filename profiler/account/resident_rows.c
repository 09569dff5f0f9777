#include "resident_rows.h"

#include "../../common/array.h"
#include "../../common/error.h"
#include "../store/packer.h"
#include "account_private.h"

#include <stdlib.h>
#include <string.h>

struct look { /* as it will be written */
    struct resident_scan scan;
    struct resident_site *sites; /* the look's */
    uint32_t site_count;
    struct resident_shared *shared;
    uint32_t shared_count;
    struct resident_sum rest[REST_COUNT], all;
    struct resident_fork fork;
    uint64_t zero_bytes, again_bytes, moved_count;
    uint8_t is_peak, is_last, has_kinds, has_fork, has_again, has_moved;
};

struct resident_rows {
    struct store *store;
    struct rows rows;      /* of sites */
    struct packer *packer; /* NULL: they are plain rows */
    struct look *looks;    /* that wait, in order of their ids */
    uint32_t count, capacity;
    uint64_t site_count; /* of all of them */
    int is_new_peak;     /* those of the peak that were written are none any more */
};

struct resident_rows *resident_rows_open(struct store *store)
{
    struct resident_rows *r = xcalloc(1, sizeof *r);
    r->store = store;
    return r;
}

static void free_look(struct look *look)
{
    free(look->sites);
    free(look->shared);
}

static void clear(struct resident_rows *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        free_look(&r->looks[i]);
    r->count = 0;
    r->site_count = 0;
}

void resident_rows_close(struct resident_rows *r)
{
    if (!r)
        return;
    clear(r);
    packer_close(r->packer);
    free(r->looks);
    free(r);
}

uint64_t resident_rows_waiting(const struct resident_rows *r)
{
    return r->count + r->site_count;
}

/* What nobody asks for any more. */
static void drop_old(struct resident_rows *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct look *look = &r->looks[i];
        if (look->is_last || look->is_peak) {
            r->looks[kept++] = *look;
        } else {
            r->site_count -= look->site_count;
            free_look(look);
        }
    }
    r->count = kept;
}

void resident_rows_add(struct resident_rows *r, const struct resident_scan *scan, const struct resident_pages *pages,
                       struct resident_result *result)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->looks[i].scan.process_id == scan->process_id)
            r->looks[i].is_last = 0;
    drop_old(r);
    struct look *look = ARRAY_ADD(r->looks, r->count, r->capacity);
    *look = (struct look){.scan = *scan,
                          .sites = result->sites,
                          .site_count = result->site_count,
                          .shared = result->shared,
                          .shared_count = result->shared_count,
                          .all = result->all,
                          .fork = result->fork,
                          .zero_bytes = pages->zero_pages * RESIDENT_PAGE,
                          .again_bytes = result->again_bytes,
                          .is_last = 1,
                          .has_kinds = pages->has_kinds != 0,
                          .has_fork = pages->begun != NULL,
                          .has_again = pages->seen != NULL};
    memcpy(look->rest, result->rest, sizeof look->rest);
    r->site_count += result->site_count;
    result->sites = NULL;
    result->shared = NULL;
    result->site_count = result->shared_count = 0;
}

static int compare_sites(const void *a, const void *b)
{
    uint32_t x = ((const struct resident_site *)a)->site, y = ((const struct resident_site *)b)->site;
    return (x > y) - (x < y);
}

void resident_rows_touched(struct resident_rows *r, uint32_t first_id, const struct seen *touched)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct look *l = &r->looks[i];
        for (uint32_t k = 0; l->scan.scan_id >= first_id && k < l->shared_count; k++) {
            struct resident_site key = {.site = l->shared[k].site};
            struct resident_site *site = bsearch(&key, l->sites, l->site_count, sizeof key, compare_sites);
            if (site)
                site->untouched_bytes += resident_untouched(&l->shared[k], touched);
        }
    }
}

void resident_rows_peak(struct resident_rows *r, uint32_t first_id)
{
    r->is_new_peak = 1;
    for (uint32_t i = 0; i < r->count; i++)
        r->looks[i].is_peak = r->looks[i].scan.scan_id >= first_id;
    drop_old(r);
}

static void bind_all(sqlite3_stmt *s, int first, const uint64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(s, first + i, (int64_t)values[i]);
}

static void run(struct store *store, const char *sql, const uint64_t *values, int count)
{
    sqlite3_stmt *s = store_statement(store, sql);
    if (!s)
        return;
    bind_all(s, 1, values, count);
    store_step(store, s);
}

static void write_scan(struct store *store, const struct look *l)
{
    static const char sql[] =
        "INSERT INTO resident_scan(scan_id, process_id, is_peak, time_ns, duration_ns, rss_bytes, present_bytes, "
        "shared_bytes, swapped_bytes, is_last, huge_bytes, zero_bytes, moved_count) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)";
    sqlite3_stmt *s = store_statement(store, sql);
    if (!s)
        return;
    bind_all(s, 1,
             (uint64_t[]){l->scan.scan_id, l->scan.process_id, l->is_peak, l->scan.time_ns, l->scan.duration_ns,
                          l->scan.rss_bytes, l->all.resident_bytes, l->all.shared_bytes, l->all.swapped_bytes,
                          l->is_last},
             10);
    if (l->has_kinds)
        bind_all(s, 11, (uint64_t[]){l->all.huge_bytes, l->zero_bytes}, 2);
    if (l->has_moved)
        sqlite3_bind_int64(s, 13, (int64_t)l->moved_count);
    store_step(store, s);
    sqlite3_clear_bindings(s); /* the next look need not have all of them */
}

static void write_rest(struct store *store, uint32_t scan_id, unsigned rest, const struct resident_sum *sum)
{
    static const char *const names[] = {
#define X(name, text) #name,
#include "../../common/resident_rest.def"
#undef X
    };
    static const char sql[] = "INSERT INTO resident_rest(scan_id, resident_bytes, shared_bytes, huge_bytes, "
                              "swapped_bytes, what) VALUES(?,?,?,?,?,?)";
    sqlite3_stmt *s = sum->resident_bytes || sum->swapped_bytes ? store_statement(store, sql) : NULL;
    if (!s)
        return;
    bind_all(s, 1, (uint64_t[]){scan_id, sum->resident_bytes, sum->shared_bytes, sum->huge_bytes, sum->swapped_bytes},
             5);
    sqlite3_bind_text(s, 6, names[rest], -1, SQLITE_STATIC);
    store_step(store, s);
}

static void write_fork(struct store *store, uint32_t scan_id, const struct resident_fork *f)
{
    static const char sql[] = "INSERT INTO resident_fork(scan_id, shared_bytes, copied_bytes, own_bytes, file_bytes) "
                              "VALUES(?,?,?,?,?)";
    run(store, sql, (uint64_t[]){scan_id, f->shared_bytes, f->copied_bytes, f->own_bytes, f->file_bytes}, 5);
}

/* Before the new rows come: their scan would not be there yet. */
static void delete_old(struct store *store)
{
    static const char sites[] = "DELETE FROM resident_site WHERE scan_id IN (SELECT scan_id FROM resident_scan WHERE "
                                "NOT is_peak AND NOT is_last)";
    static const char packed[] =
        "DELETE FROM packed WHERE table_name = 'resident_site' AND part IN (SELECT scan_id FROM "
        "resident_scan WHERE NOT is_peak AND NOT is_last)";
    static const char rests[] = "DELETE FROM resident_rest WHERE scan_id IN (SELECT scan_id FROM resident_scan WHERE "
                                "NOT is_peak AND NOT is_last)";
    static const char forks[] = "DELETE FROM resident_fork WHERE scan_id IN (SELECT scan_id FROM resident_scan WHERE "
                                "NOT is_peak AND NOT is_last)";
    static const char again[] = "DELETE FROM resident_again WHERE scan_id IN (SELECT scan_id FROM resident_scan WHERE "
                                "NOT is_peak AND NOT is_last)";
    static const char scans[] = "DELETE FROM resident_scan WHERE NOT is_peak AND NOT is_last";
    run(store, sites, NULL, 0);
    run(store, packed, NULL, 0);
    run(store, rests, NULL, 0);
    run(store, forks, NULL, 0);
    run(store, again, NULL, 0);
    run(store, scans, NULL, 0);
}

static void site_column(void *arg, uint32_t row, int number, sqlite3_context *value)
{
    const struct look *l = arg;
    const struct resident_site *r = &l->sites[row];
    const uint64_t of_row[] = {
        l->scan.scan_id,     r->site,           r->live_count,        r->live_bytes,     r->sum.resident_bytes,
        r->sum.shared_bytes, r->sum.huge_bytes, r->sum.swapped_bytes, r->untouched_bytes};
    sqlite3_result_int64(value, (int64_t)of_row[number]);
}

static void write_sites(struct store *store, struct rows *rows, struct look *l)
{
    static const char sql[] = "INSERT INTO resident_site(scan_id, site_id, live_count, live_bytes, resident_bytes, "
                              "shared_bytes, huge_bytes, swapped_bytes, untouched_bytes) "
                              "SELECT * FROM new_resident_site(?1)";
    if (!l->site_count)
        return;
    rows->name = "new_resident_site";
    rows->declaration = "CREATE TABLE x(rows HIDDEN, scan_id, site_id, live_count, live_bytes, resident_bytes, "
                        "shared_bytes, huge_bytes, swapped_bytes, untouched_bytes)";
    rows->column = site_column;
    rows->arg = l;
    rows->last = l->site_count - 1;
    store_rows(store, rows, sql);
}

/* --- the same, packed --- */

#define COLUMNS (PACKED_COLUMNS - PACKED_KEY_resident_site)

static void pack_rows(struct packer *packer, uint32_t scan_id, uint32_t first_row, uint32_t count)
{
    for (enum packed_column c = PACKED_KEY_resident_site; c < PACKED_COLUMNS; c++)
        packer_column(packer, scan_id, c, first_row, count);
}

static void take_row(struct packer *packer, uint32_t place, const uint64_t values[COLUMNS])
{
    for (unsigned i = 0; i < COLUMNS; i++)
        packer_values(packer, PACKED_KEY_resident_site + i)[place] = values[i];
}

static void pack_sites(struct packer *packer, const struct look *l)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < l->site_count; i++) {
        const struct resident_site *s = &l->sites[i];
        take_row(packer, place++,
                 (uint64_t[COLUMNS]){s->site, s->live_count, s->live_bytes, s->sum.resident_bytes, s->sum.shared_bytes,
                                     s->sum.huge_bytes, s->sum.swapped_bytes, s->untouched_bytes});
        if (place == PACKED_ROWS || i + 1 == l->site_count) {
            pack_rows(packer, l->scan.scan_id, i + 2 - place, place);
            place = 0;
        }
    }
}

/* What was written as plain rows before. There are no more of a look than fit in a chunk. */
static void begin_packing(struct resident_rows *r)
{
    static const char sql[] =
        "SELECT scan_id, site_id, live_count, live_bytes, resident_bytes, shared_bytes, huge_bytes, swapped_bytes, "
        "untouched_bytes FROM resident_site ORDER BY scan_id, site_id";
    r->packer = packer_open(r->store, PACKED_TABLE_resident_site);
    sqlite3_stmt *s = store_statement(r->store, sql);
    uint32_t scan_id = 0, count = 0;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        uint64_t values[COLUMNS];
        if (count && scan_id != (uint32_t)sqlite3_column_int64(s, 0)) {
            pack_rows(r->packer, scan_id, 1, count);
            count = 0;
        }
        scan_id = (uint32_t)sqlite3_column_int64(s, 0);
        for (int i = 0; i < COLUMNS; i++)
            values[i] = (uint64_t)sqlite3_column_int64(s, i + 1);
        take_row(r->packer, count++, values);
    }
    sqlite3_reset(s);
    if (count)
        pack_rows(r->packer, scan_id, 1, count);
    run(r->store, "DELETE FROM resident_site", NULL, 0);
}

/* Looks are packed where sites are: from the first one on that saw a site which is. */
static int is_of_many(const struct look *l)
{
    return l->site_count && l->sites[l->site_count - 1].site > PACKED_SITES;
}

static void write_look(struct store *store, struct rows *rows, struct packer *packer, struct look *l)
{
    static const char again[] = "INSERT INTO resident_again(scan_id, again_bytes) VALUES(?,?)";
    uint32_t id = l->scan.scan_id;
    write_scan(store, l);
    if (packer)
        pack_sites(packer, l);
    else
        write_sites(store, rows, l);
    for (unsigned i = 0; i < REST_COUNT; i++)
        write_rest(store, id, i, &l->rest[i]);
    if (l->has_fork)
        write_fork(store, id, &l->fork);
    if (l->has_again)
        run(store, again, (uint64_t[]){id, l->again_bytes}, 2);
}

void resident_rows_write(struct resident_rows *r)
{
    static const char peaks[] = "UPDATE resident_scan SET is_peak = 0 WHERE is_peak";
    static const char last[] = "UPDATE resident_scan SET is_last = 0 WHERE process_id = ?";
    if (!r->count && !r->is_new_peak)
        return;
    if (r->is_new_peak)
        run(r->store, peaks, NULL, 0);
    for (uint32_t i = 0; i < r->count; i++)
        run(r->store, last, (uint64_t[]){r->looks[i].scan.process_id}, 1);
    delete_old(r->store);
    for (uint32_t i = 0; i < r->count && !r->packer; i++)
        if (is_of_many(&r->looks[i]))
            begin_packing(r);
    for (uint32_t i = 0; i < r->count; i++)
        write_look(r->store, &r->rows, r->packer, &r->looks[i]);
    r->is_new_peak = 0;
    clear(r);
}

void resident_rows_moved(struct resident_rows *r, uint32_t first_id, uint64_t moved_count)
{
    static const char sql[] = "UPDATE resident_scan SET moved_count = ? WHERE scan_id >= ?";
    for (uint32_t i = 0; i < r->count; i++)
        if (r->looks[i].scan.scan_id >= first_id) {
            r->looks[i].moved_count = moved_count;
            r->looks[i].has_moved = 1;
        }
    run(r->store, sql, (uint64_t[]){moved_count, first_id}, 2);
}
