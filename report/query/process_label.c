#include "process_label.h"

#include "../../common/db.h"
#include "program_name.h"

sqlite3_stmt *process_label_query(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    db_prepare(
        db,
        "SELECT p.pid, p.command_line, " PROGRAM_TITLE("p.process_id") " FROM main.process p WHERE p.process_id = ?",
        &s, NULL);
    return s;
}

int64_t process_label(sqlite3_stmt *s, int64_t process_id, struct buf *name)
{
    int64_t pid = -1;
    if (!s)
        return -1;
    sqlite3_bind_int64(s, 1, process_id);
    if (sqlite3_step(s) == SQLITE_ROW) {
        pid = sqlite3_column_int64(s, 0);
        if (sqlite3_column_type(s, 2) != SQLITE_NULL)
            buf_puts(name, db_text(s, 2));
        else
            program_name(name, db_text(s, 1));
    }
    sqlite3_reset(s);
    return pid;
}
