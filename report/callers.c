#include "callers.h"

#include "../common/db.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

static int is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int is_line(const struct walk_frame *f, const struct row *row)
{
    if (!row->function)
        return row->module && is_same(f->module, row->module) && f->offset == row->offset;
    return is_same(f->function, row->function) && is_same(f->file, row->file) && (!row->file || f->line == row->line);
}

/* The first frame beyond the line that is another function's (a wrapper may call itself), or so many further out. */
static const struct walk_frame *caller_in(const struct walk_stack *stack, const struct row *row, int further)
{
    int first, end, self;
    walk_shown(stack, &first, &end);
    for (self = 0; self < end && !is_line(stack->frames[self], row); self++)
        ;
    for (int i = self + 1; i < end; i++) {
        const struct walk_frame *f = stack->frames[i];
        if (!f->is_allocator && !(row->function && is_same(f->function, row->function)) && further-- == 0)
            return f;
    }
    return NULL;
}

static int is_caller(const struct row *r, const struct walk_frame *f)
{
    if (!f || !r->module)
        return !f && !r->module;
    return is_same(r->function, f->function) && is_same(r->file, f->file) && r->line == f->line &&
           (f->function || (r->offset == f->offset && is_same(r->module, f->module)));
}

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static void add(struct callers *c, const struct walk_frame *f, int64_t bytes, int64_t blocks)
{
    int i = 0;
    while (i < c->count && !is_caller(&c->item[i].row, f))
        i++;
    if (i == c->count) {
        if ((c->count & (c->count - 1)) == 0)
            c->item = xrealloc(c->item, (c->count ? 2 * (unsigned long)c->count : 1) * sizeof *c->item);
        c->item[c->count++] = (struct caller){{0}, 0, 0};
        /* module "": a caller without one, apart from no caller at all */
        if (f)
            c->item[i].row = (struct row){.function = copy(f->function),
                                          .plain_name = copy(f->plain_name),
                                          .file = copy(f->file),
                                          .module = xstrdup(f->module ? f->module : ""),
                                          .line = f->line,
                                          .offset = f->offset};
    }
    if (__builtin_add_overflow(c->item[i].bytes, bytes, &c->item[i].bytes))
        c->item[i].bytes = INT64_MAX;
    if (__builtin_add_overflow(c->item[i].blocks, blocks, &c->item[i].blocks))
        c->item[i].blocks = INT64_MAX;
}

static int by_bytes(const void *a, const void *b)
{
    const struct caller *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->row.function ? x->row.function : "", y->row.function ? y->row.function : "");
}

static void count_functions(struct callers *c)
{
    for (int i = 0; i < c->count; i++) {
        int is_new = c->item[i].row.module != NULL;
        for (int k = 0; k < i && is_new; k++)
            is_new = !c->item[i].row.function || !is_same(c->item[i].row.function, c->item[k].row.function);
        c->function_count += is_new;
    }
}

int callers_load(sqlite3 *db, struct walk *walk, const struct row *row, int further, int is_kind_peak, const char *kind,
                 struct callers *callers, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE;
    *callers = (struct callers){0};
    int rc = db_prepare(db,
                        "SELECT s.stack_id, CASE WHEN ?4 THEN s.at_kind_peak_bytes ELSE s.at_peak_bytes END AS bytes, "
                        "s.at_peak_count FROM site_line sl JOIN site s USING(site_id) JOIN device d USING(device_id) "
                        "WHERE sl.line_id = ?1 AND d.name = ?2 AND ?3 IN ('all', s.kind) AND bytes > 0 "
                        "ORDER BY bytes DESC, s.site_id",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, row->key_id);
    sqlite3_bind_text(s, 2, row->device, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, kind ? kind : "all", -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 4, is_kind_peak);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct walk_stack stack;
        rc = walk_stack(walk, sqlite3_column_int64(s, 0), &stack, err);
        if (rc == 0)
            add(callers, caller_in(&stack, row, further), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
        callers->site_count++;
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(s);
    if (callers->count)
        qsort(callers->item, (size_t)callers->count, sizeof *callers->item, by_bytes);
    count_functions(callers);
    return rc;
}

void callers_free(struct callers *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->item[i].row.function);
        free(c->item[i].row.plain_name);
        free(c->item[i].row.file);
        free(c->item[i].row.module);
    }
    free(c->item);
    *c = (struct callers){0};
}
