/* The end of a process: what it still holds leaves the accounts. */
#include "account_private.h"
#include "segment.h"

#include "../../common/array.h"

#include <stdlib.h>

/*
 * The end of an interpreter's process begins before it: Python destroys what the program kept, and what is left then
 * says nothing of the program. What is live where that begins counts as live at the end, and as freed, too, if it is.
 * Tallies have these blocks in teardown_*, and from the process's end on only those that were freed.
 */
struct teardown {
    struct account *a;
    const struct process_account *process;
    uint64_t began_ns;
    uint64_t sign; /* 1, or -1 to take back those that were left after all */
};

static void count_teardown(void *context, const struct live_block *b)
{
    const struct teardown *x = context;
    struct account *a = x->a;
    struct site *s = site_at(&a->sites, b->site);
    struct device_account *d = a->devices[s->device];
    struct kind_account *k = d->kinds[s->kind];
    if (b->time_ns > x->began_ns)
        return;
    const struct sample *sample = sample_at(&a->sampled, b->site);
    uint64_t bytes = x->sign * b->size, count = account_part_is_first(x->process, b) ? x->sign : 0;
    if (sample)
        count = x->sign * sample_count(sample, b->key, b->time_ns);
    struct tally *thread = account_thread_tally(account_thread_device(a, b->thread_id, s->device), s->kind);
    site_mark_dirty(&a->sites, s, b->site); /* no event of the chunk, which has room for as many sites as events */
    account_thread_dirty(a, b->thread_id);
    struct tally_rare *rare = site_rare(&a->sites, s);
    rare->teardown_bytes += bytes;
    rare->teardown_count += count;
    thread->rare->teardown_bytes += bytes;
    thread->rare->teardown_count += count;
    k->teardown_bytes += bytes;
    k->teardown_count += count;
    if (x->sign != 1 && count)
        ++*map_slot(&a->sites.kept, b->site, 0);
}

void account_teardown_anew(struct account *a)
{
    a->teardown_moved = 1;
    for (unsigned i = 0; i < ACCOUNT_PROCESSES; i++) {
        const struct process_account *p = a->processes[i];
        if (!p || !p->is_torn_down)
            continue;
        account_parts_pass(a->processes[i]);
        live_each(p->live, count_teardown, &(struct teardown){a, p, p->teardown_ns, 1});
    }
}

/* Of a process that runs interpreters one after the other, the first. */
void account_teardown(struct account *a, const struct event *e)
{
    static const char sql[] = "INSERT OR REPLACE INTO teardown(process_id, time_ns) VALUES(?, ?)";
    struct process_account *p = account_process(a, e->process_id);
    struct teardown x = {.a = a, .process = p, .began_ns = a->now_ns, .sign = 1};
    sqlite3_stmt *s = p->is_torn_down ? NULL : store_statement(a->store, sql);
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, e->process_id);
    sqlite3_bind_int64(s, 2, (int64_t)a->now_ns);
    store_step(a->store, s);
    p->is_torn_down = a->teardown_moved = 1;
    p->teardown_ns = a->now_ns;
    account_seal(a);
    keyframe_teardown(a);
    p->is_last_holder = p->live->count && p->live->count == a->counts.live_blocks;
    if (p->is_last_holder)
        keyframe_process_ends(a);
    account_parts_pass(p);
    live_each(p->live, count_teardown, &x);
}

struct torn { /* sites by row */
    struct site_table *sites;
    uint32_t *ids, count, capacity;
};

static void torn_column(void *arg, uint32_t row, int number, sqlite3_context *value)
{
    const struct torn *x = arg;
    const struct tally_rare *r = tally_rare(&site_at(x->sites, x->ids[row])->tally);
    const uint64_t of_row[] = {x->ids[row], r->teardown_bytes, r->teardown_count};
    sqlite3_result_int64(value, (int64_t)of_row[number]);
}

static void write_kept(struct account *a)
{
    static const char sql[] = "INSERT OR REPLACE INTO site_kept(site_id, kept_count) VALUES(?, ?)";
    const struct map *kept = &a->sites.kept;
    for (struct map_entry *e = map_next(kept, NULL); e; e = map_next(kept, e)) {
        sqlite3_stmt *s = store_statement(a->store, sql);
        if (!s)
            return;
        sqlite3_bind_int64(s, 1, (int64_t)e->a);
        sqlite3_bind_int64(s, 2, (int64_t)e->value);
        store_step(a->store, s);
    }
}

void account_teardown_write(struct account *a)
{
    static const char sql[] = "INSERT INTO site_teardown(site_id, freed_bytes, freed_count) SELECT * FROM "
                              "new_site_teardown(?1)";
    int is_plain = a->teardown_moved && !a->sites.packer; /* packed ones are columns of the sites, which changed too */
    sqlite3_stmt *none = is_plain ? store_statement(a->store, "DELETE FROM site_teardown") : NULL;
    struct torn x = {.sites = &a->sites};
    a->teardown_moved = 0;
    if (!none)
        return;
    store_step(a->store, none);
    for (uint32_t id = 1; id <= a->sites.count; id++)
        if (tally_rare(&site_at(&a->sites, id)->tally)->teardown_count)
            *ARRAY_ADD(x.ids, x.count, x.capacity) = id;
    a->torn_rows.name = "new_site_teardown";
    a->torn_rows.declaration = "CREATE TABLE x(rows HIDDEN, site_id, freed_bytes, freed_count)";
    a->torn_rows.column = torn_column;
    a->torn_rows.arg = &x;
    a->torn_rows.last = x.count - 1;
    if (x.count)
        store_rows(a->store, &a->torn_rows, sql);
    write_kept(a);
    free(x.ids);
}

void account_offer_live(struct account *a, const struct process_account *process, uint16_t process_id,
                        const struct live_block *b)
{
    const struct part_block *block = account_part_of(process, b);
    const struct sample *sample = sample_at(&a->sampled, b->site);
    uint64_t size = block ? block->size_bytes : sample ? sample->size_bytes : b->size;
    if (!largest_wants(&a->largest, size))
        return;
    struct largest_block l = {.size_bytes = size,
                              .lifetime_ns = a->now_ns - b->time_ns,
                              .address = block ? block->address : b->key & LIVE_ADDRESS_MASK,
                              .alloc_ns = b->time_ns,
                              .thread_id = b->thread_id,
                              .site = b->site,
                              .process_id = process_id,
                              .ended = 1};
    largest_touched(&l, touches_find(&a->touches, process_id, b->key, b->time_ns));
    largest_add(&a->largest, &l);
}

struct held {
    uint64_t bytes, count;
};

struct ending {
    struct account *a;
    const struct process_account *process;
    const struct event *event;
    struct held *held; /* by site */
    uint32_t *sites;   /* that hold something */
    uint32_t site_count, site_capacity;
};

static void end_block(void *context, const struct live_block *b)
{
    struct ending *x = context;
    struct account *a = x->a;
    struct site *s = site_at(&a->sites, b->site);
    struct device_account *d = a->devices[s->device];
    const struct sample *sample = sample_at(&a->sampled, b->site);
    uint64_t count = sample ? sample_count(sample, b->key, b->time_ns) : account_part_is_first(x->process, b) != 0;
    struct held *held = &x->held[b->site];
    if (!held->count) /* the first part of a block counts */
        *ARRAY_ADD(x->sites, x->site_count, x->site_capacity) = b->site;
    held->count += count;
    a->counts.live_blocks--;
    held->bytes += b->size;
    if (b->requested) {
        timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
        account_unpend(d, b);
    }
    struct thread_device *t = account_thread_device(a, b->thread_id, s->device);
    struct tally *tally = account_thread_tally(t, s->kind);
    if (tally->generation != d->generation)
        account_thread_touch(a, b->thread_id, t, s->kind);
    tally_end(tally, b->size, count);
    t->live_bytes -= b->size;
    if (count)
        account_offer_live(a, x->process, x->event->process_id, b);
}

/* One event a site: the count stands where an address does. */
static void end_site(struct account *a, const struct event *e, uint32_t id, struct held *held)
{
    struct site *s = site_at(&a->sites, id);
    struct device_account *d = a->devices[s->device];
    struct kind_account *k = d->kinds[s->kind];
    uint64_t bytes = held->bytes, count = held->count;
    *held = (struct held){0};
    if (s->tally.generation != d->generation)
        account_touch_site(a, s, id);
    site_rare(&a->sites, s);
    tally_end(&s->tally, bytes, count);
    k->end_count += count;
    k->end_bytes += bytes;
    level_drop(&d->level, bytes, count);
    level_drop(&k->level, bytes, count);
    if (s->kind == KIND_map && s->device == 0)
        account_reserved_change(a, d, k, -(int64_t)bytes);
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    timeline_fall(d->timeline, d->level.active_bytes);
    account_keep(a, e, CHUNK_end, count, bytes, id, s->device, s->kind, 0);
}

static void end_devices(struct account *a, struct process_account *p)
{
    for (struct process_device *pd = p->devices, *next; pd; pd = next) {
        struct device_account *d = a->devices[pd->device];
        struct segment_change c = {.store = a->store, .rows = &a->segment_rows, .time_ns = a->now_ns};
        next = pd->next;
        if (pd->segments)
            segments_end(pd->segments, &c);
        for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
            if (c.bytes[kind])
                account_reserved_change(a, d, d->kinds[kind], c.bytes[kind]);
            if (pd->reserved_bytes[kind])
                account_reserved_sampled(a, d, d->kinds[kind], -(int64_t)pd->reserved_bytes[kind]);
        }
        map_close(&pd->heaps);
        free(pd);
    }
}

/* The end of a snapshot's process goes to timelines of its own, which nobody reads. */
static void swap_timelines(struct account *a, struct timeline **others)
{
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++) {
        struct device_account *d = a->devices[i];
        if (!d)
            continue;
        struct timeline *kept = d->timeline;
        d->timeline = others[i] ? others[i] : timeline_open();
        others[i] = kept;
    }
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void end_process(struct account *a, const struct event *e)
{
    struct process_account *p = a->processes[e->process_id];
    struct ending x = {.a = a, .process = p, .event = e, .held = xcalloc(a->sites.count + 1ul, sizeof *x.held)};
    if (p->live->count && p->live->count == a->counts.live_blocks && !p->is_last_holder)
        keyframe_process_ends(a);
    account_seal(a);
    account_heap_end(a, p);
    if (p->is_torn_down) {
        account_parts_pass(p);
        live_each(p->live, count_teardown, &(struct teardown){a, p, p->teardown_ns, (uint64_t)-1});
        a->teardown_moved = 1;
    }
    account_parts_pass(p);
    live_each(p->live, end_block, &x);
    if (x.site_count) /* whatever the order of the blocks */
        qsort(x.sites, x.site_count, sizeof *x.sites, by_number);
    for (uint32_t i = 0; i < x.site_count; i++)
        end_site(a, e, x.sites[i], &x.held[x.sites[i]]);
    free(x.sites);
    free(x.held);
    account_touch_process_end(a, e->process_id);
    account_names_process_end(a, e->process_id);
    end_devices(a, p);
    if (p->rss_bytes) {
        struct device_account *host = account_device(a, 0);
        timeline_step(host->timeline, a->now_ns, host->alloc_count, host->alloc_bytes);
        host->rss_bytes -= p->rss_bytes;
        timeline_rss(host->timeline, host->rss_bytes);
    }
    live_close(p->live);
    account_parts_close(p);
    free(p);
    a->processes[e->process_id] = NULL;
}

void account_process_end(struct account *a, const struct event *e)
{
    struct timeline *others[ACCOUNT_DEVICES] = {NULL};
    if (!a->processes[e->process_id])
        return;
    if (a->options.is_snapshot)
        swap_timelines(a, others);
    end_process(a, e);
    if (a->options.is_snapshot)
        swap_timelines(a, others);
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++)
        timeline_close(others[i]);
}
