/* What the accounts of a window are to whoever shows them. */
#include "window_private.h"

#include "../../common/error.h"
#include "../../common/kind.h"
#include "../../common/wrap.h"

#define OF(statistic) (1u << STAT_##statistic)
static const uint32_t of_instants = OF(end_bytes) | OF(end_count) | OF(start_bytes) | OF(start_count);
static const uint32_t of_events = OF(alloc_count) | OF(alloc_bytes) | OF(free_count) | OF(free_bytes) |
                                  OF(temporary_count) | OF(at_peak_bytes) | OF(at_peak_count) | OF(at_kind_peak_bytes) |
                                  OF(own_peak_bytes);
#undef OF

void window_fill_stats(const struct window *w, size_t i, struct stat_row *stats)
{
    const struct window_site *s = &w->sites[i];
    int64_t *v = stats->value;
    v[STAT_start_bytes] = s->start_bytes;
    v[STAT_start_count] = s->start_count;
    v[STAT_alloc_count] = s->alloc_count;
    v[STAT_alloc_bytes] = s->alloc_bytes;
    v[STAT_free_count] = s->free_count;
    v[STAT_free_bytes] = s->free_bytes;
    v[STAT_temporary_count] = s->temporary_count;
    v[STAT_at_peak_bytes] = s->at_peak_bytes;
    v[STAT_at_peak_count] = s->at_peak_count;
    v[STAT_at_kind_peak_bytes] = s->at_kind_peak_bytes;
    v[STAT_own_peak_bytes] = s->own_peak_bytes;
    v[STAT_end_bytes] = s->end_bytes;
    v[STAT_end_count] = s->end_count;
    wrap_change(&v[STAT_end_bytes], (uint64_t)w->live[i].bytes);
    wrap_change(&v[STAT_end_count], (uint64_t)w->live[i].count);
    wrap_change(&v[STAT_end_bytes], (uint64_t)s->torn_bytes);
    wrap_change(&v[STAT_end_count], (uint64_t)s->torn_count);
}

static void add_total(struct replay_total *total, const struct stat_row *stats)
{
    static const int summed[] = {STAT_start_bytes, STAT_start_count,     STAT_alloc_count,
                                 STAT_alloc_bytes, STAT_free_count,      STAT_free_bytes,
                                 STAT_end_bytes,   STAT_temporary_count, STAT_end_count};
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
        wrap_change(&total->stats.value[summed[i]], (uint64_t)stats->value[summed[i]]);
}

void window_fill(struct window *w, struct replay *replay)
{
    const uint32_t known = w->result->is_counted ? of_instants | of_events : of_instants;
    replay->totals = xcalloc(w->level_count + 1ul, sizeof *replay->totals);
    replay->total_count = w->level_count;
    replay->event_count = w->event_count;
    for (uint32_t i = 0; i < w->level_count; i++) {
        const struct window_level *l = &w->levels[i];
        replay->totals[i] = (struct replay_total){.device = l->device,
                                                  .kind = l->kind,
                                                  .stats.known = known,
                                                  .peak_active_ns = l->peak_ns,
                                                  .peak_active_count = l->peak_count};
        replay->totals[i].stats.value[STAT_at_peak_bytes] = l->peak_bytes;
    }
    for (size_t i = 0; i < w->site_count; i++) {
        struct replay_site site = {.id = w->live[i].site_id,
                                   .stats.known = known,
                                   .torn_bytes = w->sites[i].torn_bytes,
                                   .torn_count = w->sites[i].torn_count,
                                   .moved_count = w->sites[i].moved_count};
        window_fill_stats(w, i, &site.stats);
        for (int k = 0; k < 2; k++) {
            uint32_t level = w->sites[i].levels[k];
            if (level == WINDOW_NONE)
                continue;
            add_total(&replay->totals[level], &site.stats);
            site.device = w->levels[level].device;
            site.kind = w->levels[level].kind;
        }
        if (!replay_is_nothing(&site.stats))
            replay_give(replay, w->site_count, &site);
    }
    if (w->parts && w->result->has_parts)
        window_parts_fill(w, known, replay);
}

int window_lacks(int stat)
{
    /* all that is counted, less what sums have and what a replay of the events has not either */
    const uint32_t replayed = ((1u << STAT_COUNT) - 1) & ~(of_instants | of_events | 1u << STAT_reserved_peak_bytes);
    if (stat < 0)
        return 0;
    if (stat >= STAT_VALUE_COUNT)
        return window_lacks(stat_infos[stat].a) || window_lacks(stat_infos[stat].b);
    return replayed >> stat & 1;
}

void window_fill_thread(struct replay *replay, int64_t thread_id)
{
    replay->threads = xcalloc(replay->total_count + 1ul, sizeof *replay->threads);
    replay->processes = xcalloc(replay->total_count + 1ul, sizeof *replay->processes);
    for (uint32_t i = 0; i < replay->total_count; i++) {
        const struct replay_total *total = &replay->totals[i];
        struct replay_thread t = {.id = thread_id, .device = total->device, .kind = total->kind};
        for (uint32_t k = 0; k < replay->site_count; k++) {
            const struct replay_site *site = &replay->sites[k];
            if (site->device != t.device || (t.kind != KIND_all && site->kind != t.kind))
                continue;
            for (int v = 0; v < STAT_VALUE_COUNT; v++)
                wrap_change(&t.stats.value[v], (uint64_t)site->stats.value[v]);
        }
        t.stats.known = total->stats.known;
        t.stats.value[STAT_own_peak_bytes] = total->stats.value[STAT_at_peak_bytes];
        if (t.kind == KIND_all)
            t.stats.value[STAT_at_kind_peak_bytes] = t.stats.value[STAT_at_peak_bytes];
        if (!replay_is_nothing(&t.stats))
            replay->threads[replay->thread_count++] = t;
        replay->processes[replay->process_count++] = (struct replay_process){
            .process_id = -1, .device = t.device, .kind = t.kind, .peak_bytes = total->stats.value[STAT_at_peak_bytes]};
    }
}
