#include "gap.h"

#include "../query/resident.h"

#include <stdio.h>

#define OVER_LEAST (1 << 20)  /* below, no word of it */
#define LARGE      (16 << 20) /* below, a few processes reach it by what each keeps to go on with */

/* Whether pools of streams held most of what was idle; says so. */
static int say_pools(struct rules *r, struct finding *f, int64_t idle)
{
    static const char sql[] = "SELECT %s FROM total WHERE device_id = ? AND kind = 'pool'";
    char reserved_sql[96], active_sql[96];
    snprintf(reserved_sql, sizeof reserved_sql, sql, "peak_reserved_bytes");
    snprintf(active_sql, sizeof active_sql, sql, "peak_active_bytes");
    int64_t reserved = rule_query_amount(r, reserved_sql, &r->device->device_id, 1, 0);
    int64_t active = rule_query_amount(r, active_sql, &r->device->device_id, 1, 0);
    if (r->device->device_id == 0 || reserved < idle / 2)
        return 0;
    finding_say(f, " Its stream-ordered pools held up to %s, and had up to %s in use.", units_bytes(r->a, reserved),
                units_bytes(r->b, active));
    finding_number(f, "pool_reserved_bytes", reserved);
    finding_number(f, "pool_active_bytes", active);
    return 1;
}

/* Of what was reserved and never in use, what memory it took. */
static void say_idle(struct rules *r, struct finding *f, const struct gap *gap)
{
    int64_t lost = gap->idle - gap->absent;
    if (!gap->absent) {
        finding_say(f, ": at least %s (%d %%) lay idle or in fragments.", units_bytes(r->a, lost),
                    rule_percent(lost, gap->reserved));
        return;
    }
    if (!gap->is_looked) {
        const int64_t rss = resident_peak_rss(r->db);
        finding_say(f, ". The peak RSS, with code and libraries, was %s: the other %s held addresses, no memory.",
                    units_bytes(r->a, rss), units_bytes(r->b, gap->reserved - rss));
        return;
    }
    finding_say(f,
                ". Of the other %s, by the looks at its pages, %s was on none (never touched, or given back): "
                "addresses, no memory",
                units_bytes(r->a, gap->idle), units_bytes(r->b, gap->absent));
    if (lost >= OVER_LEAST)
        finding_say(f, "; %s (%d %%) lay idle or in fragments", units_bytes(r->a, lost),
                    rule_percent(lost, gap->reserved));
    finding_say(f, ".");
}

void find_gap(struct rules *r)
{
    const struct rule_device *d = r->device;
    struct gap gap;
    if (!gap_of(r, &gap) || gap.is_mapped)
        return;
    struct finding *f = rule_finding(r, d->name);
    const int64_t lost = gap.idle - gap.absent;
    f->bytes = lost;
    if (lost < LARGE || lost < (gap.reserved - gap.idle) / 4)
        finding_lessen(f);
    f->time_ns = d->peak_reserved_ns;
    finding_say(f, "The allocators of %s held %s%s at %s, yet the program never had more than %s in use", d->name,
                units_bytes(r->a, gap.reserved), gap.arenas ? " beside Python's arenas" : "",
                units_ns(r->b, d->peak_reserved_ns), units_bytes(r->c, d->peak_active));
    if (gap.over >= OVER_LEAST)
        finding_say(f, ", which take %s more, rounded up and with headers", units_bytes(r->a, gap.over));
    say_idle(r, f, &gap);
    f->next = lost < OVER_LEAST ? "Nothing is to be done: it takes addresses only, such as the padding beside aligned "
                                  "blocks that the C library maps."
                                : "Look for a peak before this one that left holes, and for long-lived blocks among "
                                  "short-lived ones.";
    if (say_pools(r, f, gap.idle))
        f->next = "cudaMemPoolTrimTo() gives back what a pool does not use; its release threshold "
                  "(cudaMemPoolAttrReleaseThreshold) keeps that.";
    finding_look(f, FINDING_MOMENT, d->peak_reserved_ns, NULL, "Look at that moment");
    finding_number(f, "idle_bytes", lost);
    finding_number(f, "absent_bytes", gap.absent);
    finding_number(f, "arena_bytes", gap.arenas);
    finding_number(f, "rounding_bytes", gap.over);
    /* what is reserved is never less than what is in use, and what that is rounded up to */
    finding_saves_of(r, f, FINDING_RESERVED, FINDING_AT_MOST, lost, d->peak_reserved);
}
