/* An input's ids and rows. */
#include "merge_private.h"

#include "../../common/array.h"

#include <errno.h>

void merge_map(struct input *in, enum merge_id what, int64_t id, int64_t to)
{
    struct merge_of *of = &in->of[what];
    if (of->ids.count && id <= of->ids.ids[of->ids.count - 1]) /* not in ascending order: none is found by it */
        return;
    ids_add(&of->ids, id);
    ARRAY_ROOM(of->to, of->ids.count, of->capacity);
    of->to[of->ids.count - 1] = to;
}

int64_t merge_find(const struct input *in, enum merge_id what, int64_t id)
{
    const struct merge_of *of = &in->of[what];
    uint32_t place = of->ids.count ? ids_find(&of->ids, id) : 0;
    return place ? of->to[place - 1] : 0;
}

int64_t merge_column(const struct input *in, enum merge_id what, sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? 0 : merge_find(in, what, sqlite3_column_int64(s, column));
}

void merge_failed(struct input *in, int rc, const char *text)
{
    if (in->rc)
        return;
    in->rc = error_set(&in->err, rc < 0 ? -rc : rc, "%s", text);
}

void merge_each(struct input *in, const char *sql, void (*row)(struct input *, sqlite3_stmt *))
{
    sqlite3_stmt *s = NULL;
    struct error err = {""};
    int rc = db_prepare(in->db, sql, &s, &err);
    while (rc == 0 && db_next(s, &rc, &err))
        row(in, s);
    sqlite3_finalize(s);
    if (rc)
        merge_failed(in, rc, err.text);
}

int merge_has_column(sqlite3 *db, const char *table, const char *column)
{
    return sqlite3_table_column_metadata(db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}
