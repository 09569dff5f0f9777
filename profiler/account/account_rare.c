/* Events that are few: all that is no birth and no death of a block, and the reserved bytes that segments make. */
#include "account_private.h"
#include "segment.h"

#include "../../common/error.h"
#include "../../common/range.h"

void account_reserved_change(struct account *a, struct device_account *d, struct kind_account *k, int64_t bytes)
{
    struct reserved *const reserved[] = {&d->reserved, &k->reserved};
    for (unsigned i = 0; i < 2; i++) {
        struct reserved *r = reserved[i];
        r->bytes += (uint64_t)bytes;
        if (r->bytes > r->peak_bytes) {
            r->peak_bytes = r->bytes;
            r->peak_ns = a->now_ns;
        }
    }
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    timeline_reserved(d->timeline, a->now_ns, d->reserved.bytes);
    if (bytes > 0 && a->watch.is_on)
        account_watch(a, d);
}

void account_reserved_sampled(struct account *a, struct device_account *d, struct kind_account *k, int64_t change)
{
    k->sampled_bytes += (uint64_t)change;
    uint64_t least = k->sampled_bytes && k == d->kinds[KIND_heap] && !a->sampled.mean_bytes ? k->level.active_bytes : 0;
    uint64_t now = k->sampled_bytes > least ? k->sampled_bytes : least;
    account_reserved_change(a, d, k, (int64_t)(now - k->reserved_sampled_bytes));
    k->reserved_sampled_bytes = now;
}

void account_segment(struct account *a, const struct event *e, int is_counted)
{
    struct device_account *d = account_device(a, e->device);
    struct process_device *pd = account_process_device(a, e->process_id, e->device);
    struct segment_change c = {.store = a->store,
                               .rows = &a->segment_rows,
                               .time_ns = a->now_ns,
                               .process_id = e->process_id,
                               .device = e->device,
                               .kind = e->kind,
                               .is_counted = is_counted != 0};
    uint64_t size = e->size_bytes < LIVE_SIZE_MAX ? e->size_bytes : LIVE_SIZE_MAX;
    uint32_t site_id = 0;
    struct range found;
    if (!pd->segments)
        pd->segments = segments_open();
    if (e->op == EVENT_SEGMENT_FREE && e->kind == KIND_sub &&
        !(segments_find(pd->segments, e->address, &found) && found.type == KIND_sub))
        return; /* a sub-allocator gives back what remains the segment of the allocator below */
    account_kind(d, e->kind);
    if (e->op == EVENT_SEGMENT_ALLOC) {
        segments_alloc(pd->segments, &c, e->address, size, e->stack_id);
        if (e->stack_id)
            site_id = site_find(&a->sites, e->stack_id, e->process_id, e->device, e->kind);
    } else {
        segments_free(pd->segments, &c, e->address, size);
    }
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        if (c.bytes[kind])
            account_reserved_change(a, d, d->kinds[kind], c.bytes[kind]);
    if (site_id) {
        struct site *s = site_at(&a->sites, site_id);
        if (d->reserved.bytes > s->tally.reserved_peak_bytes)
            s->tally.reserved_peak_bytes = d->reserved.bytes;
        site_mark_dirty(&a->sites, s, site_id);
    }
    account_keep(a, e, e->op == EVENT_SEGMENT_ALLOC ? CHUNK_segment_alloc : CHUNK_segment_free, e->address, size,
                 site_id, e->device, e->kind, 0);
}

static void apply_rss(struct account *a, const struct event *e)
{
    struct device_account *d = account_device(a, 0);
    struct process_account *p = account_process(a, e->process_id);
    d->rss_bytes += e->size_bytes - p->rss_bytes;
    p->rss_bytes = e->size_bytes;
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    timeline_rss(d->timeline, d->rss_bytes);
}

void account_rare(struct account *a, const struct event *e)
{
    switch (e->op) {
    case EVENT_SEGMENT_ALLOC:
    case EVENT_SEGMENT_FREE:
        account_segment(a, e, !e->is_sampled);
        break;
    case EVENT_OOM:
        account_oom(a, e);
        break;
    case EVENT_RESERVED:
        account_reserved_sample(a, e);
        break;
    case EVENT_HEAP_ASKS:
        account_heap_asks(a, e);
        break;
    case EVENT_HEAP_AT:
        account_heap_at(a, e);
        break;
    case EVENT_RSS:
        apply_rss(a, e);
        break;
    case EVENT_FREE_REQUESTED:
        account_free_requested(a, e);
        break;
    case EVENT_TO_SEGMENT:
        account_to_segment(a, e);
        break;
    case EVENT_DEVICE_USED:
        account_device_used(a, e);
        break;
    case EVENT_TEARDOWN:
        account_teardown(a, e);
        break;
    case EVENT_PROCESS_END:
        account_process_end(a, e);
        break;
    case EVENT_SPLIT:
        account_split(a, e);
        break;
    case EVENT_PART_FREE:
        account_part_free(a, e);
        break;
    case EVENT_TOUCH:
    case EVENT_UPLOAD:
    case EVENT_TOUCH_END:
        account_touch(a, e);
        break;
    default:
        bug("event %u", e->op);
    }
}
