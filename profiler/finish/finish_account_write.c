/* The accounts by line, function, file and module as rows of their tables. */
#include "finish_account.h"

#include "../../common/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const scope_names[] = {"file", "function", "line", "module"};

static const char *kind_of(const struct account_pass *p, const struct out_row *o)
{
    return o->is_all ? "all" : p->m->groups[o->group].kind;
}

/* As the primary key sorts, so that rows are appended. */
static int by_key(const void *a, const void *b, void *pass)
{
    const struct out_row *x = a, *y = b;
    const struct account_pass *p = pass;
    if (x->scope != y->scope)
        return x->scope < y->scope ? -1 : 1;
    if (x->inclusive != y->inclusive)
        return x->inclusive < y->inclusive ? -1 : 1;
    int64_t device_x = p->m->groups[x->group].device, device_y = p->m->groups[y->group].device;
    if (device_x != device_y)
        return device_x < device_y ? -1 : 1;
    int kinds = strcmp(kind_of(p, x), kind_of(p, y));
    if (kinds)
        return kinds;
    return x->key_id < y->key_id ? -1 : x->key_id > y->key_id;
}

/* The key's columns as the table has them, which number they are to column(). */
#define ACCOUNT_KEYS "scope, key_id, inclusive, device_id, kind"
enum { SCOPE, KEY_ID, INCLUSIVE, DEVICE_ID, KIND, FIRST_STAT };

static void column(void *arg, uint32_t row, int number, sqlite3_context *value)
{
    const struct account_pass *p = arg;
    const struct out_row *o = &p->out[row];
    int64_t v = 0;
    switch (number) {
    case SCOPE:
        sqlite3_result_text(value, scope_names[o->scope], -1, SQLITE_STATIC);
        return;
    case KEY_ID:
        v = o->key_id;
        break;
    case INCLUSIVE:
        v = o->inclusive;
        break;
    case DEVICE_ID:
        v = p->m->groups[o->group].device;
        break;
    case KIND:
        sqlite3_result_text(value, kind_of(p, o), -1, SQLITE_STATIC);
        return;
    case FIRST_STAT + STAT_own_peak_bytes:
        v = o->set ? p->sets[o->set - 1].peak_bytes : o->own;
        if (v < 0) /* NULL */
            return;
        break;
    default:
        v = o->stat[number - FIRST_STAT];
    }
    sqlite3_result_int64(value, v);
}

#define STAT(...)
#define SCANNED(column, name, unit, text) ", " #column
static const char scanned_sql[] = "INSERT OR REPLACE INTO resident_account(scope, key_id, inclusive, device_id, kind"
#include "../../common/stat.def"
#define SCANNED(column, name, unit, text) ", ?"
                                  ") VALUES(?, ?, ?, ?, ?"
#include "../../common/stat.def"
#undef STAT
                                  ")";

void account_bind_key(const struct account_pass *p, const struct out_row *o, sqlite3_stmt *s)
{
    sqlite3_bind_text(s, 1, scope_names[o->scope], -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, o->key_id);
    sqlite3_bind_int(s, 3, o->inclusive);
    sqlite3_bind_int64(s, 4, p->m->groups[o->group].device);
    sqlite3_bind_text(s, 5, kind_of(p, o), -1, SQLITE_STATIC);
}

/* What the looks at present pages saw, where they saw any. */
static int write_scanned(struct account_pass *p, struct error *err)
{
    enum { FIRST = STAT_own_largest + 1 };
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(p->m->db, scanned_sql, &s, err);
    for (size_t i = 0; i < p->out_count && rc == 0; i++) {
        const struct out_row *o = &p->out[i];
        int is_any = 0;
        for (int n = FIRST; n < SCANNED_END; n++) {
            is_any |= o->stat[n] != 0;
            sqlite3_bind_int64(s, 6 + n - FIRST, o->stat[n]);
        }
        if (!is_any)
            continue;
        account_bind_key(p, o, s);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(p->m->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

/* What a part of a rotated recording inherited. */
static int write_starts(struct account_pass *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = 0;
    for (size_t i = 0; i < p->out_count && rc == 0; i++) {
        const struct out_row *o = &p->out[i];
        if (!o->stat[STAT_start_count] && !o->stat[STAT_start_bytes])
            continue;
        if (!s)
            rc = db_prepare(p->m->db,
                            "INSERT OR REPLACE INTO account_start(scope, key_id, inclusive, device_id, kind, "
                            "start_bytes, start_count) VALUES(?, ?, ?, ?, ?, ?, ?)",
                            &s, err);
        if (rc)
            break;
        account_bind_key(p, o, s);
        sqlite3_bind_int64(s, 6, o->stat[STAT_start_bytes]);
        sqlite3_bind_int64(s, 7, o->stat[STAT_start_count]);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(p->m->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_rows(struct account_pass *p, struct error *err)
{
#define STAT(column, name, unit, combine, text) ", " #column
    static const char sql[] = "INSERT OR REPLACE INTO account(" ACCOUNT_KEYS
#include "../../common/stat.def"
                              ") SELECT * FROM new_account(?1)";
    static const char declaration[] = "CREATE TABLE x(rows HIDDEN, " ACCOUNT_KEYS
#include "../../common/stat.def"
                                      ")";
#undef STAT
    struct rows rows = {.name = "new_account", .declaration = declaration, .column = column, .arg = p};
    sqlite3_stmt *s = NULL;
    if (!p->out_count)
        return 0;
    qsort_r(p->out, p->out_count, sizeof *p->out, by_key, p);
    rows.last = (uint32_t)p->out_count - 1;
    rows_register(&rows, p->m->db);
    int rc = db_prepare(p->m->db, sql, &s, err);
    if (rc == 0) {
        rows_bind(&rows, s);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(p->m->db, err);
    }
    sqlite3_finalize(s);
    return rc == 0 && finish_interrupted ? -EINTR : rc;
}

int account_write_rows(struct account_pass *p, struct error *err)
{
    int rc = write_rows(p, err);
    if (rc == 0)
        rc = write_scanned(p, err);
    return rc ? rc : write_starts(p, err);
}
