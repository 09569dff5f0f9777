#include "named_caller.h"

#include "../../common/db.h"
#include "../../common/module_kind.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 1000 /* that are looked at */

static int is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The line's own address, and from there outwards what has a name; the run-time library's names say nothing of who
 * asked (qsort, __libc_start_main). */
static const struct walk_frame *caller_in(const struct walk_stack *stack, const char *module, int64_t offset)
{
    int i = 0;
    while (i < stack->count && (stack->frames[i]->function || !is_same(stack->frames[i]->module, module) ||
                                stack->frames[i]->offset != offset))
        i++;
    for (; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        int is_runtime = f->module && module_is_runtime(f->module) && !is_same(f->module, module);
        if (f->function && !f->is_allocator && !is_runtime && !(f->module && module_is_ours(f->module)))
            return f;
    }
    return NULL;
}

/* Of each line the stack that held most. */
static const char stacks_sql[] =
    "SELECT sl.line_id, s.stack_id, m.path, l.offset, max(s.at_peak_bytes * 1.0 + s.alloc_bytes * 1e-9) FROM site_line "
    "sl JOIN site s USING(site_id) JOIN line l USING(line_id) LEFT JOIN module_key m ON m.key_id = l.module_key_id "
    "WHERE sl.line_id IN (SELECT value FROM json_each(?1)) GROUP BY sl.line_id";

int named_callers(sqlite3 *db, const int64_t *line_ids, int count, named_caller_take *take, void *arg,
                  struct error *err)
{
    struct buf ids = BUF(1 << 20);
    struct walk *walk = NULL;
    sqlite3_stmt *s = NULL;
    if (!count)
        return 0;
    for (int i = 0; i < count; i++)
        buf_printf(&ids, "%s%lld", i ? "," : "[", (long long)line_ids[i]);
    buf_puts(&ids, "]");
    int rc = walk_open(db, TREE_BOTH, &walk, err);
    if (rc == 0)
        rc = db_prepare(db, stacks_sql, &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, buf_text(&ids), -1, SQLITE_STATIC);
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
        struct walk_stack stack;
        rc = walk_stack(walk, sqlite3_column_int64(s, 1), &stack, err);
        const struct walk_frame *f =
            rc ? NULL : caller_in(&stack, (const char *)sqlite3_column_text(s, 2), sqlite3_column_int64(s, 3));
        if (f)
            take(arg, sqlite3_column_int64(s, 0), f);
    }
    sqlite3_finalize(s);
    walk_close(walk);
    buf_free(&ids);
    return rc;
}

static int is_unnamed(const struct row *row)
{
    return !row->function && !row->file && !row->caller;
}

static void take_row(void *arg, int64_t line_id, const struct walk_frame *caller)
{
    struct rows *rows = arg;
    for (int i = 0; i < rows->count; i++)
        if (is_unnamed(&rows->row[i]) && llabs(rows->row[i].key_id) == line_id)
            rows->row[i].caller = xstrdup(caller->function);
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
