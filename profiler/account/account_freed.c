/* Who freed what (run --free-stacks): sums by freeing stack and site, and the stack of each event. Nothing comes here
 * where that was not asked for. */
#include "account_private.h"

#include "../../common/array.h"

#include <stdlib.h>

#define MANY_ROWS 4096u       /* so many that changed are not written with each commit, */
#define MANY_NS   5000000000u /* but after this time */

struct freed_site {
    uint64_t free_count, free_bytes;
    uint64_t thread_count, thread_bytes; /* of these: what another thread had allocated */
    uint64_t device_count, device_bytes; /* while another device was current */
    uint64_t realloc_count;              /* that went on as another block, or at another size */
    uint32_t stack_id, site_id;
    uint32_t is_dirty;
};

static struct freed_site *find(struct freed *f, uint32_t stack_id, uint32_t site_id)
{
    uint32_t place = map_number_or(&f->index, stack_id, site_id, f->count);
    if (place == f->count)
        *ARRAY_ADD(f->sites, f->count, f->capacity) = (struct freed_site){.stack_id = stack_id, .site_id = site_id};
    struct freed_site *s = &f->sites[place];
    if (!s->is_dirty)
        *ARRAY_ADD(f->dirty, f->dirty_count, f->dirty_capacity) = place;
    s->is_dirty = 1;
    return s;
}

void account_freed_event(struct account *a, uint32_t stack_id)
{
    struct freed *f = &a->freed;
    if (a->chunk && stack_id)
        *ARRAY_ADD(f->chunk, f->chunk_count, f->chunk_room) = (struct chunk_freer){a->chunk_fill, stack_id};
}

__attribute__((noinline)) void account_freed(struct account *a, const struct event *e, const struct live_block *b,
                                             unsigned is_last)
{
    struct freed_site *s = find(&a->freed, e->stack_id, b->site);
    s->free_count += is_last;
    s->free_bytes += b->size;
    if (b->thread_id != e->thread_id) {
        s->thread_count += is_last;
        s->thread_bytes += b->size;
    }
    if (e->is_sampled) {
        s->device_count += is_last;
        s->device_bytes += b->size;
    }
    s->realloc_count += is_last && e->op == EVENT_REALLOC_FREE;
    account_freed_event(a, e->stack_id);
}

static void write_one(struct account *a, struct freed_site *f)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO free_site(stack_id, site_id, free_count, free_bytes, thread_count, "
        "thread_bytes, device_count, device_bytes, realloc_count) VALUES(?,?,?,?,?,?,?,?,?)";
    const uint64_t values[] = {f->stack_id,     f->site_id,      f->free_count,   f->free_bytes,   f->thread_count,
                               f->thread_bytes, f->device_count, f->device_bytes, f->realloc_count};
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        sqlite3_bind_int64(s, (int)i + 1, (int64_t)values[i]);
    store_step(a->store, s);
    f->is_dirty = 0;
}

void account_freed_write(struct account *a, int last)
{
    struct freed *f = &a->freed;
    if (!last && f->dirty_count > MANY_ROWS && a->now_ns - f->written_ns < MANY_NS)
        return;
    for (uint32_t i = 0; i < f->dirty_count; i++)
        write_one(a, &f->sites[f->dirty[i]]);
    f->dirty_count = 0;
    f->written_ns = a->now_ns;
}

void account_freed_close(struct account *a)
{
    map_close(&a->freed.index);
    free(a->freed.sites);
    free(a->freed.dirty);
    free(a->freed.chunk);
}
