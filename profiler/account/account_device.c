/* What only devices and sub-allocators have: frees that wait for a stream, blocks that turn out to be an allocator's
 * memory, the driver's own figures. */
#include "../../common/range.h"
#include "account_private.h"
#include "segment.h"

#define SAMPLE_ROWS_MAX 65536u /* in the file at the sampling rate; then one a second */
#define SAMPLE_SLOW_NS  1000000000u
#define HEADER_BYTES    4096u /* an allocator's first segment begins at most so far into the block it came from */
#define SEARCH_MAX      (1ull << 28) /* live blocks looked at in a run for blocks that hold an address */

/* --- frees that wait --- */

void account_free_requested(struct account *a, const struct event *e)
{
    const struct process_account *p = a->processes[e->process_id];
    uint64_t key = live_key(e->address, account_space(e->kind));
    struct live_block *b = p ? live_find(p->live, key, live_hash(key)) : NULL;
    if (!b || b->requested)
        return;
    const struct site *s = site_at(&a->sites, b->site);
    struct device_account *d = a->devices[s->device];
    b->requested = 1;
    b->temporary = a->threads[b->thread_id]->last_key == b->key;
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    d->pending_bytes += b->size;
    timeline_pending(d->timeline, d->pending_bytes);
    account_freed_event(a, e->stack_id);
    account_keep(a, e, CHUNK_free_requested, b->key & LIVE_ADDRESS_MASK, b->size, b->site, s->device, s->kind, 0);
}

void account_unpend(struct device_account *d, const struct live_block *b)
{
    d->pending_bytes -= b->size;
    timeline_pending(d->timeline, d->pending_bytes);
}

/* --- blocks that become segments --- */

struct search {
    const struct account *a;
    uint64_t address;
    unsigned device;
    uint64_t key; /* found; 0: not */
};

static int holds(const struct search *x, const struct live_block *b)
{
    const struct site *s = site_at(&x->a->sites, b->site);
    uint64_t start = b->key & LIVE_ADDRESS_MASK;
    return s->device == x->device && s->kind != KIND_sub && start <= x->address && x->address - start < b->size;
}

static void look(void *context, const struct live_block *b)
{
    struct search *x = context;
    if (holds(x, b))
        x->key = b->key;
}

/* The key of the live block that holds the event's address, 0: none. The host's may be known by an address within it.
 */
static uint64_t find_block(struct account *a, struct live_table *live, const struct event *e)
{
    struct search x = {.a = a, .address = e->address & LIVE_ADDRESS_MASK, .device = e->device};
    const unsigned spaces[2] = {account_space(e->kind), account_space(KIND_map)};
    for (unsigned i = 0; i < (e->device ? 1 : 2); i++) {
        uint64_t key = live_key(e->address, spaces[i]);
        const struct live_block *b = live_find(live, key, live_hash(key));
        if (b && site_at(&a->sites, b->site)->device == e->device)
            return key;
    }
    if (e->device)
        return 0;
    for (uint64_t back = 16; back <= HEADER_BYTES && back < x.address; back += 16) {
        uint64_t key = live_key((x.address & ~15ull) - back + 16, spaces[0]);
        const struct live_block *b = live_find(live, key, live_hash(key));
        if (b && holds(&x, b))
            return key;
    }
    if (a->searched_blocks + live->count > SEARCH_MAX)
        return 0;
    a->searched_blocks += live->count;
    live_each(live, look, &x);
    return x.key;
}

static void leave(struct account *a, const struct event *e, const struct live_block *b)
{
    struct site *s = site_at(&a->sites, b->site);
    struct device_account *d = a->devices[s->device];
    struct kind_account *k = d->kinds[s->kind];
    struct thread_device *t = account_thread_device(a, b->thread_id, s->device);
    struct tally *tally = account_thread_tally(t, s->kind);
    account_seal(a);
    account_touch_site(a, s, b->site);
    account_thread_touch(a, b->thread_id, t, s->kind);
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    if (b->requested)
        account_unpend(d, b);
    if (b->named)
        account_name_end(a, e->process_id, b->key, 1);
    level_drop(&d->level, b->size, 1);
    level_drop(&k->level, b->size, 1);
    timeline_fall(d->timeline, d->level.active_bytes);
    t->live_bytes -= b->size;
    if (b->time_ns < a->started.ns) { /* it was an allocation of another part: here it just goes */
        account_inherited_left(a, a->processes[e->process_id], b, 1);
        tally_free(&s->tally, b->size, 1, 0);
        tally_free(tally, b->size, 1, 0);
        histogram_free(&k->histogram, b->size, 1, b->size, 0, 0);
    } else {
        site_rare(&a->sites, s);
        tally_move(&s->tally, b->size);
        tally_move(tally, b->size);
        histogram_undo(&k->histogram, b->size);
    }
    if (b->thread_id != e->thread_id)
        account_chunk_owner(a, b->thread_id);
    account_keep(a, e, CHUNK_to_segment, b->key & LIVE_ADDRESS_MASK, b->size, b->site, s->device, s->kind, 0);
}

/* Its bytes stay reserved where they are so already: as a map, in the samples of the heap, as a driver's segment. */
static void add_segment(struct account *a, const struct event *e, const struct live_block *b)
{
    const struct site *s = site_at(&a->sites, b->site);
    const struct process_device *pd = account_process_device(a, e->process_id, s->device);
    struct device_account *d = a->devices[s->device];
    struct event segment = *e;
    struct range found;
    segment.op = EVENT_SEGMENT_ALLOC;
    segment.address = b->key & LIVE_ADDRESS_MASK;
    segment.size_bytes = b->size;
    segment.stack_id = s->stack_id;
    segment.kind = s->kind;
    segment.device = s->device;
    if (pd->segments && segments_find(pd->segments, segment.address, &found))
        return;
    if (!s->device && s->kind == KIND_map)
        account_reserved_change(a, d, d->kinds[KIND_map], -(int64_t)b->size);
    account_segment(a, &segment, !e->is_sampled && (s->device || s->kind != KIND_heap));
}

/* Memory of no block: a static array, or what nobody saw allocated. */
static void add_unknown(struct account *a, const struct event *e)
{
    const struct process_device *pd = account_process_device(a, e->process_id, e->device);
    struct event segment = *e;
    struct range found;
    segment.op = EVENT_SEGMENT_ALLOC;
    segment.kind = KIND_sub;
    account_device(a, e->device);
    if (e->size_bytes && !(pd->segments && segments_find(pd->segments, e->address, &found)))
        account_segment(a, &segment, !e->is_sampled);
}

void account_to_segment(struct account *a, const struct event *e)
{
    struct process_account *p = a->processes[e->process_id];
    uint64_t key = p ? find_block(a, p->live, e) : 0;
    struct live_block *b = key ? live_find(p->live, key, live_hash(key)) : NULL;
    if (!b) {
        add_unknown(a, e);
        return;
    }
    struct live_block block = *b;
    if (account_part_of(p, b)) { /* it was a block: a part of it leaves, and is reserved still */
        const struct site *s = site_at(&a->sites, b->site);
        account_part_leave(a, e, p, b);
        account_reserved_change(a, a->devices[s->device], a->devices[s->device]->kinds[s->kind], (int64_t)block.size);
    } else {
        leave(a, e, b);
    }
    live_remove(p->live, b);
    a->counts.live_blocks--;
    p->has_moved = 1;
    add_segment(a, e, &block);
}

int account_free_moved(struct account *a, const struct event *e)
{
    const struct process_device *pd = account_process_device(a, e->process_id, e->device);
    struct range found;
    if (e->device || !pd->segments || !segments_find(pd->segments, e->address, &found) || found.start != e->address ||
        found.type != e->kind)
        return 0;
    struct event segment = *e;
    segment.op = EVENT_SEGMENT_FREE;
    segment.size_bytes = found.end - found.start;
    account_segment(a, &segment, 1);
    return 1;
}

/* --- the driver's figures --- */

static void write_sample(struct account *a, unsigned device, const struct device_account *d)
{
    static const char sql[] = "INSERT OR REPLACE INTO device_sample(device_id, time_ns, total_bytes, used_bytes, "
                              "active_bytes, allocated_bytes, reserved_bytes) VALUES(?,?,?,?,?,?,?)";
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    const uint64_t values[] = {device,
                               a->now_ns,
                               d->total_bytes,
                               d->used_bytes,
                               d->level.active_bytes,
                               d->level.active_bytes - d->pending_bytes,
                               d->reserved.bytes};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        sqlite3_bind_int64(s, (int)i + 1, (int64_t)values[i]);
    store_step(a->store, s);
    a->sample_rows++;
}

void account_device_used(struct account *a, const struct event *e)
{
    struct device_account *d = account_device(a, e->device);
    uint64_t used = e->size_bytes < LIVE_SIZE_MAX ? e->size_bytes : LIVE_SIZE_MAX;
    uint64_t total = e->address < LIVE_SIZE_MAX ? e->address : LIVE_SIZE_MAX;
    int is_new = !d->total_bytes || used != d->used_bytes || total != d->total_bytes;
    uint64_t since_ns = a->now_ns - d->written_ns;
    if (used > total)
        used = total;
    d->used_bytes = used;
    d->total_bytes = total;
    d->sample_ns = a->now_ns;
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    timeline_rss(d->timeline, used);
    if (is_new ? a->sample_rows < SAMPLE_ROWS_MAX || since_ns > SAMPLE_SLOW_NS : since_ns > SAMPLE_SLOW_NS) {
        d->written_ns = a->now_ns;
        write_sample(a, e->device, d);
    }
}
