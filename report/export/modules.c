#include "modules.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/ids.h"
#include "../../common/map.h"

#include <stdlib.h>

enum { KEY_LIMIT = 64 << 20 };

struct export_modules {
    sqlite3 *db;
    sqlite3_stmt *address;
    struct ids ids; /* of rows */
    uint32_t *same; /* by row: its place in modules */
    uint32_t row_count, row_capacity;
    struct export_module *modules;
    uint32_t count, capacity;
    struct text_map of_key; /* path and build-id */
};

static uint32_t place_of(struct export_modules *m, const char *path, const char *build_id, int *is_new)
{
    struct buf key = BUF(KEY_LIMIT);
    buf_puts(&key, path);
    buf_add(&key, "", 1);
    buf_puts(&key, build_id ? build_id : "");
    uint32_t *slot = text_map_slot(&m->of_key, buf_text(&key), key.length);
    *is_new = !*slot;
    if (*is_new)
        *slot = m->count + 1;
    buf_free(&key);
    return *slot - 1;
}

static void add_row(struct export_modules *m, sqlite3_stmt *s)
{
    int is_new;
    const char *build_id = (const char *)sqlite3_column_text(s, 2);
    uint32_t place = place_of(m, db_text(s, 1), build_id, &is_new);
    if (is_new) {
        struct export_module *module = ARRAY_ADD(m->modules, m->count, m->capacity);
        *module = (struct export_module){.path = db_own_text(s, 1),
                                         .build_id = db_own_text(s, 2),
                                         .number = m->count,
                                         .start = (uint64_t)sqlite3_column_int64(s, 3),
                                         .end = (uint64_t)sqlite3_column_int64(s, 4),
                                         .bias_bytes = (uint64_t)sqlite3_column_int64(s, 5)};
    }
    ids_add(&m->ids, sqlite3_column_int64(s, 0));
    *ARRAY_ADD(m->same, m->row_count, m->row_capacity) = place;
}

int export_modules_open(sqlite3 *db, struct export_modules **modules, struct error *err)
{
    struct export_modules *m = xcalloc(1, sizeof *m);
    sqlite3_stmt *s = NULL;
    *modules = m;
    m->db = db;
    int rc = db_prepare(
        db, "SELECT module_id, path, build_id, start_address, end_address, bias FROM module ORDER BY module_id", &s,
        err);
    while (db_next(s, &rc, err))
        add_row(m, s);
    sqlite3_finalize(s);
    return rc ? rc : db_prepare(db, "SELECT module_id FROM address WHERE address_id = ?", &m->address, err);
}

void export_modules_close(struct export_modules *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->count; i++) {
        free((char *)m->modules[i].path);
        free((char *)m->modules[i].build_id);
    }
    sqlite3_finalize(m->address);
    text_map_close(&m->of_key);
    free(m->ids.ids);
    free(m->modules);
    free(m->same);
    free(m);
}

int export_modules_find(struct export_modules *m, int64_t address_id, struct export_module *module, struct error *err)
{
    int rc = 0;
    *module = (struct export_module){.path = NULL};
    sqlite3_reset(m->address);
    sqlite3_bind_int64(m->address, 1, address_id);
    uint32_t row = db_next(m->address, &rc, err) ? ids_column(&m->ids, m->address, 0) : 0;
    if (row)
        *module = m->modules[m->same[row - 1]];
    return rc;
}

int export_modules_program(struct export_modules *m, struct export_module *module, struct error *err)
{
    static const char sql[] =
        "SELECT p.exe, (SELECT min(module_id) FROM module o WHERE o.process_id = p.process_id AND o.path = p.exe) FROM "
        "process p LEFT JOIN thread t USING(process_id) LEFT JOIN main.account a ON a.scope = 'thread' AND a.inclusive "
        "= 0 "
        "AND a.kind = 'all' AND a.key_id = t.thread_id GROUP BY p.process_id ORDER BY total(a.alloc_bytes) DESC, "
        "p.process_id LIMIT 1";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(m->db, sql, &s, err), is_new;
    *module = (struct export_module){.path = NULL};
    if (db_next(s, &rc, err)) {
        uint32_t row = ids_column(&m->ids, s, 1);
        uint32_t place = row ? m->same[row - 1] : place_of(m, db_text(s, 0), NULL, &is_new);
        if (!row && is_new) { /* no code of it is on a stack */
            struct export_module *added = ARRAY_ADD(m->modules, m->count, m->capacity);
            *added = (struct export_module){.path = db_own_text(s, 0), .number = m->count};
        }
        *module = m->modules[place];
    }
    sqlite3_finalize(s);
    return rc;
}
