#include "device_row.h"

#include "store.h"

#include <stdio.h>
#include <string.h>

static void write_row(const struct device_rows *d, unsigned id, const char *name, const char *uuid, const char *model)
{
    sqlite3_stmt *q = store_statement(
        d->store, "INSERT INTO device(device_id, name, total_bytes, uuid, model) VALUES(?, ?, nullif(?, 0), ?, ?)");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, id);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 3, (int64_t)d->rows[id].total_bytes);
    sqlite3_bind_text(q, 4, uuid, -1, SQLITE_TRANSIENT); /* NULL binds NULL */
    sqlite3_bind_text(q, 5, model, -1, SQLITE_TRANSIENT);
    store_step(d->store, q);
}

void device_rows_open(struct device_rows *d, struct store *store)
{
    memset(d, 0, sizeof *d);
    d->store = store;
    d->count = 1;
    write_row(d, 0, "host", NULL, NULL);
}

void device_row_uuid(const struct device_row *row, char text[64])
{
    uint8_t b[16];
    memcpy(b, row->uuid, sizeof b);
    snprintf(text, 64, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
             b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static int name_is_taken(const struct device_rows *d, const char *kind, unsigned ordinal)
{
    for (unsigned i = 1; i < d->count; i++)
        if (d->rows[i].ordinal == ordinal && !strcmp(d->rows[i].kind, kind))
            return 1;
    return 0;
}

static int is_it(const struct device_row *row, const char *kind, unsigned ordinal, const uint64_t *uuid)
{
    if (strcmp(row->kind, kind))
        return 0;
    return uuid ? row->uuid[0] == uuid[0] && row->uuid[1] == uuid[1] : row->ordinal == ordinal;
}

unsigned device_rows_find(struct device_rows *d, const char *kind, unsigned ordinal, const uint64_t *uuid,
                          uint64_t total_bytes, const char *model)
{
    char name[32], text[64];
    if (uuid && !(uuid[0] | uuid[1]))
        uuid = NULL;
    for (unsigned i = 1; i < d->count; i++)
        if (is_it(&d->rows[i], kind, ordinal, uuid))
            return i;
    if (d->count == DEVICE_ROWS) {
        d->refused++;
        return DEVICE_ROWS - 1;
    }
    unsigned id = d->count;
    struct device_row *row = &d->rows[id];
    while (name_is_taken(d, kind, ordinal))
        ordinal++;
    *row = (struct device_row){.ordinal = ordinal, .total_bytes = total_bytes & INT64_MAX};
    snprintf(row->kind, sizeof row->kind, "%s", kind);
    if (uuid) {
        memcpy(row->uuid, uuid, sizeof row->uuid);
        device_row_uuid(row, text);
    }
    snprintf(name, sizeof name, "%s:%u", row->kind, ordinal);
    d->count++;
    write_row(d, id, name, uuid ? text : NULL, model);
    return id;
}
