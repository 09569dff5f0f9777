#include "rules.h"

#define LEAST_BUCKETS 100
#define LEAST_BYTES   (1 << 20)
/* a tool that sorts its input once is short itself */
#define LARGE    (4 << 20)
#define LARGE_NS 100000000

/* Half of the peak or less for nine tenths of the run, for the kernel too: what a heap could not give back, the program
 * went on to hold. Of that the kernel's own figure says whether it was there. A peak that lasts to the end is none: who
 * knows how long it would have lasted. */
void find_spike(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t high = 0, all = 0, to_end = 0;
    sqlite3_stmt *s =
        d->peak_active < LEAST_BYTES
            ? NULL
            : rule_query(r, "SELECT sum(is_high), count(*), max(is_high AND time_ns = last_ns) FROM (SELECT time_ns, "
                            "max(time_ns) OVER () AS last_ns, max(active_max_bytes, min(reserved_last_bytes, "
                            "coalesce(rss_last_bytes, reserved_last_bytes))) > ?2 / 2 AS is_high FROM timeline WHERE "
                            "device_id = ?1 AND "
                            "level = (SELECT level FROM timeline WHERE device_id = ?1 GROUP BY level HAVING count(*) "
                            "<= 4096 ORDER BY level LIMIT 1))");
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, d->device_id);
    sqlite3_bind_int64(s, 2, d->peak_active);
    if (sqlite3_step(s) == SQLITE_ROW) {
        high = rule_amount(s, 0);
        all = rule_amount(s, 1);
        to_end = rule_amount(s, 2);
    }
    sqlite3_finalize(s);
    if (all < LEAST_BUCKETS || high * 10 > all || to_end)
        return;
    double part = (double)high / (double)all;
    struct finding *f = rule_finding(r, d->name);
    f->bytes = d->peak_active;
    if (d->peak_active < LARGE || r->duration_ns < LARGE_NS)
        finding_lessen(f);
    f->time_ns = d->peak_ns;
    finding_say(f, "%s held more than half of its peak for about %s only, in %.1f %% of the run.", d->name,
                units_ns(r->a, (int64_t)((double)r->duration_ns * part)), 100.0 * part);
    finding_look(f, FINDING_PEAK, 0, NULL, "Look at that moment");
    f->next = "What is live only then decides how much memory the program needs.";
}
