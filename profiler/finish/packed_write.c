/* SPDX-License-Identifier: MIT */
/*
 * packed_write.c: whole columns of packed rows, written at the end.
 */
#include "packed_write.h"

#include "../../common/db.h"

#include <stdio.h>

/* The file may be an earlier version's. */
static int needs(sqlite3 *db, int version, struct error *err)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA main.user_version = %d", version);
    return db_int(db, "PRAGMA main.user_version", 0) < version ? db_exec(db, sql, err) : 0;
}

int packed_write(sqlite3_stmt *insert, struct chunk_codec *codec, enum packed_column column, uint64_t *values,
                 uint32_t rows, struct error *err)
{
    struct buf data = BUF(PACKED_ROWS * 16ul + (1u << 16));
    sqlite3 *db = sqlite3_db_handle(insert);
    int rc = 0;
    for (uint32_t first = 1; first <= rows && rc == 0; first += PACKED_ROWS) {
        uint32_t left = rows - first + 1, count = left < PACKED_ROWS ? left : PACKED_ROWS;
        int has_data = packed_encode(codec, column, first, values + first, count, &data);
        if (has_data < 0)
            rc = error_set(err, -has_data, "out of memory");
        if (has_data == 1)
            rc = needs(db, packed_schema(column), err);
        if (has_data != 1 || rc)
            continue;
        packed_bind(insert, packed_table_of(column), 0, column, first, count, &data);
        rc = sqlite3_step(insert) == SQLITE_DONE ? 0 : db_error(db, err);
        sqlite3_reset(insert);
        sqlite3_clear_bindings(insert);
    }
    buf_free(&data);
    return rc;
}
