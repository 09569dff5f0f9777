/* What an imported snapshot had, and no recording of ours: the texts of its entries, its marks among them, frames whose
 * file name is empty. */
#include "export_torch.h"

#include "../../common/db.h"

#include <stdlib.h>
#include <string.h>

static int open_rows(struct exporting *e, const struct trace *t, const char *sql, sqlite3_stmt **s, struct error *err)
{
    int rc = db_prepare(e->db, sql, s, err);
    if (rc == 0)
        sqlite3_bind_int64(*s, 1, t->device_id);
    return rc;
}

int torch_import_open(struct exporting *e, struct trace *t, struct error *err)
{
    if (!e->is_import)
        return 0;
    int rc = open_rows(e, t,
                       "SELECT number, compile_context, user_metadata FROM snapshot_entry WHERE device_id = ? ORDER BY "
                       "number",
                       &t->texts, err);
    if (rc == 0)
        rc = open_rows(e, t,
                       "SELECT start_ns, name FROM mark WHERE device_id = ? AND NOT is_range AND domain IS NULL ORDER "
                       "BY start_ns, "
                       "mark_id",
                       &t->marks, err);
    t->has_texts = rc == 0 && db_next(t->texts, &rc, err);
    t->has_mark = rc == 0 && db_next(t->marks, &rc, err);
    return rc;
}

void torch_import_close(struct trace *t)
{
    sqlite3_finalize(t->texts);
    sqlite3_finalize(t->marks);
    t->texts = t->marks = NULL;
    for (int i = 0; i < TORCH_TEXTS; i++) {
        free(t->text[i]);
        t->text[i] = NULL;
    }
}

/* The next entry of the history, written or not: from here on its texts are those that torch_import_texts writes. */
void torch_import_next(struct exporting *e, struct trace *t)
{
    int64_t number = t->entry_number++;
    while (t->has_texts && sqlite3_column_int64(t->texts, 0) <= number) {
        for (int i = 0; i < TORCH_TEXTS; i++) {
            free(t->text[i]);
            t->text[i] = sqlite3_column_type(t->texts, 1 + i) == SQLITE_NULL ? NULL : xstrdup(db_text(t->texts, 1 + i));
        }
        t->has_texts = db_next(t->texts, &e->rc, e->err);
    }
}

void torch_import_texts(struct exporting *e, const struct trace *t)
{
    static const enum snapshot_word words[TORCH_TEXTS] = {WORD_compile_context, WORD_user_metadata};
    for (int i = 0; i < TORCH_TEXTS; i++) {
        if (!t->text[i])
            continue;
        snapshot_put_word(&e->writer, words[i]);
        pickle_put_text(&e->writer.pickle, t->text[i]);
    }
}

const char *torch_import_mark(struct exporting *e, struct trace *t, int64_t before_us, int64_t *time_us)
{
    if (!t->has_mark)
        return NULL;
    *time_us = e->start_us + sqlite3_column_int64(t->marks, 0) / 1000;
    return *time_us < before_us ? db_text(t->marks, 1) : NULL;
}

void torch_import_mark_done(struct exporting *e, struct trace *t)
{
    t->has_mark = db_next(t->marks, &e->rc, e->err);
}

int torch_import_files(struct exporting *e, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = e->is_import ? db_prepare(e->db, "SELECT address_id FROM snapshot_unfiled", &s, err) : 0;
    while (s && db_next(s, &rc, err))
        map_set_number(&e->unfiled, (uint64_t)sqlite3_column_int64(s, 0), 0, 1);
    sqlite3_finalize(s);
    return rc;
}
