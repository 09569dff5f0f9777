#include "gap.h"

#include "../../common/db.h"

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
        finding_say(f, ": the peak RSS, with code and libraries, was %s", units_bytes(r->d, rss));
    finding_say(f, ".");
    finding_look(f, FINDING_SECTION, 0, "timeline", "See the timeline");
}
