/* Sites and lines with their sums, and the lines as they were recorded, for all rules. */
#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/search.h"
#include "../../common/sum.h"
#include "../query/look_rows.h"
#include "../query/site_rows.h"
#include "rules.h"

#include <errno.h>
#include <stdlib.h>

enum { STACK, DEVICE, LINE, SUMS };
static const enum packed_column columns[SUMS + LINE_OF_SITES] = {
    [STACK] = PACKED_site_stack_id,
    [DEVICE] = PACKED_site_device_id,
    [LINE] = PACKED_site_line_id,
    [SUMS + LINE_PEAK_BYTES] = PACKED_site_at_peak_bytes,
    [SUMS + LINE_PEAK_COUNT] = PACKED_site_at_peak_count,
    [SUMS + LINE_ALLOC_COUNT] = PACKED_site_alloc_count,
    [SUMS + LINE_TEMPORARY_COUNT] = PACKED_site_temporary_count,
    [SUMS + LINE_TEMPORARY_BYTES] = PACKED_site_temporary_bytes,
};

const struct rule_site *rule_site_of(const struct rules *r, int64_t site_id)
{
    if (site_id > 0 && (uint64_t)site_id <= r->site_count && r->sites[site_id - 1].site_id == site_id)
        return &r->sites[site_id - 1]; /* as the collector numbers them */
    const size_t low = SEARCH_FIRST(r->site_count, i, r->sites[i].site_id < site_id);
    return low < r->site_count && r->sites[low].site_id == site_id ? &r->sites[low] : NULL;
}

const struct rule_line *rule_line_of(const struct rules *r, int64_t site_id)
{
    const struct rule_site *site = rule_site_of(r, site_id);
    return site ? &r->lines[site->line] : NULL;
}

void rule_add(struct rules *r, int64_t site_id, enum line_sum sum, int64_t value)
{
    const struct rule_line *line = rule_line_of(r, site_id);
    if (!line)
        return;
    int64_t *into = &r->lines[line - r->lines].sums[sum];
    sum_add(into, value);
}

/* What looks at present pages saw at the peak. */
static int add_untouched(struct rules *r)
{
    static const enum packed_column column = PACKED_resident_site_untouched_bytes;
    struct look_rows rows;
    int rc = look_rows_open(r->db, LOOKS_PEAK, &column, 1, &rows, r->err);
    while (rc == 0 && (rc = look_rows_next(&rows, r->err)) == 1) {
        if (look_rows_value(&rows, 0))
            rule_add(r, rows.site_id, LINE_UNTOUCHED_BYTES, rule_sane(look_rows_value(&rows, 0)));
        rc = 0;
    }
    look_rows_close(&rows);
    return rc;
}

/* Sites without a line, of a recording whose symbols were never looked up, go by their address. */
static int64_t line_id(sqlite3_stmt *address, const struct site_rows *rows)
{
    int64_t id = site_rows_value(rows, LINE);
    if (id)
        return id;
    sqlite3_bind_int64(address, 1, site_rows_value(rows, STACK));
    id = sqlite3_step(address) == SQLITE_ROW ? -sqlite3_column_int64(address, 0) : 0;
    sqlite3_reset(address);
    return id;
}

static int add_sites(struct rules *r, struct site_rows *rows, sqlite3_stmt *address)
{
    int64_t last_id = 0, last_device = -1; /* mostly the next one's, too */
    uint32_t line = 0;
    int rc;
    while ((rc = site_rows_next(rows, r->err)) == 1) {
        int64_t id = line_id(address, rows), device_id = site_rows_value(rows, DEVICE);
        if (id != last_id || device_id != last_device || !r->line_count)
            line = map_number_or(&r->line_of, (uint64_t)id, (uint64_t)device_id, r->line_count);
        last_id = id;
        last_device = device_id;
        if (line == r->line_count)
            *ARRAY_ADD(r->lines, r->line_count, r->line_capacity) =
                (struct rule_line){.device_id = device_id, .site_id = rows->site_id};
        for (int i = 0; i < LINE_OF_SITES; i++) {
            const int64_t value = site_rows_value(rows, SUMS + i);
            if (value)
                sum_add(&r->lines[line].sums[i], rule_sane(value));
        }
        *ARRAY_ADD(r->sites, r->site_count, r->site_capacity) = (struct rule_site){rows->site_id, line, line, 0, 0, 0};
    }
    return rc;
}

const char *rule_recorded_table(sqlite3 *db)
{
    return packed_has(db, PACKED_TABLE_site) ? "packed_site_line" : "main.site_line";
}

/* Whether --skip or a language stands before the file's lines. */
static int is_shown_otherwise(sqlite3 *db)
{
    return db_int(db,
                  "SELECT 1 FROM temp.sqlite_schema WHERE name = 'site_line' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'",
                  0) == 1;
}

/* Numbers the recorded lines by line and device; a site without a line is of the one that is shown. */
static int number_recorded(struct rules *r)
{
    struct buf sql = BUF(256);
    struct map numbers = {0};
    int step = SQLITE_ROW;
    buf_printf(&sql, "SELECT site_id, line_id FROM %s ORDER BY site_id", rule_recorded_table(r->db));
    sqlite3_stmt *s = rule_query(r, buf_text(&sql));
    buf_free(&sql);
    if (!s)
        return -EIO;
    step = sqlite3_step(s);
    for (size_t i = 0; i < r->site_count; i++) {
        struct rule_site *site = &r->sites[i];
        int64_t device_id = r->lines[site->line].device_id;
        while (step == SQLITE_ROW && sqlite3_column_int64(s, 0) < site->site_id)
            step = sqlite3_step(s);
        int has_line = step == SQLITE_ROW && sqlite3_column_int64(s, 0) == site->site_id;
        uint64_t key = has_line ? (uint64_t)sqlite3_column_int64(s, 1) : ~(uint64_t)site->line;
        site->recorded = map_number_or(&numbers, key, (uint64_t)device_id, r->recorded_count);
        if (site->recorded == r->recorded_count)
            *ARRAY_ADD(r->recorded, r->recorded_count, r->recorded_capacity) =
                (struct rule_recorded){.device_id = device_id, .site_id = site->site_id};
    }
    sqlite3_finalize(s);
    map_close(&numbers);
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : db_error(r->db, r->err);
}

static int load_recorded(struct rules *r)
{
    if (is_shown_otherwise(r->db))
        return number_recorded(r);
    r->recorded = xcalloc(r->line_count + 1ul, sizeof *r->recorded);
    r->recorded_count = r->recorded_capacity = r->line_count;
    for (uint32_t i = 0; i < r->line_count; i++)
        r->recorded[i] = (struct rule_recorded){.device_id = r->lines[i].device_id, .site_id = r->lines[i].site_id};
    return 0;
}

int rule_lines(struct rules *r)
{
    struct site_rows rows;
    if (r->has_lines)
        return 0;
    r->has_lines = 1;
    sqlite3_stmt *address = rule_query(r, "SELECT address_id FROM stack WHERE stack_id = ?");
    int rc = site_rows_open(r->db, columns, SUMS + LINE_OF_SITES, &rows, r->err);
    if (rc == 0)
        rc = address ? add_sites(r, &rows, address) : -EIO;
    site_rows_close(&rows);
    sqlite3_finalize(address);
    if (rc == 0)
        rc = load_recorded(r);
    return rc ? rc : add_untouched(r);
}

const struct rule_line *rule_top_line(struct rules *r, enum line_sum sum, int64_t *all)
{
    const struct rule_line *best = NULL;
    *all = 0;
    if (rule_lines(r))
        return NULL;
    for (uint32_t i = 0; i < r->line_count; i++) {
        const struct rule_line *l = &r->lines[i];
        if (l->device_id != r->device->device_id)
            continue;
        sum_add(all, l->sums[sum]);
        if (l->sums[sum] > 0 && (!best || l->sums[sum] > best->sums[sum]))
            best = l;
    }
    return best;
}
