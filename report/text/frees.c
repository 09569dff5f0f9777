/* Who frees, by line, and what another line, thread or device had allocated (run --free-stacks). */
#include "report.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../print/listing.h"
#include "../query/device.h"
#include "../query/walk.h"

#include <stdlib.h>

enum { DEFAULT_TOP = 20 };

/* Whether a frame can be the line that counts: not of the allocator family nor of the C and C++ libraries, and not of
 * Python's interpreter where code in Python called it. */
static int may_count(const struct walk_frame *f, int is_under_python)
{
    return !f->is_allocator && !f->is_runtime && (f->is_python || !f->is_interpreter || !is_under_python);
}

/* The innermost of these with a source, else the innermost of them, else of all. */
static const struct walk_frame *self_of(const struct walk_stack *stack)
{
    const struct walk_frame *bare = NULL;
    int python = -1; /* the outermost frame of Python */
    for (int i = 0; i < stack->count; i++)
        if (stack->frames[i]->is_python)
            python = i;
    for (int i = 0; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        if (!may_count(f, i < python))
            continue;
        if (f->file)
            return f;
        bare = bare ? bare : f;
    }
    return bare ? bare : stack->count ? stack->frames[0] : NULL;
}

static int add_line(sqlite3_stmt *add, int64_t stack_id, const struct walk_frame *f)
{
    struct buf name = BUF(1 << 16);
    if (f && f->function)
        buf_puts(&name, f->function);
    else if (f && f->module)
        buf_printf(&name, "%s+0x%llx", f->module, (unsigned long long)f->offset);
    else
        buf_puts(&name, "??");
    sqlite3_reset(add);
    sqlite3_bind_int64(add, 1, stack_id);
    sqlite3_bind_text(add, 2, buf_text(&name), -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(add, 3, f ? f->file : NULL, -1, SQLITE_TRANSIENT);
    if (f && f->file)
        sqlite3_bind_int64(add, 4, f->line);
    else
        sqlite3_bind_null(add, 4);
    buf_free(&name);
    return sqlite3_step(add) == SQLITE_DONE ? 0 : -1;
}

/* Rows for programs and for both tables: a freeing line, the line that allocated, and what went this way. */
static const char pairs_sql[] =
    "CREATE TEMP VIEW freed_pair AS"
    " SELECT d.device_id, d.name AS device, s.kind, t.function, t.file, t.line,"
    " coalesce(fn.name, m.path || printf('+0x%x', l.offset), '?' || '?') AS alloc_function, af.path AS alloc_file,"
    " nullif(l.line, 0) AS alloc_line, f.free_count, f.free_bytes, f.thread_count, f.thread_bytes, f.device_count,"
    " f.device_bytes, f.realloc_count"
    " FROM free_site f JOIN site s USING(site_id) JOIN device d USING(device_id) JOIN temp.free_line t ON t.stack_id ="
    " f.stack_id LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l USING(line_id) LEFT JOIN function fn"
    " USING(function_id) LEFT JOIN file af ON af.file_id = l.file_id LEFT JOIN module_key m ON m.key_id ="
    " l.module_key_id";

static int name_lines(sqlite3 *db, struct error *err)
{
    sqlite3_stmt *stacks = NULL, *add = NULL;
    struct walk *walk = NULL;
    struct walk_stack stack;
    int rc = db_exec(db, "CREATE TEMP TABLE free_line(stack_id INTEGER PRIMARY KEY, function, file, line)", err);
    if (rc == 0)
        rc = db_exec(db, pairs_sql, err);
    if (rc == 0)
        rc = walk_open(db, TREE_BOTH, &walk, err);
    if (rc == 0)
        rc = db_prepare(db, "SELECT DISTINCT stack_id FROM free_site", &stacks, err);
    if (rc == 0)
        rc = db_prepare(db, "INSERT INTO temp.free_line VALUES(?, ?, ?, ?)", &add, err);
    while (rc == 0 && db_next(stacks, &rc, err)) {
        int64_t id = sqlite3_column_int64(stacks, 0);
        rc = walk_stack(walk, id, &stack, err);
        if (rc == 0 && add_line(add, id, self_of(&stack)))
            rc = db_error(db, err);
    }
    sqlite3_finalize(stacks);
    sqlite3_finalize(add);
    walk_close(walk);
    return rc;
}

/* How much of what was freed the recording says of who did it. */
static int print_share(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    static const char sql[] =
        "SELECT d.name, coalesce(sum(f.count), 0), sum(s.free_count), CAST(coalesce(100.0 * sum(f.bytes) /"
        " nullif(sum(s.free_bytes), 0), 0) AS INTEGER) FROM site s JOIN device d USING(device_id) LEFT JOIN"
        " (SELECT site_id, sum(free_count) AS count, sum(free_bytes) AS bytes FROM free_site GROUP BY site_id) f"
        " USING(site_id) WHERE " DEVICE_IS(
            "d.name", "?1") " GROUP BY d.device_id HAVING sum(s.free_count) > 0 ORDER BY d.device_id";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
    while (db_next(s, &rc, err)) {
        char told[UNITS_TEXT], all[UNITS_TEXT];
        struct buf line = BUF(1 << 12);
        buf_printf(&line, "%s: of %s frees, %s say who made them, of %lld %% of the bytes.", db_text(s, 0),
                   units_count(all, sqlite3_column_int64(s, 2)), units_count(told, sqlite3_column_int64(s, 1)),
                   (long long)sqlite3_column_int64(s, 3));
        table_prose(out, TABLE_PLAIN, buf_text(&line));
        buf_free(&line);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Of a pair, what another line had allocated. */
#define OTHER "(function IS NOT alloc_function OR file IS NOT alloc_file OR line IS NOT alloc_line)"

struct frees_list {
    const struct column *columns;
    size_t column_count;
    const char *sql;   /* ?1: the device, ?2: how many rows; behind the columns how many there are in all */
    const char *title; /* NULL: of programs, which get no titles */
};

static int list(sqlite3 *db, const struct report_options *o, const struct report_out *out, const char *cwd, int64_t top,
                const struct frees_list *f, struct error *err)
{
    struct listing *l = listing_open(f->columns, f->column_count, out, cwd);
    int64_t all = 0;
    int rc = listing_query(l, db, f->sql, o->device, top, &all, err);
    if (f->title)
        listing_print_under(l, f->title, all);
    listing_close(l);
    return rc;
}

static int list_lines(sqlite3 *db, const struct report_options *o, const struct report_out *out, const char *cwd,
                      int64_t top, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "freed", BYTES),
        COLUMN(NULL, "blocks", COUNT),
        COLUMN(NULL, "another\nline's", BYTES),
        COLUMN(NULL, "another\nthread's", BYTES, .flags = COLUMN_OPTIONAL),
        COLUMN(NULL, "another\ndevice's", BYTES, .flags = COLUMN_OPTIONAL),
        COLUMN(NULL, "by realloc", COUNT, .flags = COLUMN_OPTIONAL),
        COLUMN(NULL, "device", TEXT),
        COLUMN(NULL, "function", TEXT, .cut = TEXT_CUT_NAME),
        COLUMN(NULL, "source", SOURCE, .cut = TEXT_CUT_LEFT),
        COLUMN(NULL, NULL, NUMBER),
    };
    static const char sql[] =
        "SELECT sum(free_bytes), sum(free_count), sum(CASE WHEN " OTHER " THEN free_bytes ELSE 0 END),"
        " nullif(sum(thread_bytes), 0), nullif(sum(device_bytes), 0), nullif(sum(realloc_count), 0), device, function,"
        " file, line, count(*) OVER () FROM freed_pair WHERE " DEVICE_IS(
            "device",
            "?1") " GROUP BY device_id, function, file, line ORDER BY 1 DESC, 2 DESC, function, line LIMIT ?2";
    const struct frees_list f = {columns, COLUMN_COUNT_OF(columns), sql, "Frees, by line"};
    return list(db, o, out, cwd, top, &f, err);
}

static int list_others(sqlite3 *db, const struct report_options *o, const struct report_out *out, const char *cwd,
                       int64_t top, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "freed", BYTES),
        COLUMN(NULL, "blocks", COUNT),
        COLUMN(NULL, "another\nthread's", COUNT, .flags = COLUMN_OPTIONAL),
        COLUMN(NULL, "another\ndevice's", COUNT, .flags = COLUMN_OPTIONAL),
        COLUMN(NULL, "freed by", TEXT, .cut = TEXT_CUT_NAME),
        COLUMN(NULL, "at", SOURCE, .cut = TEXT_CUT_LEFT),
        COLUMN(NULL, NULL, NUMBER),
        COLUMN(NULL, "allocated by", TEXT, .cut = TEXT_CUT_NAME),
        COLUMN(NULL, "at", SOURCE, .cut = TEXT_CUT_LEFT),
        COLUMN(NULL, NULL, NUMBER),
    };
    static const char sql[] =
        "SELECT sum(free_bytes), sum(free_count), nullif(sum(thread_count), 0), nullif(sum(device_count), 0), function,"
        " file, line, alloc_function, alloc_file, alloc_line, count(*) OVER () FROM freed_pair WHERE " DEVICE_IS(
            "device",
            "?1") " AND (" OTHER " OR thread_count > 0 OR device_count > 0) GROUP BY device_id, function, file, line,"
                  " alloc_function, alloc_file, alloc_line ORDER BY 1 DESC, 2 DESC, function, line, alloc_function,"
                  " alloc_line LIMIT ?2";
    const struct frees_list f = {columns, COLUMN_COUNT_OF(columns), sql,
                                 "Frees of what another line, thread or device allocated"};
    return list(db, o, out, cwd, top, &f, err);
}

/* Programs: all of both. */
static int list_pairs(sqlite3 *db, const struct report_options *o, const struct report_out *out, const char *cwd,
                      int64_t top, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("device", NULL, TEXT),         COLUMN("kind", NULL, TEXT),          COLUMN("free_count", NULL, COUNT),
        COLUMN("free_bytes", NULL, BYTES),    COLUMN("thread_count", NULL, COUNT), COLUMN("thread_bytes", NULL, BYTES),
        COLUMN("device_count", NULL, COUNT),  COLUMN("device_bytes", NULL, BYTES), COLUMN("realloc_count", NULL, COUNT),
        COLUMN("function", NULL, TEXT),       COLUMN("file", NULL, TEXT),          COLUMN("line", NULL, NUMBER),
        COLUMN("alloc_function", NULL, TEXT), COLUMN("alloc_file", NULL, TEXT),    COLUMN("alloc_line", NULL, NUMBER),
    };
    static const char sql[] =
        "SELECT device, kind, sum(free_count), sum(free_bytes), sum(thread_count), sum(thread_bytes), "
        "sum(device_count),"
        " sum(device_bytes), sum(realloc_count), function, file, line, alloc_function, alloc_file, alloc_line"
        " FROM freed_pair WHERE " DEVICE_IS(
            "device", "?1") " GROUP BY device_id, kind, function, file, line, alloc_function, alloc_file, alloc_line"
                            " ORDER BY 4 DESC, 3 DESC, function, line, alloc_function, alloc_line LIMIT ?2";
    const struct frees_list f = {columns, COLUMN_COUNT_OF(columns), sql, NULL};
    return list(db, o, out, cwd, top, &f, err);
}

int report_frees(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    const int is_text = out->format == REPORT_TEXT;
    int64_t top = o->top >= 0 ? o->top : is_text ? DEFAULT_TOP : 0;
    int rc = device_check(db, o->device, NULL, err);
    if (rc == 0 && is_text && !db_int(db, "SELECT count(*) FROM (SELECT 1 FROM free_site LIMIT 1)", 0)) {
        table_prose(out, TABLE_PLAIN, "No free says who made it: record with 'memprof run --free-stacks'.");
        return 0;
    }
    if (rc == 0)
        rc = name_lines(db, err);
    if (rc)
        return rc;
    char *cwd = db_meta_text(db, "cwd");
    if (!is_text) {
        rc = list_pairs(db, o, out, cwd, top, err);
    } else {
        rc = print_share(db, o, out, err);
        if (rc == 0)
            rc = list_lines(db, o, out, cwd, top, err);
        if (rc == 0)
            rc = list_others(db, o, out, cwd, top, err);
    }
    free(cwd);
    return rc;
}
