#include "transfer.h"

#include "../store/store.h"

#include "../../common/array.h"
#include "../wire.h"

#include <stdlib.h>

static void grow_by(uint64_t *sum, uint64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum) || *sum > INT64_MAX)
        *sum = INT64_MAX;
}

void transfers_add(struct transfers *t, uint32_t stack_id, unsigned device_id, unsigned direction, uint64_t count,
                   uint64_t bytes)
{
    uint32_t i = map_number_or(&t->index, stack_id, device_id << 8 | direction, t->count);
    if (i == t->count)
        *ARRAY_ADD(t->entries, t->count, t->capacity) =
            (struct transfer){.stack_id = stack_id, .device_id = (uint8_t)device_id, .direction = (uint8_t)direction};
    struct transfer *e = &t->entries[i];
    grow_by(&e->count, count);
    grow_by(&e->bytes, bytes);
    e->dirty = 1;
}

void transfers_write(struct transfers *t, struct store *store)
{
    static const char sql[] = "INSERT OR REPLACE INTO transfer(stack_id, device_id, direction, transfer_count, "
                              "transfer_bytes) VALUES(?, ?, ?, ?, ?)";
    static const char *const names[] = {
        [WIRE_HTOD] = "HtoD", [WIRE_DTOH] = "DtoH", [WIRE_DTOD] = "DtoD",       [WIRE_HTOH] = "HtoH",
        [WIRE_PEER] = "peer", [WIRE_FILL] = "fill", [WIRE_UNIFIED] = "unified",
    };
    for (uint32_t i = 0; i < t->count; i++) {
        struct transfer *e = &t->entries[i];
        sqlite3_stmt *q = e->dirty && e->direction <= WIRE_UNIFIED ? store_statement(store, sql) : NULL;
        if (!q)
            continue;
        sqlite3_bind_int64(q, 1, e->stack_id);
        sqlite3_bind_int(q, 2, e->device_id);
        sqlite3_bind_text(q, 3, names[e->direction], -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 4, (int64_t)e->count);
        sqlite3_bind_int64(q, 5, (int64_t)e->bytes);
        store_step(store, q);
        e->dirty = 0;
    }
}

void transfers_anew(struct transfers *t, struct store *store)
{
    sqlite3_stmt *q = store_statement(store, "DELETE FROM transfer");
    transfers_close(t);
    if (q)
        store_step(store, q);
}

void transfers_close(struct transfers *t)
{
    map_close(&t->index);
    free(t->entries);
    *t = (struct transfers){0};
}
