#include "line_reserved.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"

#include <stdlib.h>

/* Of one that another process owns nothing is reserved here. */
#define IS_GPU "name <> 'host' AND name NOT LIKE 'foreign:%'"

/* ?1, ?2: the window. What Python takes down with itself is live at its end, as net growth has it. */
#define LIVE_AT(ns) "(g.alloc_ns < " ns " AND (g.free_ns IS NULL OR g.free_ns >= " ns "))"
#define END_NS      "iif(t.time_ns >= ?1 AND t.time_ns < ?2, t.time_ns, ?2)"
/* clang-format off */
static const char taken_sql[] =
    "SELECT g.stack_id, g.device_id, CAST(total(g.size_bytes * (" LIVE_AT(END_NS) " - " LIVE_AT("?1") ")) AS INTEGER) "
    "AS grown FROM segment g LEFT JOIN teardown t USING(process_id) WHERE g.stack_id > 0 AND g.kind <> 'pool' AND "
    "g.device_id IN (SELECT device_id FROM device WHERE " IS_GPU ") AND (?3 = 0 OR g.process_id IN (SELECT process_id "
    "FROM main.process WHERE pid = ?3)) GROUP BY g.stack_id, g.device_id HAVING grown <> 0";
/* clang-format on */

int line_reserved_stacks(sqlite3 *db, const struct lens_options *lens,
                         void (*take)(void *arg, int64_t stack_id, int64_t device_id, int64_t bytes), void *arg,
                         struct error *err)
{
    const struct lens_window *window = lens ? lens->window : NULL;
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, taken_sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, window ? window->ranges[0].from_ns : db_meta_int(db, "part_start_ns", INT64_MIN));
    sqlite3_bind_int64(s, 2, window ? window->ranges[window->count - 1].to_ns : INT64_MAX);
    sqlite3_bind_int64(s, 3, lens ? lens->pid : 0);
    while (db_next(s, &rc, err))
        take(arg, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
    sqlite3_finalize(s);
    return rc;
}

/* --- by line --- */

#define ADD " ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes"

int line_reserved_begin(sqlite3 *db, struct error *err)
{
    return db_exec(db,
                   "CREATE TEMP TABLE line_reserved(device_id INTEGER, function_id INTEGER, file_id INTEGER, line "
                   "INTEGER, bytes INTEGER, PRIMARY KEY(device_id, function_id, file_id, line)) WITHOUT ROWID",
                   err);
}

int line_reserved_is_begun(sqlite3 *db)
{
    return (int)db_int(db, "SELECT count(*) FROM temp.sqlite_schema WHERE name = 'line_reserved'", 0);
}

static int run(sqlite3 *db, sqlite3_stmt *s, const int64_t *values, int count, struct error *err)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(db, err);
    sqlite3_reset(s);
    return rc;
}

int line_reserved_add(sqlite3 *db, int64_t device_id, int64_t function_id, int64_t file_id, int64_t line, int64_t bytes,
                      struct error *err)
{
    const int64_t values[] = {device_id, function_id, file_id, line, bytes};
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "INSERT INTO temp.line_reserved VALUES(?, ?, ?, ?, ?)" ADD, &s, err);
    if (rc == 0)
        rc = run(db, s, values, 5, err);
    sqlite3_finalize(s);
    return rc;
}

struct taken {
    int64_t stack_id, device_id, bytes;
};

struct taken_list {
    struct taken *item;
    size_t count, capacity;
};

static void take(void *arg, int64_t stack_id, int64_t device_id, int64_t bytes)
{
    struct taken_list *list = arg;
    *ARRAY_ADD(list->item, list->count, list->capacity) = (struct taken){stack_id, device_id, bytes};
}

/* Each line of a stack once, however often it is on it. */
static const char lines_sql[] =
    "INSERT INTO temp.line_reserved WITH RECURSIVE up(stack_id) AS (VALUES(?1) UNION SELECT s.parent_id FROM up JOIN "
    "stack s ON s.stack_id = up.stack_id WHERE s.parent_id > 0) SELECT DISTINCT ?2, f.function_id, coalesce(f.file_id, "
    "0), coalesce(f.line, 0), ?3 FROM up JOIN stack s ON s.stack_id = up.stack_id JOIN frame f ON f.address_id = "
    "s.address_id WHERE f.function_id IS NOT NULL" ADD;

int line_reserved_fill(sqlite3 *db, const struct lens_options *lens, struct error *err)
{
    struct taken_list list = {NULL, 0, 0};
    sqlite3_stmt *s = NULL;
    int rc = line_reserved_stacks(db, lens, take, &list, err);
    if (rc == 0)
        rc = db_prepare(db, lines_sql, &s, err);
    for (size_t i = 0; i < list.count && rc == 0; i++)
        rc = run(db, s, (const int64_t[]){list.item[i].stack_id, list.item[i].device_id, list.item[i].bytes}, 3, err);
    sqlite3_finalize(s);
    free(list.item);
    return rc;
}

/* --- what is known --- */

static int64_t value_of(sqlite3 *db, const char *sql, int64_t parameter)
{
    sqlite3_stmt *s = NULL;
    int64_t value = 0;
    if (db_prepare(db, sql, &s, NULL) == 0 && sqlite3_bind_int64(s, 1, parameter) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return value;
}

enum line_reserved_state line_reserved_state(sqlite3 *db, int64_t device_id)
{
    static const char is_gpu[] = "SELECT count(*) FROM device WHERE device_id = ?1 AND " IS_GPU;
    /* counters are written at the end */
    static const char lacks[] =
        "SELECT EXISTS (SELECT 1 FROM counter WHERE name = 'unlisted_segments' AND value > 0) OR (SELECT value = "
        "'recording' FROM main.meta WHERE key = 'state') AND EXISTS (SELECT 1 FROM segment GROUP BY device_id, kind "
        "HAVING count(*) >= ?1)";
    static const char has_others[] = "SELECT count(*) FROM main.total WHERE device_id = ?1 AND (kind = 'pool' AND "
                                     "peak_reserved_bytes > 0 OR kind IN "
                                     "('array', 'vmm') AND alloc_count > 0)";
    if (!value_of(db, is_gpu, device_id) || value_of(db, lacks, SEGMENT_ROWS_MAX))
        return LINE_RESERVED_UNKNOWN;
    return value_of(db, has_others, device_id) ? LINE_RESERVED_LEAST : LINE_RESERVED_KNOWN;
}
