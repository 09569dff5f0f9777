/*
 * Reserved bytes of glibc's heaps. To ask glibc visits each free chunk, so it is asked seldom, and a block that got a
 * mapping of its own since then is not in its last answer: those are followed here, by their addresses. glibc maps a
 * large block at the start of a page, and gives out what lies behind the 16 bytes of its header. In an arena one of 256
 * lies like that, so that where the arenas are has to be known; one that is taken for a mapping all the same counts
 * until glibc is asked again.
 */
#include "account_private.h"

#define HEAP_PAGE    4096u
#define CHUNK_HEADER 16u
#define NEXT_SIZE    8u                   /* behind a chunk */
#define ARENA_BYTES  (UINT64_C(64) << 20) /* at most, of a heap of an arena but the main one; and how it is aligned */
#define BLOCK_OVER   32u                  /* at most, of a small one: its header, and what its size is rounded up to */
#define ALIGNED_OVER 16u                  /* a part: what is left beside aligned ones */
#define MAIN_BYTES   (UINT64_C(1) << 40)  /* the main arena is never as large, and no mapping is as near */

/* A heap is asked for the first time after its first blocks: at least what was active was reserved then. Of sites that
 * the process was the first to use; others had a heap that was asked before. */
static void raise_reserved(struct account *a, unsigned process_id, unsigned device)
{
    for (uint32_t id = account_process(a, process_id)->first_site; id <= a->sites.count; id++) {
        struct site *s = site_at(&a->sites, id);
        struct tally *t = &s->tally;
        if (s->process_id != process_id || s->device != device || t->reserved_peak_bytes >= t->active_peak_bytes)
            continue;
        t->reserved_peak_bytes = t->active_peak_bytes;
        site_mark_dirty(&a->sites, s, id);
    }
}

struct heap_sum {
    uint64_t before_ns; /* of the blocks that are older */
    uint64_t bytes;
};

static void add_heap_block(void *context, const struct live_block *b)
{
    struct heap_sum *sum = context;
    if (b->key >> LIVE_ADDRESS_BITS == account_space(KIND_heap) && b->time_ns < sum->before_ns)
        sum->bytes += b->size;
}

static uint64_t live_heap(const struct process_account *p, uint64_t before_ns)
{
    struct heap_sum sum = {.before_ns = before_ns};
    live_each(p->live, add_heap_block, &sum);
    return sum.bytes;
}

/* Of a fork's child: what its first sample has beside its own blocks is its parent's, or as much as it did not give
 * back since. At least a page, which its first block made its own. */
static uint64_t own_heap(struct account *a, struct process_device *pd, const struct event *e, uint64_t size)
{
    if (!pd->has_inherited) {
        uint64_t own = live_heap(account_process(a, e->process_id), UINT64_MAX);
        pd->inherited_bytes = size > own ? size - own : 0;
        pd->has_inherited = 1;
    }
    uint64_t least = size < HEAP_PAGE ? size : HEAP_PAGE;
    if (size < pd->inherited_bytes)
        pd->inherited_bytes = size;
    return size - pd->inherited_bytes > least ? size - pd->inherited_bytes : least;
}

void account_heap_at(struct account *a, const struct event *e)
{
    struct process_device *pd = account_process_device(a, e->process_id, 0);
    if (!e->size_bytes)
        pd->heap_start = e->address;
    else
        *map_slot(&pd->heaps, e->address / ARENA_BYTES, 0) = 1;
}

static int has_mapping(const struct process_device *pd, uint64_t address)
{
    return pd->heap_start && address % HEAP_PAGE == CHUNK_HEADER && address - pd->heap_start >= MAIN_BYTES &&
           !(pd->heaps.count && map_get(&pd->heaps, address / ARENA_BYTES, 0));
}

void account_large_block(struct account *a, struct device_account *d, struct kind_account *k, unsigned process_id,
                         uint64_t address, uint64_t size_bytes, int sign)
{
    struct process_device *pd = account_process_device(a, process_id, 0);
    int64_t change = 0;
    if (has_mapping(pd, address)) {
        uint64_t bytes = (size_bytes + CHUNK_HEADER + NEXT_SIZE + HEAP_PAGE - 1) & ~(uint64_t)(HEAP_PAGE - 1);
        if (sign > 0 && bytes <= pd->mapped_before) {
            pd->mapped_before -= bytes;
        } else {
            uint64_t held = pd->reserved_bytes[KIND_heap];
            pd->mapped_change += sign * (int64_t)bytes;
            change = !held ? 0 : sign > 0 ? (int64_t)bytes : -(int64_t)(bytes < held ? bytes : held);
            pd->reserved_bytes[KIND_heap] += (uint64_t)change;
        }
    }
    /* what an arena got back it keeps, as far as is known */
    int is_proof = sign > 0 && k->sampled_bytes && k->level.active_bytes > k->reserved_sampled_bytes;
    if (change || is_proof)
        account_reserved_sampled(a, d, k, change);
}

/* With what events say of mapped blocks since glibc was asked. An answer that came late is older than some of them. */
static uint64_t heap_now(struct process_device *pd, const struct event *e, uint64_t size)
{
    int64_t mapped = (int64_t)e->address, expected = (int64_t)pd->mapped_bytes + pd->mapped_change;
    if (e->stack_id) {
        pd->mapped_before = mapped > expected ? (uint64_t)(mapped - expected) : 0;
        pd->mapped_bytes = e->address;
        pd->mapped_change = 0;
        pd->is_asked = 1;
        return size;
    }
    int64_t least = pd->is_asked ? 0 : mapped;
    return size - e->address + (uint64_t)(expected > least ? expected : least);
}

static uint64_t active_bytes(const struct device_account *d)
{
    const struct kind_account *maps = d->kinds[KIND_map];
    return d->level.active_bytes - (maps ? maps->level.active_bytes : 0);
}

/* What glibc says is in use in its arenas, and no block is: of libraries whose calls go past us, of before, or left
 * out. Two answers in a row must say so, as other threads go on while one is asked for. All processes' blocks may be in
 * them, and those that have a mapping: it is no more than there is. */
static void see_unseen(struct account *a, const struct event *e, struct process_device *pd)
{
    const struct device_account *d = account_device(a, 0);
    uint64_t active = active_bytes(d), before = pd->unseen_bytes;
    uint64_t used = (uint64_t)(e->stack_id - HEAP_ASKED) * HEAP_USED_UNIT;
    uint64_t known = active + active / ALIGNED_OVER + d->level.active_count * BLOCK_OVER;
    pd->unseen_bytes = used > known ? used - known : 0;
    uint64_t least = before < pd->unseen_bytes ? before : pd->unseen_bytes;
    if (least > a->counts.unseen_bytes)
        a->counts.unseen_bytes = least;
}

static uint64_t heap_bytes(const struct device_account *d)
{
    const struct kind_account *heap = d->kinds[KIND_heap];
    return heap ? heap->level.active_bytes : 0;
}

void account_heap_asks(struct account *a, const struct event *e)
{
    const struct device_account *d = account_device(a, 0);
    struct process_device *pd = account_process_device(a, e->process_id, 0);
    pd->asks_active = heap_bytes(d);
    pd->asks_alloc = d->alloc_bytes;
    pd->asks_thread = e->thread_id;
    pd->asks_ns = a->now_ns;
}

static uint64_t beyond(uint64_t bytes, uint64_t others)
{
    return bytes > others ? bytes - others : 0;
}

static void know_unfreed(struct account *a, struct process_device *pd, uint64_t bytes)
{
    a->counts.unfreed_bytes += bytes - pd->unfreed_bytes;
    pd->unfreed_bytes = bytes;
}

/* The other way round: what is live and glibc has not in use, in its arenas or mapped, was freed past us. Other threads
 * go on while it looks at one arena after the other. What was live all the time it had in use, so the rest of that is
 * proven; and it can be no more than if all that was live at any time had been there. In between what was known stays.
 * Of a process that has all that is live; what another one has is known as it ends. */
static void see_unfreed(struct account *a, const struct event *e, struct process_device *pd)
{
    const struct device_account *d = account_device(a, 0);
    if (!pd->asks_thread || pd->asks_thread != e->thread_id || a->sampled.mean_bytes) /* that is an estimate */
        return;
    uint64_t used = (uint64_t)(e->stack_id - HEAP_ASKED + 1) * HEAP_USED_UNIT + e->address;
    pd->asks_thread = 0;
    pd->used_bytes = used;
    pd->used_ns = pd->asks_ns;
    if (account_process(a, e->process_id)->live->count != a->counts.live_blocks)
        return;
    uint64_t allocated = d->alloc_bytes - pd->asks_alloc;
    uint64_t least = beyond(heap_bytes(d), used + allocated), most = beyond(pd->asks_active + allocated, used);
    uint64_t known = pd->unfreed_bytes < most ? pd->unfreed_bytes : most;
    pd->used_ns = 0;
    know_unfreed(a, pd, known > least ? known : least);
}

void account_heap_end(struct account *a, const struct process_account *p)
{
    struct process_device *pd = p->devices;
    while (pd && pd->device != 0)
        pd = pd->next;
    if (!pd || !pd->used_ns)
        return;
    uint64_t least = beyond(live_heap(p, pd->used_ns), pd->used_bytes);
    if (least > pd->unfreed_bytes)
        know_unfreed(a, pd, least);
}

void account_reserved_sample(struct account *a, const struct event *e)
{
    struct device_account *d = account_device(a, e->device);
    struct kind_account *k = account_kind(d, e->kind);
    struct process_device *pd = account_process_device(a, e->process_id, e->device);
    int is_heap = e->device == 0 && e->kind == KIND_heap;
    uint64_t size = e->size_bytes < LIVE_SIZE_MAX ? e->size_bytes : LIVE_SIZE_MAX;
    if (is_heap && e->stack_id && !(e->inherited & EVENT_OF_CHILD) && !account_process(a, e->process_id)->has_moved) {
        see_unseen(a, e, pd);
        see_unfreed(a, e, pd);
    }
    if (is_heap && e->address <= size)
        size = heap_now(pd, e, size);
    if (is_heap && e->inherited & EVENT_OF_CHILD)
        size = own_heap(a, pd, e, size);
    int64_t change = (int64_t)(size - pd->reserved_bytes[e->kind]);
    if (!pd->reserved_bytes[e->kind] && size && is_heap)
        raise_reserved(a, e->process_id, e->device);
    pd->reserved_bytes[e->kind] = size;
    account_reserved_sampled(a, d, k, change);
}
