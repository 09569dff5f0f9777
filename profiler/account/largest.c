#include "largest.h"

#include "../store/store.h"
#include "event.h"
#include "site.h"
#include "touch.h"

#include "../../common/error.h"

#include <stdlib.h>

void largest_open(struct largest *l)
{
    *l = (struct largest){.blocks = xmalloc(LARGEST_COUNT * sizeof *l->blocks)};
}

void largest_close(struct largest *l)
{
    free(l->blocks);
}

/* Of blocks alike in both the oldest: which ones stay must not depend on the order in which they were offered. */
static int is_less(const struct largest_block *a, const struct largest_block *b)
{
    if (a->size_bytes != b->size_bytes)
        return a->size_bytes < b->size_bytes;
    if (a->lifetime_ns != b->lifetime_ns)
        return a->lifetime_ns < b->lifetime_ns;
    return a->alloc_ns > b->alloc_ns;
}

static void rise(struct largest_block *heap, uint32_t i, const struct largest_block *b)
{
    for (; i && is_less(b, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = *b;
}

static void sink(struct largest_block *heap, uint32_t count, const struct largest_block *b)
{
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], b))
            break;
        heap[i] = heap[child];
    }
    heap[i] = *b;
}

void largest_add(struct largest *l, const struct largest_block *b)
{
    if (l->count < LARGEST_COUNT)
        rise(l->blocks, l->count++, b);
    else if (is_less(&l->blocks[0], b))
        sink(l->blocks, LARGEST_COUNT, b);
    if (l->count == LARGEST_COUNT)
        l->least_bytes = l->blocks[0].size_bytes;
}

static int largest_first(const void *a, const void *b)
{
    const struct largest_block *x = a, *y = b;
    if (is_less(y, x))
        return -1;
    if (is_less(x, y))
        return 1;
    return x->alloc_ns < y->alloc_ns ? -1 : x->alloc_ns > y->alloc_ns;
}

void largest_touched(struct largest_block *b, const struct block_touch *touch)
{
    if (!touch)
        return;
    b->first_touch = touch->first_what;
    b->last_touch = touch->last_what;
    b->first_touch_ns = touch->first_ns;
    b->last_touch_ns = touch->last_ns;
    b->touch_count = touch->count;
}

static void write_touch(struct store *store, int64_t block_id, const struct largest_block *b)
{
    static const char sql[] = "INSERT INTO block_touch(block_id, touch_count, first_ns, first_what, last_ns, last_what)"
                              " VALUES(?,?,?,?,?,?)";
    static const char *const names[] = {[TOUCH_WRITE] = "write", [TOUCH_READ] = "read"};
    sqlite3_stmt *s = b->first_touch ? store_statement(store, sql) : NULL;
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, block_id);
    sqlite3_bind_int64(s, 2, (int64_t)b->touch_count);
    sqlite3_bind_int64(s, 3, (int64_t)b->first_touch_ns);
    sqlite3_bind_text(s, 4, names[b->first_touch], -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, (int64_t)b->last_touch_ns);
    sqlite3_bind_text(s, 6, names[b->last_touch], -1, SQLITE_STATIC);
    store_step(store, s);
}

void largest_write(struct largest *l, struct store *store, const struct site_table *sites)
{
    static const char sql[] =
        "INSERT INTO block(block_id, device_id, kind, process_id, thread_id, address, size_bytes, "
        "alloc_ns, free_ns, stack_id) VALUES(?,?,?,?,?,?,?,?,?,?)";
    qsort(l->blocks, l->count, sizeof *l->blocks, largest_first);
    for (uint32_t i = 0; i < l->count; i++) {
        const struct largest_block *b = &l->blocks[i];
        const struct site *site = site_at(sites, b->site);
        sqlite3_stmt *s = store_statement(store, sql);
        if (!s)
            return;
        sqlite3_bind_int64(s, 1, i + 1);
        sqlite3_bind_int(s, 2, site->device);
        sqlite3_bind_text(s, 3, kind_name(site->kind), -1, SQLITE_STATIC);
        sqlite3_bind_int(s, 4, b->process_id);
        sqlite3_bind_int64(s, 5, b->thread_id);
        sqlite3_bind_int64(s, 6, (int64_t)b->address);
        sqlite3_bind_int64(s, 7, (int64_t)b->size_bytes);
        sqlite3_bind_int64(s, 8, (int64_t)b->alloc_ns);
        if (b->ended)
            sqlite3_bind_null(s, 9);
        else
            sqlite3_bind_int64(s, 9, (int64_t)(b->alloc_ns + b->lifetime_ns));
        sqlite3_bind_int64(s, 10, site->stack_id);
        store_step(store, s);
        write_touch(store, i + 1, b);
    }
}
