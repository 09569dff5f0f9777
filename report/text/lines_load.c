#include "lines_load.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/match.h"
#include "../../common/sum.h"
#include "../query/bare_code.h"
#include "../query/device.h"
#include "../query/estimate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 40 };

/* A function that was asked for; code without a symbol is one of its own. */
struct wanted {
    int64_t function_id;  /* - bare_line_id of code without a symbol */
    int64_t bare_line_id; /* 0: of a function */
    char *name, *plain_name;
    int64_t file_id, line;
    uint32_t asked; /* by which --func */
};

struct wanted_list {
    struct wanted *item; /* by function_id */
    int count, capacity;
};

static void free_wanted(struct wanted_list *w)
{
    for (int i = 0; i < w->count; i++) {
        free(w->item[i].name);
        free(w->item[i].plain_name);
    }
    free(w->item);
}

#define ANY (~0u) /* nothing was asked for in particular */

_Static_assert(LINES_PATTERNS_MAX <= 32, "a bit for each pattern");

/* Which of the patterns match, as bits. */
static uint32_t matches(const struct lines_options *o, const char *name, const char *plain_name)
{
    uint32_t found = 0;
    for (int i = 0; i < o->function_count; i++)
        if (match_function(o->functions[i], name, plain_name))
            found |= 1u << i;
    return o->function_count ? found : ANY;
}

static uint32_t matches_bare(const struct lines_options *o, const char *module, int64_t offset)
{
    uint32_t found = 0;
    for (int i = 0; i < o->function_count; i++)
        if (bare_code_matches(o->functions[i], module, offset) || bare_code_is_label(o->functions[i], module, offset))
            found |= 1u << i;
    return found;
}

static uint32_t matches_file(const struct lines_options *o, const char *path)
{
    uint32_t found = 0;
    for (int i = 0; i < o->file_count; i++)
        if (match_file(o->files[i], path))
            found |= 1u << i;
    return o->file_count ? found : ANY;
}

/* Line numbers are counted with: what no source has becomes 0, unknown. */
static int64_t line_number(sqlite3_stmt *s, int column)
{
    int64_t line = sqlite3_column_int64(s, column);
    return line > 0 && line <= INT32_MAX ? line : 0;
}

static void want(struct wanted_list *w, sqlite3_stmt *s, uint32_t asked)
{
    *ARRAY_ADD(w->item, w->count, w->capacity) = (struct wanted){.function_id = sqlite3_column_int64(s, 0),
                                                                 .name = xstrdup(db_text(s, 1)),
                                                                 .plain_name = xstrdup(db_text(s, 2)),
                                                                 .file_id = sqlite3_column_int64(s, 3),
                                                                 .line = line_number(s, 4),
                                                                 .asked = asked};
}

/* What a Python program's own functions hold is mostly a library's, which they call. */
static int load_own(sqlite3 *db, const char *device, struct wanted_list *w, struct error *err)
{
    static const char sql[] =
        "SELECT fn.function_id, fn.name, fn.plain_name, fn.file_id, fn.line, f.path FROM function fn JOIN file f "
        "USING(file_id) WHERE f.path LIKE '%.py' AND EXISTS (SELECT 1 FROM account a WHERE a.scope = 'function' AND "
        "a.inclusive = 1 AND a.kind = 'all' AND a.key_id = fn.function_id AND (?1 IS NULL OR a.device_id = (SELECT "
        "device_id FROM device WHERE name = ?1)))";
    struct lines_places places;
    const int known = w->count;
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    lines_places_open(db, &places);
    if (rc == 0)
        sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    while (db_next(s, &rc, err)) {
        int is_new = lines_places_have(&places, db_text(s, 5));
        for (int i = 0; i < known && is_new; i++)
            is_new = w->item[i].function_id != sqlite3_column_int64(s, 0);
        if (is_new)
            want(w, s, ANY);
    }
    sqlite3_finalize(s);
    lines_places_close(&places);
    return rc;
}

static void want_bare(struct wanted_list *w, int64_t line_id, const char *module, int64_t offset, uint32_t asked)
{
    struct buf name = BUF(1 << 20);
    bare_code_name(module, offset, &name);
    *ARRAY_ADD(w->item, w->count, w->capacity) = (struct wanted){.function_id = -line_id,
                                                                 .bare_line_id = line_id,
                                                                 .name = xstrdup(buf_text(&name)),
                                                                 .plain_name = xstrdup(buf_text(&name)),
                                                                 .asked = asked};
    buf_free(&name);
}

/* Code without a symbol by what tables and the page call it. */
static int load_bare(sqlite3 *db, const struct lines_options *o, struct wanted_list *w, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT l.line_id, m.path, l.offset FROM line l JOIN module_key m ON m.key_id = "
                        "l.module_key_id WHERE l.function_id IS NULL AND l.line_id > 0 ORDER BY l.line_id",
                        &s, err);
    while (db_next(s, &rc, err)) {
        const int64_t offset = sqlite3_column_int64(s, 2);
        const uint32_t asked = matches_bare(o, db_text(s, 1), offset);
        if (asked)
            want_bare(w, sqlite3_column_int64(s, 0), db_text(s, 1), offset, asked);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Functions by name; or, without a name or a file, those that held most at the peak themselves, and all of a Python
 * program's own. */
static int load_wanted(sqlite3 *db, const struct lines_options *o, struct wanted_list *w, struct error *err)
{
    static const char all[] = "SELECT function_id, name, plain_name, file_id, line FROM function ORDER BY function_id";
    static const char top[] =
        "SELECT fn.function_id, fn.name, fn.plain_name, fn.file_id, fn.line FROM (SELECT key_id, max(at_peak_bytes) AS "
        "bytes,"
        " max(alloc_bytes) AS alloc FROM account WHERE scope = 'function' AND inclusive = 0 AND kind = 'all'"
        " AND " DEVICE_ID_IS(
            "device_id",
            "?1") " GROUP BY key_id) a"
                  " JOIN function fn ON fn.function_id = a.key_id WHERE EXISTS (SELECT 1 FROM line l WHERE "
                  "l.function_id = "
                  "fn.function_id"
                  " AND l.file_id IS NOT NULL) ORDER BY bytes DESC, alloc DESC, fn.function_id LIMIT ?2";
    int is_default = o->function_count == 0 && o->file_count == 0;
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, is_default ? top : all, &s, err), step;
    if (rc)
        return rc;
    if (is_default) {
        int64_t limit = o->report->top == 0 ? -1 : o->report->top > CANDIDATES ? o->report->top : CANDIDATES;
        sqlite3_bind_text(s, 1, o->report->device, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, limit);
    }
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        uint32_t asked = is_default ? ANY : matches(o, db_text(s, 1), db_text(s, 2));
        if (asked)
            want(w, s, asked);
    }
    if (step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(s);
    if (rc)
        return rc;
    return is_default ? load_own(db, o->report->device, w, err) : load_bare(db, o, w, err);
}

static int by_function(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return (x->function_id > y->function_id) - (x->function_id < y->function_id);
}

static const struct wanted *find_wanted(const struct wanted_list *w, int64_t function_id)
{
    struct wanted key = {.function_id = function_id};
    return w->count ? bsearch(&key, w->item, (size_t)w->count, sizeof key, by_function) : NULL;
}

/* The same source: instances of a template and clones are declared at one place. Where that is not known, clones have
 * one name, with its scope and template arguments. */
static int is_same(const struct lines_group *g, const struct wanted *w, const char *name, int64_t file_id,
                   int64_t device_id)
{
    if (g->bare_line_id != w->bare_line_id || g->file_id != file_id || g->device_id != device_id ||
        strcmp(g->plain_name, w->plain_name) != 0 || (!w->line && strcmp(g->name, name) != 0))
        return 0;
    return g->declared_line == w->line && g->declared_file_id == w->file_id;
}

static struct lines_group *group_of(struct lines_groups *groups, const struct wanted *w, sqlite3_stmt *s)
{
    int64_t file_id = sqlite3_column_int64(s, 1), device_id = sqlite3_column_int64(s, 4);
    struct buf name = BUF(1 << 20);
    if (!w->bare_line_id) {
        match_bare_name(w->name, !w->line, &name);
        buf_puts(&name, match_unit(w->name));
    }
    for (int i = groups->count - 1; i >= 0; i--)
        if (is_same(&groups->group[i], w, name.length ? name.data : w->name, file_id, device_id)) {
            buf_free(&name);
            return &groups->group[i];
        }
    struct lines_group *g = ARRAY_ADD(groups->group, groups->count, groups->capacity);
    *g = (struct lines_group){.name = name.length ? name.data : xstrdup(w->name),
                              .plain_name = xstrdup(w->plain_name),
                              .path = sqlite3_column_type(s, 2) == SQLITE_NULL ? NULL : xstrdup(db_text(s, 2)),
                              .device = xstrdup(db_text(s, 5)),
                              .declared_file_id = w->file_id,
                              .declared_line = w->line,
                              .bare_line_id = w->bare_line_id,
                              .file_id = file_id,
                              .device_id = device_id};
    if (!name.length)
        buf_free(&name);
    return g;
}

static struct lines_line *find_line(struct lines_group *g, int64_t line)
{
    for (int i = g->line_count - 1; i >= 0; i--)
        if (g->lines[i].line == line)
            return &g->lines[i];
    return NULL;
}

static void add_line(struct lines_group *g, int64_t line, const struct stat_row *stats)
{
    struct lines_line *into = find_line(g, line);
    int has_own_peak = stats->known >> STAT_own_peak_bytes & 1;
    if (into) {
        stat_add(&into->stats, stats, 0);
        into->has_own_peaks &= has_own_peak;
    } else {
        into = ARRAY_ADD(g->lines, g->line_count, g->line_capacity);
        *into = (struct lines_line){.line = line, .stats = *stats, .has_own_peaks = has_own_peak};
    }
    const int64_t weights[] = {into->stats.value[STAT_at_peak_bytes], into->stats.value[STAT_alloc_bytes]};
    for (int i = 0; i < 2; i++)
        g->weight_bytes[i] = weights[i] > g->weight_bytes[i] ? weights[i] : g->weight_bytes[i];
}

static int load_lines(sqlite3 *db, const struct lines_options *o, const struct wanted_list *w,
                      struct lines_groups *groups, struct error *err)
{
    struct buf sql = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    struct estimates *estimates = estimates_open(db);
    int step = SQLITE_DONE;
    buf_puts(&sql, "SELECT coalesce(l.function_id, -l.line_id), l.file_id, f.path, l.line, a.device_id, d.name, ");
    stat_columns(&sql, "a.");
    buf_puts(
        &sql,
        ", a.key_id FROM account_stat a JOIN line l ON l.line_id = a.key_id JOIN device d ON d.device_id = a.device_id"
        " LEFT JOIN file f ON f.file_id = l.file_id"
        " WHERE a.scope = 'line' AND a.inclusive = 1 AND a.kind = ?1 AND " DEVICE_IS("d.name", "?2"));
    int rc = db_prepare(db, sql.data, &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, o->report->kind ? o->report->kind : "all", -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, o->report->device, -1, SQLITE_STATIC);
        while ((step = sqlite3_step(s)) == SQLITE_ROW) {
            const struct wanted *function = find_wanted(w, sqlite3_column_int64(s, 0));
            struct stat_row stats;
            uint32_t files = function ? matches_file(o, db_text(s, 2)) : 0;
            if (!files)
                continue;
            groups->shown_functions |= function->asked;
            groups->shown_files |= files;
            stat_read(&stats, s, 6);
            estimates_fill(estimates, ROW_LINE, 1, o->report->kind, db_text(s, 5),
                           sqlite3_column_int64(s, 6 + STAT_VALUE_COUNT), &stats);
            struct lines_group *g = group_of(groups, function, s);
            g->files = files;
            add_line(g, line_number(s, 3), &stats);
        }
        if (step != SQLITE_DONE)
            rc = db_error(db, err);
    }
    sqlite3_finalize(s);
    estimates_close(estimates);
    buf_free(&sql);
    return rc;
}

int64_t lines_value(const struct lines_group *g, const struct lines_line *line, int stat, int *is_known)
{
    if (stat != STAT_reserved_growth_bytes)
        return stat_value(&line->stats, stat, is_known);
    *is_known = g->reserved != LINE_RESERVED_UNKNOWN;
    return *is_known ? line->reserved_growth_bytes : 0;
}

/* A line whose segments another gave back in a window may have done nothing else there: it has a row where that is
 * asked for. */
static int load_reserved(sqlite3 *db, const struct lines_options *o, const struct wanted_list *w,
                         struct lines_groups *groups, struct error *err)
{
    static const char sql[] =
        "SELECT r.function_id, r.file_id, f.path, r.line, r.device_id, d.name, r.bytes FROM temp.line_reserved r JOIN "
        "device d USING(device_id) LEFT JOIN file f ON f.file_id = r.file_id WHERE " DEVICE_IS("d.name", "?1");
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, o->report->device, -1, SQLITE_STATIC);
    while (db_next(s, &rc, err)) {
        const struct wanted *function = find_wanted(w, sqlite3_column_int64(s, 0));
        const uint32_t files = function ? matches_file(o, db_text(s, 2)) : 0;
        struct lines_group *g = files ? group_of(groups, function, s) : NULL;
        struct lines_line *line = g ? find_line(g, line_number(s, 3)) : NULL;
        if (g && !line && lines_is_asked(o, STAT_reserved_growth_bytes)) {
            g->files = files;
            groups->shown_functions |= function->asked;
            groups->shown_files |= files;
            line = ARRAY_ADD(g->lines, g->line_count, g->line_capacity);
            line->line = line_number(s, 3);
        }
        if (line)
            line->reserved_growth_bytes = sum_of(line->reserved_growth_bytes, sqlite3_column_int64(s, 6));
    }
    sqlite3_finalize(s);
    return rc;
}

/* What of it is known, of all kinds together. */
static void note_reserved(sqlite3 *db, const struct lines_options *o, struct lines_groups *groups)
{
    const int is_kind = o->report->kind && strcmp(o->report->kind, "all") != 0;
    for (int i = 0; i < groups->count; i++) {
        struct lines_group *g = &groups->group[i];
        g->reserved = is_kind || g->bare_line_id ? LINE_RESERVED_UNKNOWN : line_reserved_state(db, g->device_id);
    }
}

static int add_reserved(sqlite3 *db, const struct lines_options *o, const struct wanted_list *w,
                        struct lines_groups *groups, struct error *err)
{
    int rc = 0;
    if (!line_reserved_is_begun(db)) {
        rc = line_reserved_begin(db, err);
        if (rc == 0)
            rc = line_reserved_fill(db, o->report->lens, err);
    }
    if (rc == 0)
        rc = load_reserved(db, o, w, groups, err);
    note_reserved(db, o, groups);
    return rc;
}

/* A function's tables for several devices stand together, at the place of the heaviest. */
static void share_weights(struct lines_groups *groups)
{
    for (int i = 0; i < groups->count; i++) {
        struct lines_group *g = &groups->group[i];
        memcpy(g->function_weight_bytes, g->weight_bytes, sizeof g->weight_bytes);
        for (int k = 0; k < groups->count; k++) {
            const struct lines_group *other = &groups->group[k];
            if (other->file_id != g->file_id || other->declared_line != g->declared_line ||
                other->bare_line_id != g->bare_line_id || strcmp(other->name, g->name) != 0)
                continue;
            for (int w = 0; w < 2; w++)
                if (other->weight_bytes[w] > g->function_weight_bytes[w])
                    g->function_weight_bytes[w] = other->weight_bytes[w];
        }
    }
}

static int by_line(const void *a, const void *b)
{
    const struct lines_line *x = a, *y = b;
    return (x->line > y->line) - (x->line < y->line);
}

static int by_weight(const void *a, const void *b)
{
    const struct lines_group *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->function_weight_bytes[i] != y->function_weight_bytes[i])
            return x->function_weight_bytes[i] > y->function_weight_bytes[i] ? -1 : 1;
    int order = strcmp(x->name, y->name);
    if (order || x->declared_line != y->declared_line)
        return order ? order : x->declared_line > y->declared_line ? 1 : -1;
    if (x->bare_line_id != y->bare_line_id)
        return x->bare_line_id > y->bare_line_id ? 1 : -1;
    return (x->device_id > y->device_id) - (x->device_id < y->device_id);
}

int lines_load(sqlite3 *db, const struct lines_options *o, struct lines_groups *groups, struct error *err)
{
    struct wanted_list wanted = {0};
    *groups = (struct lines_groups){0};
    int rc = load_wanted(db, o, &wanted, err);
    if (rc == 0) {
        if (wanted.count)
            qsort(wanted.item, (size_t)wanted.count, sizeof *wanted.item, by_function);
        groups->function_count = wanted.count;
        for (int i = 0; i < wanted.count; i++)
            groups->known_functions |= wanted.item[i].asked;
        rc = load_lines(db, o, &wanted, groups, err);
        if (rc == 0)
            rc = add_reserved(db, o, &wanted, groups, err);
    }
    free_wanted(&wanted);
    for (int i = 0; i < groups->count; i++)
        qsort(groups->group[i].lines, (size_t)groups->group[i].line_count, sizeof *groups->group[i].lines, by_line);
    share_weights(groups);
    if (groups->count)
        qsort(groups->group, (size_t)groups->count, sizeof *groups->group, by_weight);
    return rc;
}

void lines_free_group(struct lines_group *g)
{
    free(g->name);
    free(g->plain_name);
    free(g->path);
    free(g->device);
    free(g->lines);
}

void lines_unload(struct lines_groups *groups)
{
    for (int i = 0; i < groups->count; i++)
        lines_free_group(&groups->group[i]);
    free(groups->group);
    *groups = (struct lines_groups){0};
}

int64_t lines_next_function(sqlite3 *db, const struct lines_group *g)
{
    int64_t last = g->lines[g->line_count - 1].line, next = INT64_MAX;
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, "SELECT min(line) FROM function WHERE file_id = ? AND line > ?", -1, &s, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_int64(s, 1, g->file_id);
        sqlite3_bind_int64(s, 2, last);
        if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_INTEGER)
            next = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return next;
}
