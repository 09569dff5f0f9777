/* The end of a process: what it still holds leaves the accounts. */
#include "account_private.h"
#include "segment.h"

#include "../../common/array.h"

#include <stdlib.h>

struct ending {
    struct account *a;
    const struct event *event;
    uint32_t *sites; /* that hold something */
    uint32_t site_count, site_capacity;
};

static void end_block(void *context, const struct live_block *b)
{
    struct ending *x = context;
    struct account *a = x->a;
    struct site *s = site_at(&a->sites, b->site);
    struct device_account *d = a->devices[s->device];
    struct kind_account *k = d->kinds[s->kind];
    if (!s->ending_count) {
        *ARRAY_ADD(x->sites, x->site_count, x->site_capacity) = b->site;
    }
    s->ending_count++;
    s->ending_bytes += b->size;
    if (b->requested) {
        timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
        account_unpend(d, b);
    }
    struct thread_device *t = account_thread_device(a, b->thread_id, s->device);
    struct tally *tally = account_thread_tally(t, s->kind);
    if (tally->generation != d->generation) {
        tally_save(tally, d, k);
        account_thread_dirty(a, b->thread_id);
    }
    tally_end(tally, b->size);
    t->live_bytes -= b->size;
    if (largest_wants(&a->largest, b->size)) {
        struct largest_block l = {.size_bytes = b->size,
                                  .lifetime_ns = a->now_ns - b->time_ns,
                                  .address = b->key & LIVE_ADDRESS_MASK,
                                  .alloc_ns = b->time_ns,
                                  .thread_id = b->thread_id,
                                  .site = b->site,
                                  .process_id = x->event->process_id,
                                  .ended = 1};
        largest_add(&a->largest, &l);
    }
}

/* One event a site: the count stands where an address does. */
static void end_site(struct account *a, const struct event *e, uint32_t id)
{
    struct site *s = site_at(&a->sites, id);
    struct device_account *d = a->devices[s->device];
    struct kind_account *k = d->kinds[s->kind];
    uint64_t bytes = s->ending_bytes, count = s->ending_count;
    s->ending_bytes = s->ending_count = 0;
    if (s->tally.generation != d->generation)
        account_touch_site(a, s, id);
    s->tally.left_count += count;
    s->tally.left_bytes += bytes;
    s->tally.end_count += count;
    s->tally.end_bytes += bytes;
    k->end_count += count;
    k->end_bytes += bytes;
    level_drop(&d->level, bytes, count);
    level_drop(&k->level, bytes, count);
    a->counts.live_blocks -= count;
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

static void end_process(struct account *a, const struct event *e)
{
    struct process_account *p = a->processes[e->process_id];
    struct ending x = {.a = a, .event = e};
    if (p->live->count && p->live->count == a->counts.live_blocks)
        keyframe_process_ends(a);
    account_seal(a);
    live_each(p->live, end_block, &x);
    for (uint32_t i = 0; i < x.site_count; i++)
        end_site(a, e, x.sites[i]);
    free(x.sites);
    end_devices(a, p);
    if (p->rss_bytes) {
        struct device_account *host = account_device(a, 0);
        timeline_step(host->timeline, a->now_ns, host->alloc_count, host->alloc_bytes);
        host->rss_bytes -= p->rss_bytes;
        timeline_rss(host->timeline, host->rss_bytes);
    }
    live_close(p->live);
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
