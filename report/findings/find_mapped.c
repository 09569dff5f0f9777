#include "gap.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../query/resident.h"

/* By the look at the pages: what blocks have, and what is beside them. */
static void say_present(struct rules *r, struct finding *f)
{
    struct resident_peak peak;
    if (resident_peak_load(r->db, &peak, r->err) || !peak.process_count)
        return;
    int64_t there = peak.block_bytes, reserved = r->device->peak_reserved;
    static const char sql[] =
        "SELECT total(resident_bytes) FROM v_resident WHERE what IN ('beside', 'heap', 'segment')";
    __builtin_add_overflow(there, rule_query_amount(r, sql, NULL, 0, 0), &there);
    if (there < reserved)
        finding_say(f, " At %s, %s of it was on present pages, and %s was not touched.", units_ns(r->a, peak.time_ns),
                    units_bytes(r->b, there), units_bytes(r->c, reserved - there));
}

static void say_rss(struct rules *r, struct finding *f, int64_t rss)
{
    struct buf again = BUF(256);
    finding_say(f, ": the peak RSS, with code and libraries, was %s%s",
                resident_peak_rss_is_least(r->db) ? "at least " : "", units_bytes(r->d, rss));
    resident_again_text(r->db, &again);
    if (again.length)
        finding_say(f, " (%s)", buf_text(&again));
    buf_free(&again);
}

void find_mapped(struct rules *r)
{
    const struct rule_device *d = r->device;
    struct gap gap;
    if (!gap_of(r, &gap) || !gap.is_mapped)
        return;
    int64_t rss = db_int(r->db, "SELECT max(rss_max_bytes) FROM timeline WHERE device_id = 0", 0);
    struct finding *f = rule_finding(r, d->name);
    f->bytes = d->peak_reserved;
    f->time_ns = d->peak_reserved_ns;
    finding_say(f,
                "An allocator mapped %s by %s, while the program never had more than %s in use. What it has not "
                "touched takes addresses only",
                units_bytes(r->a, d->peak_reserved), units_ns(r->b, d->peak_reserved_ns),
                units_bytes(r->c, d->peak_active));
    if (rss > 0)
        say_rss(r, f, rss);
    finding_say(f, ".");
    say_present(r, f);
    finding_look(f, FINDING_SECTION, 0, "timeline", "See the timeline");
}
