#include "notebook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

uint32_t notebook_hash(const char *source, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)source;
    const uint32_t m = 0x5bd1e995;
    uint32_t h = 0xc70f6907 ^ (uint32_t)bytes; /* ipykernel's seed */
    for (; bytes >= 4; at += 4, bytes -= 4) {
        uint32_t k = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        k *= m;
        k ^= k >> 24;
        h = h * m ^ k * m;
    }
    for (size_t i = bytes; i-- > 0;)
        h ^= (uint32_t)at[i] << 8 * i;
    if (bytes)
        h *= m;
    h ^= h >> 13;
    h *= m;
    return h ^ h >> 15;
}

int notebook_name(const char *path, uint32_t *hash)
{
    const char *name = strrchr(path, '/'), *directory = name;
    char *end;
    if (!name)
        return 0;
    while (directory > path && directory[-1] != '/')
        directory--;
    if (strncmp(directory, "ipykernel_", 10) != 0 || name[1] < '0' || name[1] > '9')
        return 0;
    unsigned long value = strtoul(name + 1, &end, 10);
    *hash = (uint32_t)value;
    return value <= UINT32_MAX && strcmp(end, ".py") == 0;
}

/* --- cells --- */

int notebook_cells(sqlite3 *db, const char *text, size_t length,
                   void (*cell)(void *arg, const char *source, size_t bytes), void *arg)
{
    /* a source is a text or a list of its parts; json_each makes rows of both */
    static const char sql[] =
        "SELECT (SELECT group_concat(value, '') FROM json_each(c.value, '$.source') WHERE type = 'text') "
        "FROM json_each(?1, '$.cells') c WHERE c.type = 'object' AND json_extract(c.value, '$.cell_type') = 'code'";
    sqlite3_stmt *q = NULL;
    int count = 0, step = SQLITE_ERROR;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK &&
        sqlite3_bind_text64(q, 1, text, length, SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK)
        while ((step = sqlite3_step(q)) == SQLITE_ROW) {
            const char *source = (const char *)sqlite3_column_text(q, 0);
            if (!source || !*source)
                continue;
            cell(arg, source, (size_t)sqlite3_column_bytes(q, 0));
            count++;
        }
    sqlite3_finalize(q);
    return step == SQLITE_DONE ? count : -EBADMSG;
}
