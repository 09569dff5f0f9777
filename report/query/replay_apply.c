/* What events change: blocks, and the accounts of sites, threads, processes, kinds and devices. One file, so that what
 * is done for every event is compiled together. */
#include "../../common/array.h"
#include "../../common/kind.h"
#include "../../common/wrap.h"
#include "replay_private.h"

#include <stdlib.h>
#include <string.h>

/* What is counted here. A statistic that is not in it is not known of a replay. */
#define OF(statistic) (1u << STAT_##statistic)
static const uint32_t counted =
    OF(alloc_count) | OF(alloc_bytes) | OF(free_count) | OF(free_bytes) | OF(temporary_count) | OF(temporary_bytes) |
    OF(at_peak_bytes) | OF(at_peak_count) | OF(at_kind_peak_bytes) | OF(own_peak_bytes) | OF(end_bytes) |
    OF(end_count) | OF(active_peak_bytes) | OF(largest_bytes) | OF(lifetime_ns) | OF(start_bytes) | OF(start_count);
#undef OF

enum { INDEX_MOST = 1 << 24 };

static struct site *find_site(const struct replay_state *s, uint32_t site_id)
{
    const uint32_t i = site_id < s->site_room  ? s->site_index[site_id] - 1
                       : site_id >= INDEX_MOST ? map_number(&s->site_of, site_id, 0)
                                               : MAP_NONE;
    return i == MAP_NONE ? NULL : &s->sites[i];
}

static struct site *site_at(struct replay_state *s, const struct chunk_event *e)
{
    struct site *site = find_site(s, e->site_id);
    if (site)
        return site;
    if (e->site_id >= INDEX_MOST) {
        map_set_number(&s->site_of, e->site_id, 0, s->site_count);
    } else {
        ARRAY_ROOM_ZERO(s->site_index, e->site_id + 1ul, s->site_room);
        s->site_index[e->site_id] = s->site_count + 1;
    }
    site = ARRAY_ADD(s->sites, s->site_count, s->site_capacity);
    *site = (struct site){.id = e->site_id, .device = e->device, .kind = e->kind};
    return site;
}

static uint32_t level_at(struct replay_state *s, unsigned device, unsigned kind)
{
    uint32_t *of = &s->level_of[device][kind];
    if (!*of) {
        struct level *l = ARRAY_ADD(s->levels, s->level_count, s->level_capacity);
        l->total = (struct replay_total){.device = (uint8_t)device, .kind = (uint8_t)kind, .stats.known = counted};
        *of = s->level_count;
    }
    return *of - 1;
}

/* What a thread allocated of a kind of a device, or of all of it. */
static uint32_t thread_at(struct replay_state *s, uint32_t thread_id, unsigned device, unsigned kind)
{
    uint32_t i = map_number_or(&s->thread_of, thread_id, (uint64_t)device << 8 | kind, s->thread_count);
    if (i == s->thread_count)
        *ARRAY_ADD(s->threads, s->thread_count, s->thread_capacity) =
            (struct thread){.id = thread_id, .device = (uint8_t)device, .kind = (uint8_t)kind};
    return i;
}

static uint64_t *last_of(struct replay_state *s, uint32_t thread_id)
{
    uint32_t i = map_number_or(&s->last_at, thread_id, 0, s->last_count);
    return i < s->last_count ? &s->last[i] : ARRAY_ADD(s->last, s->last_count, s->last_capacity);
}

static void most(int64_t *value, uint64_t now)
{
    if ((int64_t)now > *value)
        *value = (int64_t)now;
}

/* Before it changes: what it held at the peaks since it changed last is what it holds now, and so is what it held at
 * the beginning of the ranges since. */
static void seal(const struct replay_state *s, struct held *held, const struct level *device, const struct level *kind)
{
    int64_t *v = held->value;
    if (held->epoch != device->epoch) {
        v[STAT_at_peak_bytes] = (int64_t)held->live_bytes;
        v[STAT_at_peak_count] = (int64_t)held->live_count;
        held->epoch = device->epoch;
    }
    if (held->kind_epoch != kind->epoch) {
        v[STAT_at_kind_peak_bytes] = (int64_t)held->live_bytes;
        held->kind_epoch = kind->epoch;
    }
    if (held->seen != s->entered)
        most(&v[STAT_own_peak_bytes], held->live_bytes);
    held->seen = s->entered;
}

static void raise_level(struct level *l, uint64_t time_ns)
{
    if ((int64_t)l->active_bytes > l->total.stats.value[STAT_at_peak_bytes]) {
        l->total.stats.value[STAT_at_peak_bytes] = (int64_t)l->active_bytes;
        l->total.peak_active_ns = (int64_t)time_ns;
        l->total.peak_active_count = (int64_t)l->active_count;
        l->epoch++;
    }
}

/* What a process has of a kind of a device, and of all of it. */
static void change_process(struct replay_state *s, const struct chunk_event *e, uint64_t bytes)
{
    for (int all = 0; s->has_threads && all < 2; all++) {
        const unsigned kind = all ? KIND_all : e->kind;
        uint32_t i = map_number_or(&s->process_of, e->process_id, (uint64_t)e->device << 8 | kind, s->process_count);
        if (i == s->process_count)
            *ARRAY_ADD(s->processes, s->process_count, s->process_capacity) =
                (struct process){.peak = {.process_id = e->process_id, .device = e->device, .kind = (uint8_t)kind}};
        struct process *p = &s->processes[i];
        p->active_bytes += bytes;
        if (s->is_inside)
            most(&p->peak.peak_bytes, p->active_bytes);
    }
}

/* --- ranges --- */

static void start(struct held *held)
{
    held->start_bytes = (int64_t)held->live_bytes;
    held->start_count = (int64_t)held->live_count;
}

static void enter(struct replay_state *s, int64_t time_ns)
{
    for (uint32_t i = 0; i < s->level_count; i++)
        raise_level(&s->levels[i], (uint64_t)time_ns);
    for (uint32_t i = 0; !s->entered && i < s->site_count; i++)
        start(&s->sites[i].held);
    for (uint32_t i = 0; !s->entered && i < s->thread_count; i++)
        start(&s->threads[i].held);
    for (uint32_t i = 0; !s->entered && i < s->level_count; i++) {
        wrap_change(&s->levels[i].total.stats.value[STAT_start_bytes], s->levels[i].active_bytes);
        wrap_change(&s->levels[i].total.stats.value[STAT_start_count], s->levels[i].active_count);
    }
    for (uint32_t i = 0; i < s->process_count; i++)
        most(&s->processes[i].peak.peak_bytes, s->processes[i].active_bytes);
    s->is_inside = 1;
    s->entered++;
}

void replay_advance(struct replay_state *s, int64_t time_ns)
{
    while (s->range < s->range_count) {
        const struct window_range *r = &s->ranges[s->range];
        if (!s->is_inside && r->from_ns <= time_ns)
            enter(s, r->from_ns);
        if (!s->is_inside || r->to_ns > time_ns || r->to_ns == WINDOW_END)
            break;
        s->is_inside = 0;
        s->range++;
    }
}

/* --- events --- */

/* The statistics that an event changes: of its site, of the device and the kind, and where these are wanted of the
 * thread that allocated the block. */
struct changed {
    struct held *held[3];
    struct level *levels[2];
    int64_t *stats[5];
    int held_count, count;
};

static struct changed changed_by(struct replay_state *s, const struct chunk_event *e, struct site *site, int has_thread,
                                 uint32_t thread_id)
{
    struct changed c = {.held = {&site->held}, .held_count = 1};
    uint32_t device = level_at(s, e->device, KIND_all), kind = level_at(s, e->device, e->kind);
    c.levels[0] = &s->levels[device];
    c.levels[1] = &s->levels[kind];
    if (has_thread && s->has_threads) {
        uint32_t of_kind = thread_at(s, thread_id, e->device, e->kind);
        uint32_t of_device = thread_at(s, thread_id, e->device, KIND_all);
        c.held[1] = &s->threads[of_kind].held;
        c.held[2] = &s->threads[of_device].held;
        c.held_count = 3;
    }
    for (int i = 0; i < c.held_count; i++) {
        seal(s, c.held[i], c.levels[0], c.levels[1]);
        c.stats[c.count++] = c.held[i]->value;
    }
    for (int i = 0; i < 2; i++)
        c.stats[c.count++] = c.levels[i]->total.stats.value;
    if (!s->is_inside)
        c.count = 0;
    return c;
}

static struct replay_size *size_at(struct replay_state *s, const struct chunk_event *e, uint64_t size_bytes)
{
    int class = size_bytes ? 63 - __builtin_clzll(size_bytes) : -1;
    uint32_t i = map_number_or(&s->size_of, (uint64_t)e->device << 8 | e->kind, (uint64_t)(class + 1), s->size_count);
    if (i == s->size_count)
        *ARRAY_ADD(s->sizes, s->size_count, s->size_capacity) =
            (struct replay_size){.device = e->device, .kind = e->kind, .log2_size = class};
    return &s->sizes[i];
}

static void birth(struct replay_state *s, const struct chunk_event *e, struct site *site)
{
    struct changed c = changed_by(s, e, site, 1, e->thread_id);
    for (int i = 0; i < c.count; i++) {
        wrap_change(&c.stats[i][STAT_alloc_count], 1);
        wrap_change(&c.stats[i][STAT_alloc_bytes], e->size_bytes);
        most(&c.stats[i][STAT_largest_bytes], e->size_bytes);
    }
    for (int i = 0; i < 2; i++) {
        c.levels[i]->total.realloc_count += s->is_inside && e->op == CHUNK_realloc_alloc;
        c.levels[i]->active_bytes += e->size_bytes;
        c.levels[i]->active_count++;
        if (s->is_inside)
            raise_level(c.levels[i], e->time_ns);
    }
    for (int i = 0; i < c.held_count; i++) {
        c.held[i]->live_bytes += e->size_bytes;
        c.held[i]->live_count++;
        if (s->is_inside)
            most(&c.held[i]->value[STAT_own_peak_bytes], c.held[i]->live_bytes);
        if (s->is_inside)
            most(&c.held[i]->value[STAT_active_peak_bytes], c.levels[0]->active_bytes);
    }
    if (s->is_inside && s->has_threads) {
        struct replay_size *size = size_at(s, e, e->size_bytes);
        wrap_change(&size->alloc_count, 1);
        wrap_change(&size->alloc_bytes, e->size_bytes);
    }
    change_process(s, e, e->size_bytes);
    *last_of(s, e->thread_id) = e->address;
    if (e->address)
        blocks_put(&s->blocks, e, chunk_event_space(e));
}

/* Live when its process's interpreter began to take itself down, in this range: that is the end. */
static int is_torn_down(const struct replay_state *s, const struct chunk_event *e, const struct block *block)
{
    int64_t began_ns = s->teardown_ns ? s->teardown_ns[e->process_id] : 0;
    return s->is_inside && began_ns && (!s->ranges || began_ns >= s->ranges[s->range].from_ns) &&
           (int64_t)e->time_ns >= began_ns && (int64_t)block->time_ns <= began_ns;
}

static void split(struct replay_state *s, const struct chunk_event *e)
{
    struct block block;
    if (!blocks_take(&s->blocks, e->address, chunk_event_space(e), &block))
        return;
    struct chunk_event part = {.address = block.address,
                               .size_bytes = e->size_bytes,
                               .time_ns = block.time_ns,
                               .site_id = block.site_id,
                               .thread_id = block.thread_id};
    blocks_put(&s->blocks, &part, block.space);
    part.address += e->size_bytes;
    part.size_bytes = block.size_bytes - e->size_bytes;
    if (part.address)
        blocks_put(&s->blocks, &part, block.space);
}

static void lose(struct changed *c, uint64_t bytes, uint64_t count)
{
    for (int i = 0; i < c->held_count; i++) {
        c->held[i]->live_bytes -= bytes;
        c->held[i]->live_count -= count;
    }
    for (int i = 0; i < 2; i++) {
        c->levels[i]->active_bytes -= bytes;
        c->levels[i]->active_count -= count;
    }
}

/* A part of a block leaves, which counts when the last one does. */
static void cut(struct replay_state *s, const struct chunk_event *e, struct site *site)
{
    struct block block = {0};
    int is_known = blocks_take(&s->blocks, e->address, chunk_event_space(e), &block);
    int is_torn = is_known && is_torn_down(s, e, &block);
    struct changed c = changed_by(s, e, site, is_known, block.thread_id);
    for (int i = 0; i < c.count; i++) {
        wrap_change(&c.stats[i][STAT_free_bytes], e->size_bytes);
        wrap_change(&c.stats[i][STAT_end_bytes], is_torn ? e->size_bytes : 0);
    }
    wrap_change(&site->torn_bytes, is_torn ? e->size_bytes : 0);
    change_process(s, e, -e->size_bytes);
    lose(&c, e->size_bytes, 0);
}

/* All blocks that a process still has end; their sites are told by an event each, their threads by nothing. */
static void end_threads(struct replay_state *s, const struct chunk_event *e)
{
    struct block *blocks = NULL;
    size_t count = 0, capacity = 0;
    if (!s->has_threads || map_get(&s->swept, e->process_id, 0))
        return;
    *map_slot(&s->swept, e->process_id, 0) = 1;
    for (uint64_t i = 0; s->blocks.slots && i <= s->blocks.mask; i++)
        if (s->blocks.slots[i].address && s->blocks.slots[i].space >> 8 == e->process_id)
            *ARRAY_ADD(blocks, count, capacity) = s->blocks.slots[i];
    for (size_t i = 0; i < count; i++) {
        struct block taken;
        const struct site *of = find_site(s, blocks[i].site_id);
        blocks_take(&s->blocks, blocks[i].address, blocks[i].space, &taken);
        for (int all = 0; of && all < 2; all++) {
            const struct level *device = &s->levels[level_at(s, of->device, KIND_all)],
                               *kind = &s->levels[level_at(s, of->device, of->kind)];
            struct held *held =
                &s->threads[thread_at(s, blocks[i].thread_id, of->device, all ? KIND_all : of->kind)].held;
            seal(s, held, device, kind);
            wrap_change(&held->value[STAT_end_bytes], s->is_inside ? held->live_bytes : 0);
            wrap_change(&held->value[STAT_end_count], s->is_inside ? held->live_count : 0);
            held->live_bytes = held->live_count = 0; /* with the first of its blocks, some of which are parts of one */
        }
    }
    free(blocks);
}

/* count blocks leave; a block that turned out to be a segment never was one. */
static void death(struct replay_state *s, const struct chunk_event *e, struct site *site)
{
    struct block block = {0};
    uint64_t count = e->op == CHUNK_end ? e->address : 1;
    int is_known = e->op != CHUNK_end && blocks_take(&s->blocks, e->address, chunk_event_space(e), &block);
    int is_torn = is_known && e->op != CHUNK_to_segment && is_torn_down(s, e, &block);
    uint64_t requested = e->op != CHUNK_end ? map_take(&s->requested, e->address, chunk_event_space(e)) : 0;
    int is_newest = is_known && e->op != CHUNK_realloc_free && *last_of(s, block.thread_id) == e->address;
    int is_temporary = requested ? requested == 2 : is_newest;
    uint64_t lifetime_ns = is_known ? e->time_ns - block.time_ns : 0;
    struct changed c = changed_by(s, e, site, is_known, block.thread_id);
    for (int i = 0; i < c.count; i++) {
        if (e->op == CHUNK_end) {
            wrap_change(&c.stats[i][STAT_end_count], count);
            wrap_change(&c.stats[i][STAT_end_bytes], e->size_bytes);
        } else if (e->op == CHUNK_to_segment) {
            wrap_change(&c.stats[i][STAT_alloc_count], (uint64_t)-1);
            wrap_change(&c.stats[i][STAT_alloc_bytes], -e->size_bytes);
        } else {
            wrap_change(&c.stats[i][STAT_free_count], 1);
            wrap_change(&c.stats[i][STAT_free_bytes], e->size_bytes);
            wrap_change(&c.stats[i][STAT_lifetime_ns], lifetime_ns);
            wrap_change(&c.stats[i][STAT_temporary_count], (uint64_t)is_temporary);
            wrap_change(&c.stats[i][STAT_temporary_bytes], is_temporary ? e->size_bytes : 0);
        }
        if (is_torn) {
            wrap_change(&c.stats[i][STAT_end_count], 1);
            wrap_change(&c.stats[i][STAT_end_bytes], e->size_bytes);
        }
    }
    if (is_torn) {
        wrap_change(&site->torn_bytes, e->size_bytes);
        wrap_change(&site->torn_count, 1);
    }
    wrap_change(&site->moved_count, s->is_inside && e->op == CHUNK_to_segment);
    if (s->is_inside && s->has_threads && e->op != CHUNK_end) {
        struct replay_size *size = size_at(s, e, e->size_bytes);
        int is_segment = e->op == CHUNK_to_segment;
        wrap_change(&size->alloc_count, is_segment ? (uint64_t)-1 : 0);
        wrap_change(&size->alloc_bytes, is_segment ? -e->size_bytes : 0);
        wrap_change(&size->free_count, !is_segment);
        wrap_change(&size->temporary_count, is_temporary && !is_segment);
        wrap_change(&size->lifetime_ns, is_segment ? 0 : lifetime_ns);
    }
    change_process(s, e, -e->size_bytes);
    lose(&c, e->size_bytes, count);
}

/* Whether it is a temporary is decided here, not where a stream lets it go. */
static void request(struct replay_state *s, const struct chunk_event *e)
{
    struct block block;
    if (!blocks_take(&s->blocks, e->address, chunk_event_space(e), &block))
        return;
    struct chunk_event again = {.address = block.address,
                                .size_bytes = block.size_bytes,
                                .time_ns = block.time_ns,
                                .site_id = block.site_id,
                                .thread_id = block.thread_id};
    blocks_put(&s->blocks, &again, block.space);
    *map_slot(&s->requested, e->address, chunk_event_space(e)) = 1u + (*last_of(s, block.thread_id) == e->address);
}

void replay_apply(struct replay_state *s, const struct chunk_event *e)
{
    int is_birth = chunk_op_is_birth(e->op);
    struct chunk_event changed;
    if (s->min_size_bytes) {
        changed = *e;
        e = &changed;
        if (is_birth) /* what comes before a free, and makes that one of a temporary or not */
            *last_of(s, e->thread_id) = e->address;
        if (replay_leaves_out(s, &changed))
            return;
    }
    if (e->op == CHUNK_split)
        split(s, e);
    if (e->op == CHUNK_free_requested)
        request(s, e);
    if ((!is_birth && !chunk_op_is_loss(e->op)) || e->kind >= KIND_COUNT)
        return;
    struct site *site = site_at(s, e);
    if (e->op == CHUNK_end)
        end_threads(s, e);
    else if (is_birth)
        map_take(&s->swept, e->process_id, 0);
    if (is_birth)
        birth(s, e, site);
    else if (e->op == CHUNK_cut)
        cut(s, e, site);
    else
        death(s, e, site);
}

/* Where the end of a process was not recorded, its end is that of the recording. */
static void still_live(int64_t *value, uint64_t bytes, uint64_t count)
{
    wrap_change(&value[STAT_end_bytes], bytes);
    wrap_change(&value[STAT_end_count], count);
}

struct stat_row replay_end_held(struct replay_state *s, struct held *held, unsigned device, unsigned kind)
{
    seal(s, held, &s->levels[level_at(s, device, KIND_all)], &s->levels[level_at(s, device, kind)]);
    still_live(held->value, held->live_bytes, held->live_count);
    struct stat_row stats = {.known = counted};
    memcpy(stats.value, held->value, sizeof held->value);
    stats.value[STAT_start_bytes] = held->start_bytes;
    stats.value[STAT_start_count] = held->start_count;
    return stats;
}

void replay_end_level(struct level *l)
{
    still_live(l->total.stats.value, l->active_bytes, l->active_count);
}

void replay_state_close(struct replay_state *s)
{
    free(s->teardown_ns);
    free(s->sites);
    free(s->threads);
    free(s->processes);
    free(s->levels);
    free(s->last);
    free(s->blocks.slots);
    map_close(&s->process_of);
    map_close(&s->last_at);
    map_close(&s->site_of);
    free(s->site_index);
    map_close(&s->thread_of);
    map_close(&s->size_of);
    map_close(&s->swept);
    map_close(&s->requested);
    map_close(&s->left_of);
    map_close(&s->summed);
    free(s->left);
}
