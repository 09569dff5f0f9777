#include "account.h"

#include "../../common/db.h"
#include "account_private.h"

#include <stddef.h>
#include <string.h>

/* How far ahead of its turn an event's memory is asked for: the index entry of its block, the block, its site. */
#define AHEAD_INDEX 28u
#define AHEAD_BLOCK 18u
#define AHEAD_SITE  8u
#define AHEAD_RING  32u /* a power of two above AHEAD_INDEX */

/* Up to so many, blocks and sites are in the second level of the cache anyway. */
#define NEAR_BLOCKS 4096u
#define NEAR_SITES  512u

/* Kinds whose blocks may share an address have spaces of their own (live.h). */
static const uint8_t space_of_kind[KIND_COUNT] = {
    [KIND_heap] = 0,   [KIND_map] = 1,     [KIND_sub] = 2,    [KIND_array] = 3, [KIND_vmm] = 4,
    [KIND_pinned] = 5, [KIND_managed] = 6, [KIND_device] = 6, [KIND_pool] = 6,
};

unsigned account_space(unsigned kind)
{
    return space_of_kind[kind < KIND_COUNT ? kind : 0];
}

/* Process, op, hook, device and kind of an event lie alike in struct event and in struct chunk_event: the low 48 bits
 * of one number. The ops of what makes and ends blocks are the same, too. */
#define WORD_ASSERT(field)                                                                                             \
    _Static_assert(offsetof(struct event, field) - offsetof(struct event, process_id) ==                               \
                       offsetof(struct chunk_event, field) - offsetof(struct chunk_event, process_id),                 \
                   #field)
WORD_ASSERT(op);
WORD_ASSERT(hook);
WORD_ASSERT(device);
WORD_ASSERT(kind);
_Static_assert(offsetof(struct event, kind) == offsetof(struct event, process_id) + 5 &&
                   sizeof(struct event) == offsetof(struct event, process_id) + 8 &&
                   offsetof(struct chunk_event, match) == offsetof(struct chunk_event, process_id) + 6,
               "the word of an event");
_Static_assert(EVENT_ALLOC == (int)CHUNK_alloc && EVENT_FREE == (int)CHUNK_free &&
                   EVENT_REALLOC_FREE == (int)CHUNK_realloc_free && EVENT_REALLOC_ALLOC == (int)CHUNK_realloc_alloc,
               "ops");
static inline uint64_t event_word(const struct event *e)
{
    uint64_t word;
    memcpy(&word, (const char *)e + offsetof(struct event, process_id), sizeof word);
    return word & 0xffffffffffff;
}

/* A device and the kind that lies behind it, as in account_lane_key */
static inline uint16_t read_pair(const uint8_t *device)
{
    uint16_t pair;
    memcpy(&pair, device, sizeof pair);
    return pair;
}
#define HOST_MAP  (KIND_map << 8)
#define HOST_HEAP (KIND_heap << 8)

/* An event on its way through: where its block is found. */
struct place {
    uint64_t key;
    uint64_t hash;  /* 0: not needed, most likely, as its place is among the recent ones */
    uint32_t guess; /* number of the stored block that dies, most likely; 0: no idea */
};

static void seal(struct device_account *d, struct kind_account *k, unsigned device_ends, unsigned kind_ends)
{
    if (device_ends)
        level_seal(&d->level);
    if (kind_ends)
        level_seal(&k->level);
    d->generation++;
}

__attribute__((noinline)) void account_touch_site(struct account *a, struct site *s, uint32_t id)
{
    struct device_account *d = a->devices[s->device];
    tally_save(&s->tally, d, d->kinds[s->kind]);
    if (s->chunk_id != a->chunk_id)
        account_chunk_touch(a, s, id);
    if (!s->dirty)
        site_mark_dirty(&a->sites, s, id);
}

static __attribute__((noinline)) struct account_lane *lane_set(struct account *a, struct account_lane *lane,
                                                               uint32_t thread_id, unsigned device, unsigned kind)
{
    lane->key = account_lane_key(thread_id, (uint16_t)(device | kind << 8));
    lane->device = account_device(a, device);
    lane->kind = account_kind(lane->device, kind);
    lane->thread_device = account_thread_device(a, thread_id, device);
    lane->thread = a->threads[thread_id];
    lane->tally = account_thread_tally(lane->thread_device, kind);
    return lane;
}

static inline __attribute__((always_inline)) struct account_lane *find_lane(struct account *a, uint32_t thread_id,
                                                                            uint16_t pair)
{
    struct account_lane *lane = &a->lanes[thread_id % ACCOUNT_LANES];
    if (__builtin_expect(lane->key != account_lane_key(thread_id, pair), 0))
        return lane_set(a, lane, thread_id, pair & 0xff, pair >> 8);
    return lane;
}

/* word: as EVENT_WORD, with the match above */
static inline __attribute__((always_inline)) void keep(struct account *a, uint64_t word, uint64_t address,
                                                       uint64_t size_bytes, uint32_t site_id, uint32_t thread_id)
{
    uint32_t at = a->chunk_fill++;
    a->event_count++;
    if (a->chunk) {
        struct chunk_event *c = &a->chunk[at];
        uint32_t tuple = (uint32_t)(word >> 16);
        c->time_ns = a->now_ns;
        c->address = address;
        c->size_bytes = size_bytes;
        c->site_id = site_id;
        c->thread_id = thread_id;
        memcpy((char *)c + offsetof(struct chunk_event, process_id), &word, sizeof word);
        if (__builtin_expect(tuple != a->last_tuples[tuple & 3], 0))
            account_chunk_tuple(a, tuple);
    }
    if (__builtin_expect(a->chunk_fill == CHUNK_EVENTS, 0))
        account_chunk_full(a);
}

void account_keep(struct account *a, const struct event *e, unsigned op, uint64_t address, uint64_t size_bytes,
                  uint32_t site_id, unsigned device, unsigned kind, unsigned match)
{
    uint64_t word = e->process_id | (uint64_t)op << 16 | (uint64_t)e->hook << 24 | (uint64_t)device << 32 |
                    (uint64_t)kind << 40 | (uint64_t)match << 48;
    keep(a, word, address, size_bytes, site_id, e->thread_id);
}

static __attribute__((noinline)) void leave_rare(struct account *a, const struct event *e, struct device_account *d,
                                                 const struct live_block *b)
{
    if (b->requested)
        account_unpend(d, b);
    if (b->named)
        account_name_end(a, e->process_id, b->key, 0);
}

/* The accounts of a block that dies; the live table is the caller's. */
static inline __attribute__((always_inline)) void leave(struct account *a, const struct event *e, uint64_t word,
                                                        const struct live_block *b, const int is_sampled)
{
    const struct sample *sample = is_sampled ? sample_at(&a->sampled, b->site) : NULL;
    const uint64_t count = sample ? sample_count(sample, b->key, b->time_ns) : 1;
    const uint64_t each = sample ? sample->size_bytes : b->size;
    struct site *s = site_at(&a->sites, b->site);
    uint64_t size = b->size, lifetime_ns = a->now_ns - b->time_ns;
    const uint16_t pair = read_pair(&s->device);
    const struct account_lane *lane = find_lane(a, b->thread_id, pair);
    struct device_account *d = lane->device;
    struct kind_account *k = lane->kind;
    struct tally *thread_tally = lane->tally;

    if (d->level.at_peak | k->level.at_peak)
        seal(d, k, 1, 1);
    if (s->tally.generation != d->generation)
        account_touch_site(a, s, b->site);
    if (thread_tally->generation != d->generation)
        account_thread_touch(a, b->thread_id, lane->thread_device, pair >> 8);
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    if (__builtin_expect(b->requested | b->named, 0))
        leave_rare(a, e, d, b);
    if (__builtin_expect(b->time_ns < a->started.ns, 0))
        account_inherited_left(a, a->processes[e->process_id], b, count);
    level_drop(&d->level, size, count);
    level_drop(&k->level, size, count);
    unsigned is_resized = (word >> 16 & 0xff) == CHUNK_realloc_free;
    if (!is_resized) /* else a step from the old size to the new one, as that comes */
        timeline_fall(d->timeline, d->level.active_bytes);
    tally_free(&s->tally, size, count, lifetime_ns * count);
    tally_free(thread_tally, size, count, lifetime_ns * count);
    lane->thread_device->live_bytes -= size;
    unsigned temporary = is_sampled     ? 0
                         : b->requested ? b->temporary
                                        : !is_resized & (lane->thread->last_key == b->key);
    if (temporary) {
        tally_temporary(&s->tally, size, count);
        tally_temporary(thread_tally, size, count);
        k->temporary_bytes += size;
    }
    histogram_free(&k->histogram, size, count, each, lifetime_ns, temporary);
    if (__builtin_expect(pair == HOST_MAP, 0))
        account_reserved_change(a, d, k, -(int64_t)size);
    else if (!is_sampled && __builtin_expect(size >= ACCOUNT_MAPPED_LEAST, 0) && pair == HOST_HEAP)
        account_large_block(a, d, k, e->process_id, b->key & LIVE_ADDRESS_MASK, size, -1);
    if (largest_wants(&a->largest, each)) {
        struct largest_block l = {.size_bytes = each,
                                  .lifetime_ns = lifetime_ns,
                                  .address = b->key & LIVE_ADDRESS_MASK,
                                  .alloc_ns = b->time_ns,
                                  .thread_id = b->thread_id,
                                  .site = b->site,
                                  .process_id = e->process_id};
        largest_touched(&l, touches_find(&a->touches, e->process_id, b->key, b->time_ns));
        largest_add(&a->largest, &l);
    }
    if (__builtin_expect(b->thread_id != e->thread_id, 0))
        account_chunk_owner(a, b->thread_id);
    if (__builtin_expect(e->stack_id != 0, 0))
        account_freed(a, e, b, 1);
    word = (word & 0xffffffff) | (uint64_t)pair << 32 | (uint64_t)b->match << 48;
    keep(a, word, b->key & LIVE_ADDRESS_MASK, size, b->site, e->thread_id);
}

/* A block is there already: nobody saw its free. It ends now, as if freed by this thread without a hook. */
static __attribute__((noinline)) void replace(struct account *a, const struct event *e, const struct live_block *b)
{
    struct process_account *p = a->processes[e->process_id];
    struct event part = *e;
    part.hook = 0;
    part.stack_id = 0;
    a->counts.replaced_blocks++;
    a->counts.replaced_bytes += b->size;
    if (b->size > a->counts.replaced_most || !a->counts.replaced_site) {
        a->counts.replaced_most = b->size;
        a->counts.replaced_site = b->site;
    }
    if (account_part_of(p, b))
        account_part_leave(a, &part, p, b);
    else
        leave(a, &part, e->process_id | (uint64_t)CHUNK_free << 16, b, a->sampled.mean_bytes != 0);
    a->counts.live_blocks--;
}

static inline __attribute__((always_inline)) void apply_alloc(struct account *a, const struct event *e,
                                                              const struct place *place, const int is_sampled)
{
    struct process_account *p = a->processes[e->process_id];
    if (__builtin_expect(!p, 0))
        p = account_process(a, e->process_id);
    uint64_t size = e->size_bytes < LIVE_SIZE_MAX ? e->size_bytes : LIVE_SIZE_MAX;
    struct live_block *b = live_place(p->live, place->key, place->hash);
    if (__builtin_expect(b->site != 0, 0))
        replace(a, e, b);
    if (__builtin_expect(size >= a->oom_least_bytes, 0))
        account_oom_had(a, e);

    const uint16_t pair = read_pair(&e->device);
    uint32_t site_id;
    uint64_t count = 1;
    const uint64_t each = size;
    if (is_sampled && pair == HOST_HEAP) {
        site_id = sampled_site(&a->sampled, &a->sites, e);
        const struct sample *sample = sample_at(&a->sampled, site_id);
        count = sample_count(sample, place->key, a->now_ns);
        size = sample->bytes < LIVE_SIZE_MAX ? sample->bytes : LIVE_SIZE_MAX;
    } else {
        site_id = site_find(&a->sites, e->stack_id, e->process_id, e->device, e->kind);
    }
    struct site *s = site_at(&a->sites, site_id);
    const struct account_lane *lane = find_lane(a, e->thread_id, pair);
    struct device_account *d = lane->device;
    struct kind_account *k = lane->kind;
    struct thread_device *t = lane->thread_device;
    struct tally *thread_tally = lane->tally;
    *b = (struct live_block){.key = place->key,
                             .size = size,
                             .match = a->chunk_fill & 0xffff,
                             .time_ns = a->now_ns,
                             .site = site_id,
                             .thread_id = e->thread_id};
    lane->thread->last_key = place->key;
    a->counts.live_blocks++;

    unsigned device_ends = level_ends_peak(&d->level, size), kind_ends = level_ends_peak(&k->level, size);
    if (__builtin_expect(device_ends | kind_ends, 0))
        seal(d, k, device_ends, kind_ends);
    if (s->tally.generation != d->generation)
        account_touch_site(a, s, site_id);
    if (thread_tally->generation != d->generation)
        account_thread_touch(a, e->thread_id, t, pair >> 8);
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    d->alloc_count += count;
    d->alloc_bytes += size;
    level_add(&d->level, size, count, a->now_ns, a->event_count + 1);
    level_add(&k->level, size, count, a->now_ns, a->event_count + 1);
    if (__builtin_expect(d->level.active_bytes > d->watch_bytes, 0))
        account_watch(a, d);
    timeline_rise(d->timeline, a->now_ns, d->level.active_bytes);
    if (e->op == EVENT_REALLOC_ALLOC)
        timeline_fall(d->timeline, d->level.active_bytes); /* it may be smaller */
    if (__builtin_expect(pair == HOST_MAP, 0))
        account_reserved_change(a, d, k, (int64_t)size);
    else if (!is_sampled && __builtin_expect(size >= ACCOUNT_MAPPED_LEAST, 0) && pair == HOST_HEAP)
        account_large_block(a, d, k, e->process_id, place->key & LIVE_ADDRESS_MASK, size, 1);
    else if (!is_sampled && __builtin_expect(k->level.active_bytes > k->reserved_sampled_bytes && k->sampled_bytes, 0))
        account_reserved_sampled(a, d, k, 0); /* grown since the last sample: at least what is active is held */
    tally_alloc(&s->tally, size, count, each, d);
    uint64_t live = tally_live_bytes(&s->tally);
    if (live > s->chunk_high_bytes)
        s->chunk_high_bytes = live;
    tally_alloc(thread_tally, size, count, each, d);
    t->live_bytes += size;
    if (t->live_bytes > t->own_peak_bytes)
        t->own_peak_bytes = t->live_bytes;
    histogram_alloc(&k->histogram, size, count, each);
    k->realloc_count += e->op == EVENT_REALLOC_ALLOC ? count : 0;
    keep(a, event_word(e), place->key & LIVE_ADDRESS_MASK, size, site_id, e->thread_id);
}

/* Which blocks a forked child has of its parent is asked by few reports: they look for it among the parent's. */
static __attribute__((noinline)) void free_inherited(struct account *a, const struct event *e)
{
    a->counts.inherited_frees++;
    if (e->kind != KIND_heap || e->device != 0)
        return;
    if (a->chunk)
        store_needs(a->store, DB_SCHEMA_INHERIT);
    account_keep(a, e, CHUNK_inherited_free, e->address & LIVE_ADDRESS_MASK, 0, 0, 0, KIND_heap, 0);
}

/* After a pause a forked child's may be either; as its parent's it is kept, too, and whoever looks for it among those
 * finds none where it was not. */
static __attribute__((noinline)) void free_unknown(struct account *a, const struct event *e)
{
    if (e->inherited & EVENT_OF_CHILD)
        free_inherited(a, e);
    else if (e->inherited & EVENT_FROM_BEFORE)
        a->counts.inherited_frees++;
    else if (e->inherited && e->kind == KIND_heap && e->device == 0)
        a->counts.unseen_frees++;
    else
        account_unmatched(a, e);
}

static inline __attribute__((always_inline)) void apply_free(struct account *a, const struct event *e,
                                                             const struct place *place, const int is_sampled)
{
    const struct process_account *p = a->processes[e->process_id];
    struct live_block *b = p ? live_find(p->live, place->key, place->hash) : NULL;
    if (__builtin_expect(!b, 0)) {
        if (p && p->has_moved && account_free_moved(a, e))
            return;
        free_unknown(a, e);
        return;
    }
    leave(a, e, event_word(e), b, is_sampled);
    live_remove(p->live, b);
    a->counts.live_blocks--;
}

static inline int is_birth(const struct event *e)
{
    return e->op == EVENT_ALLOC || e->op == EVENT_REALLOC_ALLOC;
}

/* The same of ops that make or end blocks; of others anything, which costs a look too many. */
static inline int looks_born(const struct event *e)
{
    return !((e->op + 1) & 2);
}

/* always_inline: as live_prefetch */
static inline __attribute__((always_inline)) void look_for_index(struct account *a, const struct event *e,
                                                                 struct place *place)
{
    const uint64_t key = live_key(e->address, space_of_kind[e->kind < KIND_COUNT ? e->kind : 0]);
    const struct process_account *p = a->processes[e->process_id];
    place->key = key;
    place->hash = 0;
    place->guess = 0;
    if (p && !(p->live->has_recent && live_recent(p->live, key)->key == key)) {
        place->hash = live_hash(key);
        live_prefetch(p->live, place->hash);
    }
    if (looks_born(e) && e->stack_id < a->sites.stack_capacity)
        __builtin_prefetch(&a->sites.by_stack[e->stack_id]);
}

static inline __attribute__((always_inline)) void look_for_block(struct account *a, const struct event *e,
                                                                 struct place *place)
{
    const struct process_account *p = place->hash ? a->processes[e->process_id] : NULL;
    if (!p)
        return;
    if (looks_born(e)) {
        if (!p->live->has_recent) {
            live_prefetch_on(p->live, place->hash);
            return;
        }
        const struct live_block *b = live_recent(p->live, place->key);
        if (b->site)
            live_prefetch(p->live, live_hash(b->key)); /* which makes room for it */
        return;
    }
    place->guess = live_guess(p->live, place->hash);
    if (place->guess)
        __builtin_prefetch(live_at(p->live, place->guess), 1);
}

static inline __attribute__((always_inline)) void look_for_site(struct account *a, const struct event *e,
                                                                const struct place *place)
{
    uint32_t id = 0;
    if (looks_born(e)) {
        if (e->stack_id < a->sites.stack_capacity)
            id = a->sites.by_stack[e->stack_id];
    } else {
        const struct process_account *p = a->processes[e->process_id];
        if (p && !place->hash)
            id = live_recent(p->live, place->key)->site;
        else if (place->guess && p &&
                 place->guess <= p->live->used) /* the process may have ended since, or begun anew */
            id = live_at(p->live, place->guess)->site;
    }
    if (id && id <= a->sites.count) {
        const char *s = (const char *)site_at(&a->sites, id);
        __builtin_prefetch(s, 1);
        __builtin_prefetch(s + 64, 1);
    }
}

static inline __attribute__((always_inline)) void apply_all(struct account *a, const struct event *events, size_t count,
                                                            const int is_sampled)
{
    struct place places[AHEAD_RING];
    const int is_far = a->counts.live_blocks > NEAR_BLOCKS || a->sites.count > NEAR_SITES;
#define PLACE(index) &places[(index) % AHEAD_RING]
    for (size_t i = 0; i < count && i < AHEAD_INDEX; i++)
        look_for_index(a, &events[i], PLACE(i));
    for (size_t i = 0; is_far && i < count && i < AHEAD_BLOCK; i++)
        look_for_block(a, &events[i], PLACE(i));
    for (size_t i = 0; i < count; i++) {
        const struct event *e = &events[i];
        const struct place *place = PLACE(i);
        if (i + AHEAD_INDEX < count)
            look_for_index(a, e + AHEAD_INDEX, PLACE(i + AHEAD_INDEX));
        if (is_far) {
            if (i + AHEAD_BLOCK < count)
                look_for_block(a, e + AHEAD_BLOCK, PLACE(i + AHEAD_BLOCK));
            if (i + AHEAD_SITE < count)
                look_for_site(a, e + AHEAD_SITE, PLACE(i + AHEAD_SITE));
        }
        a->now_ns = e->time_ns > a->now_ns ? e->time_ns : a->now_ns;
        if (is_birth(e)) {
            if (place->key & LIVE_ADDRESS_MASK)
                apply_alloc(a, e, place, is_sampled);
        } else if (e->op == EVENT_FREE || e->op == EVENT_REALLOC_FREE) {
            apply_free(a, e, place, is_sampled);
        } else {
            account_rare(a, e);
        }
    }
#undef PLACE
}

static __attribute__((noinline)) void apply_sampled(struct account *a, const struct event *events, size_t count)
{
    apply_all(a, events, count, 1);
}

void account_events(struct account *a, const struct event *events, size_t count)
{
    if (__builtin_expect(a->sampled.mean_bytes != 0, 0))
        apply_sampled(a, events, count);
    else
        apply_all(a, events, count, 0);
    if (work_is_done(&a->job.work))
        account_chunk_stored(a);
}

void account_flush(struct account *a, uint64_t now_ns)
{
    a->now_ns = now_ns > a->now_ns ? now_ns : a->now_ns;
    account_write(a, 0);
}

void account_finish(struct account *a, uint64_t now_ns)
{
    a->now_ns = now_ns > a->now_ns ? now_ns : a->now_ns;
    account_write(a, 1);
}

void account_counts(const struct account *a, struct account_counts *counts)
{
    *counts = a->counts;
    counts->events = a->event_count;
    counts->missing_segments = a->segment_rows.missing;
    counts->names_left_out = a->names.left_out;
}
