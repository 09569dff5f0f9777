#include "gap.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "../query/resident.h"

#include <stdio.h>

/* What was reserved while the pages were looked at, as far as the timeline tells instants apart: least and most. */
static void reserved_at(struct rules *r, const struct resident_peak *look, int64_t *least, int64_t *most)
{
    static const char buckets[] = "FROM timeline WHERE device_id = ?1 AND level = 0 AND time_ns <= ?2 AND time_ns + "
                                  "width_ns > ?3";
    static const char before[] = "SELECT reserved_last_bytes FROM timeline WHERE device_id = ?1 AND level = 0 AND "
                                 "time_ns + width_ns <= ?3 ORDER BY time_ns DESC LIMIT 1";
    int64_t end_ns;
    if (__builtin_add_overflow(look->time_ns, look->duration_ns, &end_ns))
        end_ns = look->time_ns;
    const int64_t values[] = {r->device->device_id, end_ns, look->time_ns};
    char sql[320];
    *least = rule_query_amount(r, before, values, 3, 0);
    snprintf(sql, sizeof sql, "SELECT min(reserved_last_bytes) %s", buckets);
    int64_t last = rule_query_amount(r, sql, values, 3, *least);
    snprintf(sql, sizeof sql, "SELECT max(reserved_max_bytes) %s", buckets);
    *most = rule_query_amount(r, sql, values, 3, *least);
    *least = last < *least ? last : *least;
}

/* By the look at the pages, and of its instant: what blocks have, what is beside them, and what was reserved. */
static void say_present(struct rules *r, struct finding *f)
{
    static const char sql[] =
        "SELECT total(resident_bytes) FROM v_resident WHERE what IN ('beside', 'heap', 'segment')";
    struct resident_peak peak;
    if (resident_peak_load(r->db, &peak, r->err) || !peak.process_count)
        return;
    int64_t there = peak.block_bytes, least, most;
    sum_add(&there, rule_query_amount(r, sql, NULL, 0, 0));
    reserved_at(r, &peak, &least, &most);
    if (there < 0 || there >= most)
        return;
    finding_say(f, " At %s, when its pages were looked at, %s%s was reserved: %s of that was on present pages,",
                units_ns(r->a, peak.time_ns), least < most ? "up to " : "", units_bytes(r->b, most),
                units_bytes(r->c, there));
    finding_say(f, " and %s%s on none: never touched, or given back.", least < most ? "at most " : "",
                units_bytes(r->a, most - there));
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
    int64_t rss = resident_peak_rss(r->db);
    struct finding *f = rule_finding(r, d->name);
    f->bytes = d->peak_reserved;
    f->time_ns = d->peak_reserved_ns;
    finding_say(f,
                "An allocator mapped %s by %s, while the program never had more than %s in use. What is on no page "
                "takes addresses only",
                units_bytes(r->a, d->peak_reserved), units_ns(r->b, d->peak_reserved_ns),
                units_bytes(r->c, d->peak_active));
    if (rss > 0)
        say_rss(r, f, rss);
    finding_say(f, ".");
    say_present(r, f);
    finding_look(f, FINDING_SECTION, 0, "timeline", "See the timeline");
}
