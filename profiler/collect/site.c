#include "site.h"

#include "store.h"
#include "tally_row.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>

uint32_t site_add(struct site_table *t, uint32_t stack_id, uint16_t process_id, uint8_t device, uint8_t kind)
{
    if (t->count == UINT32_MAX - 1)
        bug("%u sites", t->count);
    uint32_t id = t->count + 1, page = id >> SITE_PAGE_BITS;
    if (page >= t->page_capacity) {
        uint32_t capacity = t->page_capacity ? t->page_capacity * 2 : 64;
        t->pages = xrealloc(t->pages, capacity * sizeof *t->pages);
        memset(t->pages + t->page_capacity, 0, (capacity - t->page_capacity) * sizeof *t->pages);
        t->page_capacity = capacity;
    }
    if (!t->pages[page]) { /* sites are set as they are added */
        t->pages[page] = aligned_alloc(_Alignof(struct site), SITE_PAGE * sizeof(struct site));
        if (!t->pages[page])
            out_of_memory(SITE_PAGE * sizeof(struct site));
    }
    if (stack_id >= t->stack_capacity) {
        uint64_t capacity = t->stack_capacity ? t->stack_capacity : 1024;
        while (capacity <= stack_id)
            capacity *= 2;
        if (capacity > UINT32_MAX)
            capacity = UINT32_MAX;
        if (stack_id >= capacity)
            bug("stack %u", stack_id);
        t->by_stack = xrealloc(t->by_stack, capacity * sizeof *t->by_stack);
        memset(t->by_stack + t->stack_capacity, 0, (capacity - t->stack_capacity) * sizeof *t->by_stack);
        t->stack_capacity = (uint32_t)capacity;
    }
    t->count = id;
    *site_at(t, id) = (struct site){
        .stack_id = stack_id, .process_id = process_id, .device = device, .kind = kind, .next = t->by_stack[stack_id]};
    t->by_stack[stack_id] = id;
    site_mark_dirty(t, site_at(t, id), id); /* events may name it without changing it */
    return id;
}

void site_mark_dirty(struct site_table *t, struct site *s, uint32_t id)
{
    if (s->dirty)
        return;
    s->dirty = 1;
    if (t->dirty_count == t->dirty_capacity) {
        t->dirty_capacity = t->dirty_capacity ? t->dirty_capacity * 2 : 1024;
        t->dirty = xrealloc(t->dirty, t->dirty_capacity * sizeof *t->dirty);
    }
    t->dirty[t->dirty_count++] = id;
}

static void write_site(struct store *store, const struct site *s, uint32_t id, const struct tally_peaks *peaks)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO site(site_id, stack_id, process_id, device_id, kind, " TALLY_COLUMNS
        ") VALUES(?,?,?,?,?," TALLY_VALUES ")";
    sqlite3_stmt *q = store_statement(store, sql);
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, id);
    sqlite3_bind_int64(q, 2, s->stack_id);
    sqlite3_bind_int(q, 3, s->process_id);
    sqlite3_bind_int(q, 4, s->device);
    sqlite3_bind_text(q, 5, kind_name(s->kind), -1, SQLITE_STATIC);
    tally_bind(q, 6, &s->tally, peaks);
    store_step(store, q);
}

static void update_site(struct site_table *t, struct store *store, struct device_account *const *devices, uint32_t id)
{
    struct site *s = site_at(t, id);
    const struct device_account *d = devices[s->device];
    struct tally_peaks peaks = tally_peaks(&s->tally, d, d->kinds[s->kind]);
    if (!s->dirty && !tally_peaks_moved(&s->tally, &peaks))
        return;
    s->dirty = 0;
    tally_peaks_written(&s->tally, &peaks);
    write_site(store, s, id, &peaks);
}

void sites_write(struct site_table *t, struct store *store, struct device_account *const *devices, int peaks_moved)
{
    if (peaks_moved) {
        for (uint32_t id = 1; id <= t->count; id++)
            update_site(t, store, devices, id);
    } else {
        for (uint32_t i = 0; i < t->dirty_count; i++)
            update_site(t, store, devices, t->dirty[i]);
    }
    t->dirty_count = 0;
}

void sites_close(struct site_table *t)
{
    for (uint32_t i = 0; i < t->page_capacity; i++)
        free(t->pages[i]);
    free(t->pages);
    free(t->by_stack);
    free(t->dirty);
}
