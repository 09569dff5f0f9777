#include "self_module.h"

#include "../../common/db.h"
#include "tree.h"

int self_module_load(sqlite3 *db, struct error *err)
{
    struct tree tree;
    sqlite3_stmt *s = NULL, *insert = NULL;
    int step = SQLITE_DONE;
    int rc = tree_open(db, &tree, err);
    if (rc == 0)
        rc =
            db_exec(db,
                    "DROP TABLE IF EXISTS temp.site_module; CREATE TEMP TABLE site_module(site_id INTEGER PRIMARY KEY, "
                    "key_id INTEGER); SAVEPOINT fill",
                    err);
    if (rc == 0)
        rc = db_prepare(db, "SELECT site_id, stack_id, line_id FROM site JOIN site_line USING(site_id)", &s, err);
    if (rc == 0)
        rc = db_prepare(db, "INSERT OR IGNORE INTO temp.site_module VALUES(?, ?)", &insert, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        uint32_t node = tree_node(&tree, sqlite3_column_int64(s, 1));
        struct tree_place self = tree_find(&tree, node, tree_line(&tree, sqlite3_column_int64(s, 2)));
        uint32_t module = tree.addresses[tree.nodes[self.node].address].module;
        if (!module)
            continue;
        sqlite3_bind_int64(insert, 1, sqlite3_column_int64(s, 0));
        sqlite3_bind_int64(insert, 2, tree.modules[module].key_id);
        if (sqlite3_step(insert) != SQLITE_DONE)
            rc = db_error(db, err);
        sqlite3_reset(insert);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(s);
    sqlite3_finalize(insert);
    if (rc == 0)
        rc = db_exec(db, "RELEASE fill", err);
    tree_close(&tree);
    return rc;
}
