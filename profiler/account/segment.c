#include "segment.h"

#include "../../common/range.h"
#include "../store/store.h"

#include "../../common/error.h"
#include "../../common/kind.h"

#include <stdlib.h>

struct segments {
    struct range_map *ranges; /* id: row; 0: has none */
};

struct segments *segments_open(void)
{
    struct segments *s = xmalloc(sizeof *s);
    s->ranges = range_map_open();
    return s;
}

void segments_close(struct segments *s)
{
    if (!s)
        return;
    range_map_close(s->ranges);
    free(s);
}

static uint64_t row_insert(const struct segment_change *c, uint64_t start, uint64_t end, uint32_t stack_id)
{
    static const char sql[] = "INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, "
                              "alloc_ns, stack_id) VALUES(?,?,?,?,?,?,?,?)";
    struct segment_rows *rows = c->rows;
    if (rows->of[c->device][c->kind] >= SEGMENT_ROWS_MAX) {
        rows->missing++;
        return 0;
    }
    sqlite3_stmt *s = store_statement(c->store, sql);
    if (!s)
        return 0;
    uint64_t row = ++rows->count;
    rows->of[c->device][c->kind]++;
    sqlite3_bind_int64(s, 1, (int64_t)row);
    sqlite3_bind_int(s, 2, c->device);
    sqlite3_bind_text(s, 3, kind_name(c->kind), -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 4, c->process_id);
    sqlite3_bind_int64(s, 5, (int64_t)start);
    sqlite3_bind_int64(s, 6, (int64_t)(end - start));
    sqlite3_bind_int64(s, 7, (int64_t)c->time_ns);
    if (stack_id)
        sqlite3_bind_int64(s, 8, stack_id);
    else
        sqlite3_bind_null(s, 8);
    store_step(c->store, s);
    return row;
}

static void row_end(const struct segment_change *c, uint64_t row)
{
    static const char sql[] = "UPDATE segment SET free_ns = ? WHERE segment_id = ?";
    sqlite3_stmt *s = row ? store_statement(c->store, sql) : NULL;
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, (int64_t)c->time_ns);
    sqlite3_bind_int64(s, 2, (int64_t)row);
    store_step(c->store, s);
}

static void add(struct segments *s, const struct segment_change *c, uint64_t start, uint64_t end, uint32_t stack_id)
{
    struct range r = {.start = start, .end = end, .stack_id = stack_id, .type = c->kind, .flag = c->is_counted};
    r.id = row_insert(c, start, end, stack_id);
    range_map_insert(s->ranges, &r);
}

void segments_free(struct segments *s, struct segment_change *c, uint64_t address, uint64_t size_bytes)
{
    uint64_t end;
    uint8_t kind = c->kind, is_counted = c->is_counted;
    struct range *found;
    if (__builtin_add_overflow(address, size_bytes, &end))
        end = UINT64_MAX;
    while (address < end && (found = range_map_find(s->ranges, address)) && found->start < end) {
        struct range r = *found;
        uint64_t from = r.start > address ? r.start : address, to = r.end < end ? r.end : end;
        range_map_remove(s->ranges, found);
        row_end(c, r.id);
        if (r.flag)
            c->bytes[r.type] -= (int64_t)(to - from);
        /* what remains is a segment of its own from now on, so that rows stay true over time */
        c->kind = r.type;
        c->is_counted = r.flag;
        if (r.start < from)
            add(s, c, r.start, from, r.stack_id);
        if (to < r.end)
            add(s, c, to, r.end, r.stack_id);
        c->kind = kind;
        c->is_counted = is_counted;
    }
}

int segments_find(struct segments *s, uint64_t address, struct range *found)
{
    const struct range *r = range_map_find(s->ranges, address);
    if (!r || r->start > address)
        return 0;
    *found = *r;
    return 1;
}

void segments_alloc(struct segments *s, struct segment_change *c, uint64_t address, uint64_t size_bytes,
                    uint32_t stack_id)
{
    uint64_t end;
    segments_free(s, c, address, size_bytes);
    if (!size_bytes || __builtin_add_overflow(address, size_bytes, &end))
        return;
    add(s, c, address, end, stack_id);
    if (c->is_counted)
        c->bytes[c->kind] += (int64_t)size_bytes;
}

void segments_end(struct segments *s, struct segment_change *c)
{
    const struct range *r;
    while ((r = range_map_find(s->ranges, 0))) {
        if (r->flag)
            c->bytes[r->type] -= (int64_t)(r->end - r->start);
        range_map_remove(s->ranges, r);
    }
    segments_close(s);
}
