#include "named_caller.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/module_kind.h"
#include "rows.h"
#include "short_name.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 1000 /* that are looked at */

/* A function that called a line, nearest of those with a name; what came to the line through it. */
struct candidate {
    const struct walk_frame *frame; /* NULL: none has a name */
    double sum;
};

struct unnamed_line {
    int64_t id, offset;
    char *module;
    struct candidate *candidates;
    uint32_t candidate_count, candidate_capacity;
};

struct search {
    struct walk *walk;
    named_caller_bytes *bytes; /* NULL: what every table goes by */
    void *bytes_arg;
    struct unnamed_line *lines;
    uint32_t line_count, line_capacity;
    struct map line_of;      /* line_id -> lines */
    struct map candidate_of; /* (function_id, line) -> the line's candidates */
    struct map known;        /* (node, line) -> the same, of stacks that go on from there: they share most nodes */
};

static int is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int is_line(const struct walk_frame *f, const struct unnamed_line *l)
{
    return !f->function && f->offset == l->offset && is_same(f->module, l->module);
}

/* The run-time library's names say nothing of who asked (qsort, __libc_start_main). */
static int is_caller(const struct walk_frame *f, const struct unnamed_line *l)
{
    int is_runtime = f->module && module_is_runtime(f->module) && !is_same(f->module, l->module);
    return f->function && !f->is_allocator && !is_runtime && !(f->module && module_is_ours(f->module));
}

static uint32_t candidate(struct search *s, uint32_t line, const struct walk_frame *frame)
{
    struct unnamed_line *l = &s->lines[line];
    uint64_t id = frame ? (uint64_t)frame->function_id : 0;
    uint32_t at = map_number_or(&s->candidate_of, id, line, l->candidate_count);
    if (at == l->candidate_count)
        *ARRAY_ADD(l->candidates, l->candidate_count, l->candidate_capacity) = (struct candidate){.frame = frame};
    return at;
}

/* From the line's own address outwards to what has a name. */
static int find_candidate(struct search *s, uint32_t line, int64_t stack_id, uint32_t *found, struct error *err)
{
    int64_t path[TREE_DEPTH_MAX], id = stack_id;
    const struct walk_frame *caller = NULL;
    int is_beyond = 0, beyond = 0;
    *found = MAP_NONE;
    for (int depth = 0; id && depth < TREE_DEPTH_MAX && !caller && *found == MAP_NONE; depth++) {
        struct walk_step step;
        if (is_beyond && (*found = map_number(&s->known, (uint64_t)id, line)) != MAP_NONE)
            break;
        if (is_beyond)
            path[beyond++] = id;
        int rc = walk_step(s->walk, id, depth > 0, &step, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        for (int i = 0; i < step.count && !caller; i++) {
            is_beyond |= is_line(&step.frames[i], &s->lines[line]);
            caller = is_beyond && is_caller(&step.frames[i], &s->lines[line]) ? &step.frames[i] : NULL;
        }
        id = step.parent_id;
    }
    if (*found == MAP_NONE)
        *found = candidate(s, line, caller);
    for (int i = 0; i < beyond; i++)
        map_set_number(&s->known, (uint64_t)path[i], line, *found);
    return 0;
}

static int load_lines(sqlite3 *db, const char *ids, struct search *search, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT line_id, offset, path FROM line LEFT JOIN module_key ON key_id = module_key_id WHERE "
                        "line_id IN (SELECT value FROM json_each(?1))",
                        &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, ids, -1, SQLITE_STATIC);
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
        map_set_number(&search->line_of, (uint64_t)sqlite3_column_int64(s, 0), 0, search->line_count);
        struct unnamed_line *l = ARRAY_ADD(search->lines, search->line_count, search->line_capacity);
        l->id = sqlite3_column_int64(s, 0);
        l->offset = sqlite3_column_int64(s, 1);
        l->module = sqlite3_column_type(s, 2) == SQLITE_NULL ? NULL : xstrdup(db_text(s, 2));
    }
    sqlite3_finalize(s);
    return rc;
}

/* What a line held at the peak, on all devices; where that is nothing of the whole line, what was allocated. */
static const char sites_sql[] =
    "SELECT sl.line_id, s.stack_id, coalesce(s.at_peak_bytes, 0) * 1.0 + s.alloc_bytes * 1e-9, s.site_id, s.end_bytes "
    "FROM site_line sl JOIN site s USING(site_id) WHERE sl.line_id IN (SELECT value FROM json_each(?1))";

static int add_sites(sqlite3 *db, const char *ids, struct search *search, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE, rc = db_prepare(db, sites_sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, ids, -1, SQLITE_STATIC);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        uint32_t line = map_number(&search->line_of, (uint64_t)sqlite3_column_int64(s, 0), 0), found;
        double part = search->bytes ? (double)search->bytes(search->bytes_arg, sqlite3_column_int64(s, 3),
                                                            sqlite3_column_int64(s, 4))
                                    : sqlite3_column_double(s, 2);
        if (line == MAP_NONE || !(part > 0))
            continue;
        rc = find_candidate(search, line, sqlite3_column_int64(s, 1), &found, err);
        if (rc == 0)
            search->lines[line].candidates[found].sum += part;
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(s);
    return rc;
}

static struct named_caller best(const struct unnamed_line *l)
{
    const struct candidate *best = NULL;
    int count = 0;
    for (uint32_t i = 0; i < l->candidate_count; i++) {
        count += l->candidates[i].sum > 0;
        if (!best || l->candidates[i].sum > best->sum)
            best = &l->candidates[i];
    }
    return (struct named_caller){best ? best->frame : NULL, count - 1};
}

static void close_search(struct search *s)
{
    for (uint32_t i = 0; i < s->line_count; i++) {
        free(s->lines[i].candidates);
        free(s->lines[i].module);
    }
    free(s->lines);
    map_close(&s->line_of);
    map_close(&s->candidate_of);
    map_close(&s->known);
    walk_close(s->walk);
}

static int find_callers(sqlite3 *db, struct search search, const int64_t *line_ids, int count, named_caller_take *take,
                        void *arg, struct error *err)
{
    struct buf ids = BUF(1 << 20);
    if (!count)
        return 0;
    for (int i = 0; i < count; i++)
        buf_printf(&ids, "%s%lld", i ? "," : "[", (long long)line_ids[i]);
    buf_puts(&ids, "]");
    int rc = walk_open(db, TREE_BOTH, &search.walk, err);
    if (rc == 0)
        rc = load_lines(db, buf_text(&ids), &search, err);
    if (rc == 0)
        rc = add_sites(db, buf_text(&ids), &search, err);
    for (uint32_t i = 0; i < search.line_count && rc == 0; i++) {
        struct named_caller caller = best(&search.lines[i]);
        if (caller.frame)
            take(arg, search.lines[i].id, &caller);
    }
    close_search(&search);
    buf_free(&ids);
    return rc;
}

int named_callers(sqlite3 *db, const int64_t *line_ids, int count, named_caller_take *take, void *arg,
                  struct error *err)
{
    return find_callers(db, (struct search){0}, line_ids, count, take, arg, err);
}

struct one_caller {
    char *function;
    int other_count;
};

static void take_one(void *arg, int64_t line_id, const struct named_caller *caller)
{
    (void)line_id;
    *(struct one_caller *)arg = (struct one_caller){xstrdup(caller->frame->function), caller->other_count};
}

int named_caller_by(sqlite3 *db, int64_t line_id, named_caller_bytes *bytes, void *arg, char **function,
                    int *other_count, struct error *err)
{
    struct one_caller one = {0};
    int rc = find_callers(db, (struct search){.bytes = bytes, .bytes_arg = arg}, &line_id, 1, take_one, &one, err);
    *function = one.function;
    *other_count = one.other_count;
    return rc;
}

void named_caller_text(const char *function, int other_count, struct buf *out)
{
    char *name = short_name(function);
    buf_printf(out, "<- %s", name);
    free(name);
    if (other_count > 0)
        buf_printf(out, " and %d other%s", other_count, other_count == 1 ? "" : "s");
}

static int is_unnamed(const struct row *row)
{
    return !row->function && !row->file && !row->caller;
}

static void take_row(void *arg, int64_t line_id, const struct named_caller *caller)
{
    struct rows *rows = arg;
    for (int i = 0; i < rows->count; i++)
        if (is_unnamed(&rows->row[i]) && llabs(rows->row[i].key_id) == line_id) {
            rows->row[i].caller = xstrdup(caller->frame->function);
            rows->row[i].other_callers = caller->other_count;
        }
}

int rows_name_callers(sqlite3 *db, enum row_key by, struct rows *rows, struct error *err)
{
    int64_t ids[ROWS_MOST];
    int count = 0;
    if (by != ROW_LINE && by != ROW_FUNCTION)
        return 0;
    for (int i = 0; i < rows->count && i < ROWS_MOST; i++)
        if (is_unnamed(&rows->row[i]))
            ids[count++] = llabs(rows->row[i].key_id);
    return named_callers(db, ids, count, take_row, rows, err);
}
