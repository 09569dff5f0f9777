/* Rows that stay rows: with ids of the merged file, and times from its start. */
#include "merge_private.h"

#include "../account/largest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum what {
    WHAT_ID,
    WHAT_REF,         /* a row that names nothing is left out; */
    WHAT_REF_OR_NULL, /* here it names nothing, */
    WHAT_REF_OR_ZERO, /* or 0 */
    WHAT_INTEGER,
    WHAT_SUM,
    WHAT_INTEGER_OR_NULL,
    WHAT_TEXT,
    WHAT_TEXT_OR_NULL,
    WHAT_TIME,
    WHAT_TIME_OR_NULL
};

struct column {
    const char *name;
    enum what what;
    enum merge_id id;
};

enum stage { STAGE_PROCESSES, STAGE_ROWS };

#define COLUMNS_MAX 24
#define SUM_MAX     (INT64_C(1) << 62) /* a sum of two fits, or is a floating-point number that min() leaves out */

struct table {
    const char *name;
    enum stage stage;
    const char *rest;
    struct column columns[COLUMNS_MAX]; /* up to one without a name */
};

static const struct table tables[] = {
#define TABLE(name, stage, rest)                                                                                       \
    {                                                                                                                  \
#name, STAGE_##stage, rest,                                                                                    \
        {
#define COLUMN(name, what, id) {#name, WHAT_##what, MERGE_##id},
#define END()                                                                                                          \
    }                                                                                                                  \
    }                                                                                                                  \
    ,
#include "merge_rows.def"
#undef TABLE
#undef COLUMN
#undef END
};
enum { TABLES = sizeof tables / sizeof *tables };

static void select_sql(const struct input *in, const struct table *t, struct buf *sql)
{
    buf_puts(sql, "SELECT ");
    for (const struct column *c = t->columns; c->name; c++)
        buf_printf(sql, "%s%s", c > t->columns ? ", " : "",
                   merge_has_column(in->db, t->name, c->name) ? c->name : "NULL");
    buf_printf(sql, " FROM %s %s", t->name, t->rest);
}

/* A literal's address is the key of a statement: each table has its own text for good. */
static const char *insert_sql(const struct table *t)
{
    static char texts[TABLES][2048];
    char *text = texts[t - tables];
    struct buf sql = BUF(sizeof texts[0]);
    if (*text)
        return text;
    buf_printf(&sql, "INSERT OR IGNORE INTO %s(", t->name);
    for (const struct column *c = t->columns; c->name; c++)
        buf_printf(&sql, "%s%s", c > t->columns ? ", " : "", c->name);
    buf_puts(&sql, ") VALUES(");
    for (const struct column *c = t->columns; c->name; c++)
        buf_puts(&sql, c > t->columns ? ", ?" : "?");
    buf_puts(&sql, ")");
    int sums = 0;
    for (const struct column *c = t->columns; c->name; c++)
        if (c->what == WHAT_SUM)
            buf_printf(&sql, "%s%s = min(%s + excluded.%s, %lld)", sums++ ? ", " : " ON CONFLICT DO UPDATE SET ",
                       c->name, c->name, c->name, (long long)SUM_MAX);
    memcpy(text, buf_text(&sql), sql.length + 1);
    buf_free(&sql);
    return text;
}

/* The number that the column becomes; 0: the row is left out. */
static int number_of(struct input *in, const struct column *c, sqlite3_stmt *s, int at, int64_t *number)
{
    *number = sqlite3_column_int64(s, at);
    switch (c->what) {
    case WHAT_ID:
        merge_map(in, c->id, *number, in->m->last_id[c->id] + 1);
        if (merge_find(in, c->id, *number) != in->m->last_id[c->id] + 1) /* there twice */
            return 0;
        *number = ++in->m->last_id[c->id];
        return 1;
    case WHAT_REF:
    case WHAT_REF_OR_NULL:
    case WHAT_REF_OR_ZERO:
        *number = merge_column(in, c->id, s, at);
        if (!*number)
            return c->what != WHAT_REF;
        *number -= c->id == MERGE_DEVICE;
        return 1;
    case WHAT_SUM:
        *number = *number < 0 ? 0 : *number > SUM_MAX ? SUM_MAX : *number;
        return 1;
    case WHAT_TIME:
    case WHAT_TIME_OR_NULL:
        *number = wrap_add(*number, in->source->shift_ns);
        return 1;
    default:
        return 1;
    }
}

static int is_null(const struct column *c, sqlite3_stmt *s, int at, int64_t number)
{
    switch (c->what) {
    case WHAT_REF_OR_NULL:
        return !number && (c->id != MERGE_DEVICE || sqlite3_column_type(s, at) == SQLITE_NULL);
    case WHAT_INTEGER_OR_NULL:
    case WHAT_TEXT_OR_NULL:
    case WHAT_TIME_OR_NULL:
        return sqlite3_column_type(s, at) == SQLITE_NULL;
    default:
        return 0;
    }
}

static void copy_row(struct input *in, const struct table *t, sqlite3_stmt *s)
{
    int64_t numbers[COLUMNS_MAX];
    int count = 0;
    for (; t->columns[count].name; count++)
        if (!number_of(in, &t->columns[count], s, count, &numbers[count]))
            return;
    sqlite3_stmt *q = store_statement(in->m->store, insert_sql(t));
    if (!q)
        return;
    for (int i = 0; i < count; i++) {
        const struct column *c = &t->columns[i];
        if (is_null(c, s, i, numbers[i]))
            sqlite3_bind_null(q, i + 1);
        else if (c->what == WHAT_TEXT || c->what == WHAT_TEXT_OR_NULL)
            sqlite3_bind_text(q, i + 1, db_text(s, i), -1, SQLITE_TRANSIENT);
        else
            sqlite3_bind_int64(q, i + 1, numbers[i]);
    }
    store_step(in->m->store, q);
}

static void copy_tables(struct input *in, enum stage stage)
{
    for (const struct table *t = tables; t < tables + TABLES; t++) {
        struct buf sql = BUF(4096);
        struct error err = {""};
        sqlite3_stmt *s = NULL;
        if (t->stage != stage)
            continue;
        select_sql(in, t, &sql);
        int rc = db_prepare(in->db, buf_text(&sql), &s, &err);
        while (rc == 0 && db_next(s, &rc, &err))
            copy_row(in, t, s);
        sqlite3_finalize(s);
        buf_free(&sql);
        if (rc)
            merge_failed(in, rc, err.text);
    }
}

/* --- the recordings ---------------------------------------------------------------------------------------------- */

static void bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text, -1, SQLITE_TRANSIENT); /* NULL binds NULL */
}

static void write_recording(struct input *in, int64_t id)
{
    const struct merge_source *source = in->source;
    char *host = db_meta_text(in->db, "host"), *command = db_meta_text(in->db, "command"),
         *partial = db_meta_text(in->db, "partial");
    sqlite3_stmt *q = store_statement(in->m->store, "INSERT INTO recording(recording_id, path, rank, host, command, "
                                                    "start_unix_ns, start_ns, duration_ns, event_count, partial) "
                                                    "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, id);
    bind_text(q, 2, source->path);
    if (source->rank >= 0)
        sqlite3_bind_int64(q, 3, source->rank);
    else
        sqlite3_bind_null(q, 3);
    bind_text(q, 4, host);
    bind_text(q, 5, command);
    sqlite3_bind_int64(q, 6, source->start_unix_ns);
    sqlite3_bind_int64(q, 7, source->shift_ns);
    sqlite3_bind_int64(q, 8, source->duration_ns);
    sqlite3_bind_int64(q, 9, db_meta_int(in->db, "event_count", 0));
    bind_text(q, 10,
              partial           ? partial
              : source->running ? source->running
              : source->problem ? text_without_path(source->problem, source->path)
                                : NULL);
    store_step(in->m->store, q);
    free(host);
    free(command);
    free(partial);
}

static void own_process(struct input *in, sqlite3_stmt *s)
{
    sqlite3_stmt *q =
        store_statement(in->m->store, "INSERT OR IGNORE INTO recording_process(process_id, recording_id) VALUES(?, ?)");
    int64_t id = merge_column(in, MERGE_PROCESS, s, 0);
    if (!id || !q)
        return;
    sqlite3_bind_int64(q, 1, id);
    sqlite3_bind_int64(q, 2, in->m->last_id[MERGE_RECORDING]);
    store_step(in->m->store, q);
}

static void own_total(struct input *in, sqlite3_stmt *s)
{
    int64_t device = merge_column(in, MERGE_DEVICE, s, 0);
    sqlite3_stmt *q =
        store_statement(in->m->store, "INSERT OR IGNORE INTO recording_total(recording_id, device_id, alloc_count, "
                                      "alloc_bytes, peak_active_bytes, peak_active_ns, peak_reserved_bytes, "
                                      "end_active_bytes, end_count) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    if (!device || !q)
        return;
    sqlite3_bind_int64(q, 1, in->m->last_id[MERGE_RECORDING]);
    sqlite3_bind_int64(q, 2, device - 1);
    for (int i = 1; i < 8; i++)
        if (sqlite3_column_type(s, i) == SQLITE_NULL) /* reserved bytes that are not known stay so */
            sqlite3_bind_null(q, i + 2);
        else
            sqlite3_bind_int64(q, i + 2, wrap_add(sqlite3_column_int64(s, i), i == 4 ? in->source->shift_ns : 0));
    store_step(in->m->store, q);
}

void merge_processes(struct input *in)
{
    copy_tables(in, STAGE_PROCESSES);
    in->is_merged = in->of[MERGE_RECORDING].ids.count > 0;
    if (in->is_merged)
        return;
    write_recording(in, ++in->m->last_id[MERGE_RECORDING]);
    merge_each(in, "SELECT process_id FROM process ORDER BY process_id", own_process);
    merge_each(in,
               "SELECT device_id, alloc_count, alloc_bytes, peak_active_bytes, peak_active_ns, peak_reserved_bytes, "
               "end_active_bytes, end_count FROM total WHERE kind = 'all'",
               own_total);
}

/* Of the largest blocks of all the largest stay. */
static void keep_largest(struct merge *m)
{
    static const char sql[] = "DELETE FROM block WHERE block_id NOT IN (SELECT block_id FROM block ORDER BY size_bytes "
                              "DESC, coalesce(free_ns, 9223372036854775807) - alloc_ns DESC, block_id LIMIT ?)";
    sqlite3_stmt *q = store_statement(m->store, sql);
    sqlite3_bind_int64(q, 1, LARGEST_COUNT);
    store_step(m->store, q);
    store_step(m->store, store_statement(m->store, "DELETE FROM block_touch WHERE block_id NOT IN (SELECT block_id "
                                                   "FROM block)"));
}

void merge_rows(struct input *in)
{
    copy_tables(in, STAGE_ROWS);
    keep_largest(in->m);
}
