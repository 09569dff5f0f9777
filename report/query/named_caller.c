#include "../../common/db.h"
#include "../../common/module_kind.h"
#include "rows.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 1000 /* that are looked at */

static int is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int is_unnamed(const struct row *row)
{
    return !row->function && !row->file && !row->caller;
}

/* The row's own address, and from there outwards what has a name; the run-time library's names say nothing of who asked
 * (qsort, __libc_start_main). */
static const struct walk_frame *caller_in(const struct walk_stack *stack, const struct row *row)
{
    int i = 0;
    while (i < stack->count && (stack->frames[i]->function || !is_same(stack->frames[i]->module, row->module) ||
                                stack->frames[i]->offset != row->offset))
        i++;
    for (; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        int is_runtime = f->module && module_is_runtime(f->module) && !is_same(f->module, row->module);
        if (f->function && !f->is_allocator && !is_runtime && !(f->module && module_is_ours(f->module)))
            return f;
    }
    return NULL;
}

/* Of each line the stack that held most. */
static const char stacks_sql[] =
    "SELECT sl.line_id, s.stack_id, max(s.at_peak_bytes * 1.0 + s.alloc_bytes * 1e-9) FROM site_line sl JOIN site s "
    "USING(site_id) WHERE sl.line_id IN (SELECT value FROM json_each(?1)) GROUP BY sl.line_id";

int rows_name_callers(sqlite3 *db, enum row_key by, struct rows *rows, struct error *err)
{
    struct buf ids = BUF(1 << 16);
    struct walk *walk = NULL;
    sqlite3_stmt *s = NULL;
    int rc = 0;
    for (int i = 0; i < rows->count && i < ROWS_MOST; i++)
        if (is_unnamed(&rows->row[i]))
            buf_printf(&ids, "%s%lld", ids.length ? "," : "[", llabs(rows->row[i].key_id));
    if (!ids.length || (by != ROW_LINE && by != ROW_FUNCTION))
        goto out;
    buf_puts(&ids, "]");
    rc = walk_open(db, TREE_BOTH, &walk, err);
    if (rc == 0)
        rc = db_prepare(db, stacks_sql, &s, err);
    if (rc)
        goto out;
    sqlite3_bind_text(s, 1, ids.data, -1, SQLITE_STATIC);
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
        struct walk_stack stack;
        rc = walk_stack(walk, sqlite3_column_int64(s, 1), &stack, err);
        for (int i = 0; rc == 0 && i < rows->count; i++) {
            struct row *row = &rows->row[i];
            if (!is_unnamed(row) || llabs(row->key_id) != sqlite3_column_int64(s, 0))
                continue;
            const struct walk_frame *f = caller_in(&stack, row);
            row->caller = f ? xstrdup(f->function) : NULL;
        }
    }
out:
    sqlite3_finalize(s);
    walk_close(walk);
    buf_free(&ids);
    return rc;
}
