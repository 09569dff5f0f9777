/* What the accounts of a window are to whoever shows them. */
#include "window_private.h"

#include "../../common/error.h"
#include "../../common/wrap.h"

#define OF(statistic) (1u << STAT_##statistic)
static const uint32_t of_instants = OF(end_bytes) | OF(end_count) | OF(start_bytes) | OF(start_count);
static const uint32_t of_events = OF(alloc_count) | OF(alloc_bytes) | OF(free_count) | OF(free_bytes) |
                                  OF(temporary_count) | OF(at_peak_bytes) | OF(at_peak_count) | OF(at_kind_peak_bytes) |
                                  OF(own_peak_bytes);
#undef OF

static void fill_stats(const struct window *w, size_t i, struct stat_row *stats)
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

static int is_empty(const struct stat_row *stats)
{
    for (int i = 0; i < STAT_VALUE_COUNT; i++)
        if (stats->value[i])
            return 0;
    return 1;
}

static void add_total(struct replay_total *total, const struct stat_row *stats)
{
    static const int summed[] = {STAT_start_bytes, STAT_start_count,     STAT_alloc_count,
                                 STAT_alloc_bytes, STAT_free_count,      STAT_free_bytes,
                                 STAT_end_bytes,   STAT_temporary_count, STAT_end_count};
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
        wrap_change(&total->stats.value[summed[i]], (uint64_t)stats->value[summed[i]]);
}

void window_fill(const struct window *w, struct replay *replay)
{
    const uint32_t known = w->result->is_counted ? of_instants | of_events : of_instants;
    replay->sites = xcalloc(w->site_count + 1, sizeof *replay->sites);
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
        fill_stats(w, i, &site.stats);
        for (int k = 0; k < 2; k++) {
            uint32_t level = w->sites[i].levels[k];
            if (level == WINDOW_NONE)
                continue;
            add_total(&replay->totals[level], &site.stats);
            site.device = w->levels[level].device;
            site.kind = w->levels[level].kind;
        }
        if (!is_empty(&site.stats))
            replay->sites[replay->site_count++] = site;
    }
}
