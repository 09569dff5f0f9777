#include "rules.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "../../common/text.h"
#include "../query/short_name.h"
#include "../query/site_rows.h"
#include "../query/wrapper.h"
#include "runtime.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OF_DEVICE, OF_RUN };
enum { /* bits: enum findings_for */
       FOR_EVERYWHERE = FINDINGS_REPORT | FINDINGS_LISTS | FINDINGS_ADVISE,
       FOR_REPORTS = FINDINGS_REPORT | FINDINGS_LISTS,
       FOR_LISTS = FINDINGS_LISTS | FINDINGS_ADVISE,
       FOR_LISTED = FINDINGS_LISTS,
       FOR_ADVISE = FINDINGS_ADVISE
};
enum {
    NEEDS_NOTHING,
    NEEDS_INSTANTS,
    NEEDS_TIMELINE,
    NEEDS_MOMENT,
    NEEDS_FAILURES,
    NEEDS_BLOCKS,
    NEEDS_RESIDENT,
    NEEDS_EVENTS,
    NEEDS
};

struct rule {
    const char *name, *title;
    enum finding_severity severity;
    int of, needs, where;
    void (*find)(struct rules *r);
};

static const struct rule rules[] = {
#define FINDING(name, title, severity, of, needs, where)                                                               \
    {#name, title, FINDING_##severity, OF_##of, NEEDS_##needs, FOR_##where, find_##name},
#include "findings.def"
#undef FINDING
};
#define RULES (sizeof rules / sizeof *rules)

/* 1 where the file has it. */
static const char *const needs_sql[NEEDS] = {
    [NEEDS_INSTANTS] = RULE_HAS_INSTANTS,
    [NEEDS_TIMELINE] = "SELECT EXISTS (SELECT 1 FROM timeline) AND NOT EXISTS (SELECT 1 FROM recording)",
    /* peaks that were at an instant: those of a merged file are sums */
    [NEEDS_MOMENT] = "SELECT NOT EXISTS (SELECT 1 FROM recording)",
    [NEEDS_FAILURES] = "SELECT EXISTS (SELECT 1 FROM oom)",
    [NEEDS_RESIDENT] = "SELECT EXISTS (SELECT 1 FROM resident_scan WHERE is_peak) AND NOT EXISTS (SELECT 1 FROM "
                       "recording)",
    [NEEDS_EVENTS] = "SELECT value = 'all' FROM meta WHERE key = 'events_kept'",
    /* every block of the run, one by one */
    [NEEDS_BLOCKS] = "SELECT (SELECT count(*) FROM block) >= (SELECT sum(alloc_count) FROM total WHERE kind = 'all')",
};

sqlite3_stmt *rule_query(struct rules *r, const char *sql)
{
    sqlite3_stmt *s = NULL;
    return db_prepare(r->db, sql, &s, r->err) ? NULL : s;
}

int64_t rule_sane(int64_t value)
{
    const int64_t most = INT64_C(1) << 52;
    return value < 0 ? 0 : value > most ? most : value;
}

int64_t rule_amount(sqlite3_stmt *s, int column)
{
    return rule_sane(sqlite3_column_int64(s, column));
}

int64_t rule_query_amount(struct rules *r, const char *sql, const int64_t *values, int count, int64_t unknown)
{
    sqlite3_stmt *s = rule_query(r, sql);
    int64_t amount = unknown;
    for (int i = 0; s && i < count; i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
    if (s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        amount = rule_amount(s, 0);
    sqlite3_finalize(s);
    return amount;
}

int rule_percent(int64_t part, int64_t whole)
{
    return whole > 0 ? (int)(100.0 * (double)part / (double)whole + 0.5) : 0;
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

enum { STACK, DEVICE, LINE, SUMS };
static const enum packed_column columns[SUMS + LINE_OF_SITES] = {
    [STACK] = PACKED_site_stack_id,
    [DEVICE] = PACKED_site_device_id,
    [LINE] = PACKED_site_line_id,
    [SUMS + LINE_PEAK_BYTES] = PACKED_site_at_peak_bytes,
    [SUMS + LINE_PEAK_COUNT] = PACKED_site_at_peak_count,
    [SUMS + LINE_ALLOC_COUNT] = PACKED_site_alloc_count,
    [SUMS + LINE_TEMPORARY_COUNT] = PACKED_site_temporary_count,
};

const struct rule_site *rule_site_of(const struct rules *r, int64_t site_id)
{
    size_t low = 0, high = r->site_count;
    if (site_id > 0 && (uint64_t)site_id <= r->site_count && r->sites[site_id - 1].site_id == site_id)
        low = high = (size_t)site_id - 1; /* as the collector numbers them */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->sites[middle].site_id < site_id)
            low = middle + 1;
        else
            high = middle;
    }
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

/* What looks at present pages saw at the peak, of the few sites that have it. */
static int add_untouched(struct rules *r)
{
    sqlite3_stmt *s = rule_query(
        r, "SELECT site_id, untouched_bytes FROM resident_site JOIN resident_scan USING(scan_id) WHERE is_peak");
    int step = SQLITE_ERROR;
    while (s && (step = sqlite3_step(s)) == SQLITE_ROW)
        rule_add(r, sqlite3_column_int64(s, 0), LINE_UNTOUCHED_BYTES, rule_amount(s, 1));
    sqlite3_finalize(s);
    return step == SQLITE_DONE ? 0 : db_error(r->db, r->err);
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
        for (int i = 0; i < LINE_OF_SITES; i++)
            sum_add(&r->lines[line].sums[i], rule_sane(site_rows_value(rows, SUMS + i)));
        *ARRAY_ADD(r->sites, r->site_count, r->site_capacity) = (struct rule_site){rows->site_id, line, line, 0, 0};
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

/* --- writing a finding ------------------------------------------------------------------------------------------- */

struct finding *rule_finding(struct rules *r, const char *device)
{
    struct findings *all = r->findings;
    int nth = 0;
    for (size_t i = 0; i < all->count; i++)
        nth += strcmp(all->item[i].rule, r->rule->name) == 0 && strcmp(all->item[i].device, device) == 0;
    struct finding *f = ARRAY_ADD(all->item, all->count, all->capacity);
    *f = (struct finding){.rule = r->rule->name,
                          .title = r->rule->title,
                          .severity = r->rule->severity,
                          .device = xstrdup(device),
                          .is_minor = !r->is_advise && !(r->rule->where & FINDINGS_REPORT),
                          .nth = nth,
                          .time_ns = -1};
    return f;
}

void finding_lessen(struct finding *f)
{
    f->severity = FINDING_INFO;
    f->is_minor = 1;
}

static struct finding_part *add_part(struct finding *f, enum finding_part_kind kind, char *text)
{
    struct finding_part *part = ARRAY_ADD(f->parts, f->part_count, f->part_capacity);
    *part = (struct finding_part){.kind = kind, .text = text};
    return part;
}

void finding_say(struct finding *f, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    add_part(f, FINDING_TEXT, text ? text : xstrdup("?"));
}

static void finding_place(struct finding *f, const char *function, const char *file, int64_t line)
{
    if (line < 0 || line > 100000000) /* what cannot be one */
        line = 0;
    if (!f->function) {
        f->function = xstrdup(function);
        f->file = xstrdup_if(file);
        f->line = line;
    }
    if (file)
        finding_say(f, " (%s:%lld)", text_filename(file), (long long)line);
}

void finding_code(struct finding *f, const char *function, const char *file, int64_t line)
{
    add_part(f, FINDING_CODE, short_name(function));
    finding_place(f, function, file, line);
}

static int64_t end_bytes_of(void *rules, int64_t site_id, int64_t end_bytes)
{
    (void)rules, (void)site_id;
    return rule_sane(end_bytes);
}

static void say_caller(struct rules *r, struct finding *f, int64_t line_id, named_caller_bytes *bytes)
{
    struct buf text = BUF(1 << 20);
    char *caller = NULL;
    int other_count;
    if (named_caller_by(r->db, line_id, bytes, r, &caller, &other_count, r->err) == 0 && caller) {
        named_caller_text(caller, other_count, &text);
        finding_say(f, " (%s)", buf_text(&text));
    }
    free(caller);
    buf_free(&text);
}

static void say_place(struct rules *r, struct finding *f, int64_t site_id, const char *table, named_caller_bytes *bytes)
{
    struct buf name = BUF(1 << 20);
    char *function = NULL, *file = NULL;
    int64_t line = 0, unnamed = 0;
    int is_made = 0; /* by a program as it ran: its names are none of C++ */
    sqlite3_stmt *s = rule_query(
        r, "SELECT fn.name, f.path, l.line, coalesce(k.path, m.path), coalesce(l.offset, a.offset), a.address_id, "
           "l.line_id "
           "FROM site s LEFT JOIN site_line sl ON sl.site_id = s.site_id LEFT JOIN line l ON l.line_id = sl.line_id "
           "LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON f.file_id = l.file_id "
           "LEFT JOIN module_key k ON k.key_id = l.module_key_id LEFT JOIN stack t ON t.stack_id = s.stack_id "
           "LEFT JOIN address a ON a.address_id = t.address_id LEFT JOIN module m ON m.module_id = a.module_id "
           "WHERE s.site_id = ?");
    if (s) {
        sqlite3_bind_int64(s, 1, site_id);
        if (sqlite3_step(s) == SQLITE_ROW) {
            if (sqlite3_column_type(s, 0) != SQLITE_NULL)
                buf_puts(&name, db_text(s, 0));
            else if (sqlite3_column_type(s, 3) != SQLITE_NULL)
                buf_printf(&name, "%s+0x%llx", text_basename(db_text(s, 3)), (long long)sqlite3_column_int64(s, 4));
            else if (sqlite3_column_type(s, 5) != SQLITE_NULL)
                buf_puts(&name, "??"); /* as in every table */
            if (sqlite3_column_type(s, 1) != SQLITE_NULL)
                file = xstrdup(db_text(s, 1));
            is_made = !file && sqlite3_column_type(s, 0) != SQLITE_NULL && sqlite3_column_type(s, 3) == SQLITE_NULL;
            line = sqlite3_column_int64(s, 2);
            unnamed = sqlite3_column_type(s, 0) == SQLITE_NULL && !file ? sqlite3_column_int64(s, 6) : 0;
        }
        sqlite3_finalize(s);
    }
    function = name.length ? buf_take(&name) : xstrdup("(unknown stack)");
    struct finding_part *part = add_part(f, FINDING_LINE, is_made ? short_name_cut(function) : short_name(function));
    part->number = site_id;
    part->anchor = table;
    finding_place(f, function, file, line);
    if (unnamed)
        say_caller(r, f, unnamed, bytes);
    free(function);
    free(file);
    buf_free(&name);
}

void finding_line(struct rules *r, struct finding *f, int64_t site_id, const char *table)
{
    say_place(r, f, site_id, table, strcmp(table, "end") == 0 ? end_bytes_of : NULL);
}

void finding_line_by(struct rules *r, struct finding *f, int64_t site_id, named_caller_bytes *bytes)
{
    say_place(r, f, site_id, "end", bytes);
}

/* Where the largest caller is known at all. */
static void say_most(struct rules *r, struct finding *f, const struct callers *callers)
{
    const struct caller *most = &callers->item[0];
    struct buf name = BUF(1 << 20);
    if (most->row.function || (most->row.module && *most->row.module)) {
        row_function_text(&most->row, &name);
        finding_say(f, callers->is_of_carver ? ", most of them for " : ", the largest part for ");
        finding_code(f, buf_text(&name), most->row.file, most->row.line);
        finding_say(f, ": %s in %s block%s", units_bytes(r->a, most->bytes), units_count(r->b, most->blocks),
                    most->blocks == 1 ? "" : "s");
    }
    buf_free(&name);
}

int finding_wrapper(struct rules *r, struct finding *f, const struct rule_line *line, enum line_sum sum)
{
    struct callers callers;
    enum callers_of of = sum == LINE_PEAK_BYTES ? CALLERS_OF_PEAK : CALLERS_OF_END;
    f->skips = (struct buf)BUF(1 << 16);
    int64_t bytes = line->sums[sum];
    int is_wrapper = wrapper_callers(r->db, line->site_id, r->device->name, of, &callers, &f->skips, r->err) == 0 &&
                     callers.count > 0;
    /* what leaks leave out of a line is in its callers */
    for (int i = 0; i < callers.count; i++)
        __builtin_sub_overflow(bytes, callers.item[i].bytes, &bytes);
    if (is_wrapper) {
        finding_say(f, callers.is_of_carver ? " It takes whole blocks, and may give its callers parts"
                                            : " It allocates for its callers");
        if (bytes == 0)
            say_most(r, f, &callers);
        finding_say(f, ".");
        f->next = callers.is_of_carver ? "With --skip each of its callers has the blocks that were taken when it asked:"
                                       : "With --skip each of its callers has what it was given:";
    }
    callers_free(&callers);
    return is_wrapper;
}

int finding_runtime(struct rules *r, struct finding *f, int64_t site_id)
{
    const struct runtime *runtime = runtime_of_site(r->db, site_id);
    if (!runtime)
        return 0;
    finding_say(f, " This was mapped by %s for itself.", runtime->name);
    f->next = runtime->advice;
    return 1;
}

void finding_look(struct finding *f, enum finding_part_kind kind, int64_t time_ns, const char *section,
                  const char *text)
{
    struct finding_part *part = add_part(f, kind, xstrdup(text));
    part->number = time_ns;
    part->anchor = section;
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static void ask(struct rules *r, int of, enum findings_for asked_for)
{
    for (size_t i = 0; i < RULES; i++) {
        const struct rule *rule = &rules[i];
        if (rule->of != of || !(rule->where & (int)asked_for) ||
            (needs_sql[rule->needs] && !db_int(r->db, needs_sql[rule->needs], 0)))
            continue;
        r->rule = rule;
        rule->find(r);
    }
}

/* The worst first, of these for advise what saves most; then in the order of the rules. */
static int comes_before(const struct findings *all, const struct finding *a, const struct finding *b)
{
    if (a->severity != b->severity)
        return a->severity < b->severity;
    return all->is_advise && a->saved_bytes > b->saved_bytes;
}

static void sort(struct findings *all)
{
    for (size_t i = 1; i < all->count; i++)
        for (size_t k = i; k > 0 && comes_before(all, &all->item[k], &all->item[k - 1]); k--) {
            struct finding swapped = all->item[k];
            all->item[k] = all->item[k - 1];
            all->item[k - 1] = swapped;
        }
}

static void free_finding(struct finding *f)
{
    for (size_t i = 0; i < f->part_count; i++)
        free(f->parts[i].text);
    free(f->parts);
    buf_free(&f->skips);
    free(f->device);
    free(f->function);
    free(f->file);
}

static void keep_device(struct findings *all, const char *device)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->item[i].device, device) == 0)
            all->item[kept++] = all->item[i];
        else
            free_finding(&all->item[i]);
    all->count = kept;
}

static void close_all(struct rules *r)
{
    watches_close(r);
    map_close(&r->line_of);
    free(r->growth);
    free(r->recorded_growth);
    free(r->recorded);
    free(r->even);
    free(r->lines);
    free(r->sites);
}

int findings_load(sqlite3 *db, const struct findings_options *o, struct findings *findings, struct error *err)
{
    struct rules r = {.db = db,
                      .err = err,
                      .findings = findings,
                      .heap_end = o->heap_end,
                      .is_advise = o->asked_for == FINDINGS_ADVISE};
    struct pass pass = {.db = NULL};
    sqlite3_stmt *s = NULL;
    int rc = 0, step;
    *findings = (struct findings){.device_count = (int)db_int(db, "SELECT count(*) FROM device", 0)};
    r.duration_ns = db_meta_int(db, "duration_ns", 0);
    if (r.duration_ns <= 0) /* of a recording that was cut off: as far as it goes */
        r.duration_ns = db_int(db, "SELECT max(time_ns + width_ns) FROM timeline", 1);
    if ((r.is_advise || o->with_savings) && (rc = rule_lines(&r)) == 0)
        rc = watches_load(&r, &pass, o->progress, o->progress_arg);
    findings->is_advise = r.is_advise;
    findings->has_events = r.pass != NULL;
    if (rc == 0)
        rc = db_prepare(db,
                        "SELECT d.device_id, d.name, alloc_count, temporary_count, peak_active_bytes, peak_active_ns, "
                        "peak_active_count, peak_reserved_bytes, peak_reserved_ns, end_active_bytes, end_count "
                        "FROM total t JOIN device d ON d.device_id = t.device_id WHERE kind = 'all' AND (?2 IS NULL OR "
                        "d.name = ?2) "
                        "ORDER BY d.device_id <> ?1, d.device_id LIMIT 16",
                        &s, err);
    if (rc) {
        close_all(&r);
        pass_close(&pass);
        return rc;
    }
    sqlite3_bind_int64(s, 1, o->first_device);
    sqlite3_bind_text(s, 2, o->device, -1, SQLITE_STATIC);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        char *name = xstrdup(db_text(s, 1));
        struct rule_device d = {.device_id = sqlite3_column_int64(s, 0), .name = name};
        int64_t *values[] = {&d.alloc_count,   &d.temporary_count,  &d.peak_active, &d.peak_ns,  &d.peak_count,
                             &d.peak_reserved, &d.peak_reserved_ns, &d.end_bytes,   &d.end_count};
        for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
            *values[i] = rule_amount(s, (int)i + 2);
        r.device = &d;
        ask(&r, OF_DEVICE, o->asked_for);
        r.device = NULL;
        free(name);
    }
    rc = step == SQLITE_DONE ? 0 : db_error(db, err);
    sqlite3_finalize(s);
    ask(&r, OF_RUN, o->asked_for);
    if (o->device)
        keep_device(findings, o->device);
    if (r.is_advise)
        findings_lessen_same(findings);
    sort(findings);
    close_all(&r);
    pass_close(&pass);
    return rc;
}

void findings_free(struct findings *all)
{
    for (size_t i = 0; i < all->count; i++)
        free_finding(&all->item[i]);
    free(all->item);
    *all = (struct findings){0};
}
