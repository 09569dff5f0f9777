#include "transfer.h"

#include "../store/store.h"

#include "../../common/error.h"
#include "../wire.h"

#include <stdlib.h>

static struct transfer *place(const struct transfers *t, uint32_t stack_id, unsigned device_id, unsigned direction)
{
    uint64_t key = (uint64_t)stack_id << 16 | (uint64_t)device_id << 8 | direction;
    uint32_t i = (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 32) & (t->capacity - 1);
    for (;; i = (i + 1) & (t->capacity - 1)) {
        struct transfer *e = &t->entries[i];
        if (!e->count || (e->stack_id == stack_id && e->device_id == device_id && e->direction == direction))
            return e;
    }
}

static void grow(struct transfers *t)
{
    struct transfers old = *t;
    t->capacity = old.capacity ? old.capacity * 2 : 8;
    t->entries = xcalloc(t->capacity, sizeof *t->entries);
    for (uint32_t i = 0; i < old.capacity; i++) {
        const struct transfer *e = &old.entries[i];
        if (e->count)
            *place(t, e->stack_id, e->device_id, e->direction) = *e;
    }
    free(old.entries);
}

static void grow_by(uint64_t *sum, uint64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum) || *sum > INT64_MAX)
        *sum = INT64_MAX;
}

void transfers_add(struct transfers *t, uint32_t stack_id, unsigned device_id, unsigned direction, uint64_t count,
                   uint64_t bytes)
{
    if (t->used >= t->capacity / 4 * 3)
        grow(t);
    struct transfer *e = place(t, stack_id, device_id, direction);
    if (!e->count) {
        t->used++;
        *e = (struct transfer){.stack_id = stack_id, .device_id = (uint8_t)device_id, .direction = (uint8_t)direction};
    }
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
    for (uint32_t i = 0; i < t->capacity; i++) {
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

void transfers_close(struct transfers *t)
{
    free(t->entries);
    *t = (struct transfers){0};
}
