#include "rules.h"

#define LEAST_BUCKETS 100
#define LEAST_BYTES   (1 << 20)
/* a tool that sorts its input once is short itself */
#define TERMINAL_BYTES (4 << 20)
#define TERMINAL_NS    100000000

/* Half of the peak or less for nine tenths of the run, for the kernel too: what a heap could not give back, the program
 * went on to hold. Of that the kernel's own figure says whether it was there. */
void find_spike(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t high = 0, all = 0;
    sqlite3_stmt *s =
        d->peak_active < LEAST_BYTES
            ? NULL
            : rule_query(r, "SELECT sum(max(active_max_bytes, min(reserved_last_bytes, "
                            "coalesce(rss_last_bytes, reserved_last_bytes))) > ?2 / 2), count(*) FROM timeline WHERE "
                            "device_id = ?1 AND "
                            "level = (SELECT level FROM timeline WHERE device_id = ?1 GROUP BY level HAVING count(*) "
                            "<= 4096 ORDER BY level LIMIT 1)");
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, d->device_id);
    sqlite3_bind_int64(s, 2, d->peak_active);
    if (sqlite3_step(s) == SQLITE_ROW) {
        high = rule_amount(s, 0);
        all = rule_amount(s, 1);
    }
    sqlite3_finalize(s);
    if (all < LEAST_BUCKETS || high * 10 > all)
        return;
    double part = (double)high / (double)all;
    struct finding *f = rule_finding(r, d->name);
    f->bytes = d->peak_active;
    f->is_large = d->peak_active >= TERMINAL_BYTES && r->duration_ns >= TERMINAL_NS;
    f->time_ns = d->peak_ns;
    finding_say(f, "%s held more than half of its peak for about %s only, in %.1f %% of the run.", d->name,
                units_ns(r->a, (int64_t)((double)r->duration_ns * part)), 100.0 * part);
    finding_look(f, FINDING_PEAK, 0, NULL, "Look at that moment");
    f->next = "What is live only then decides how much memory the program needs.";
}
