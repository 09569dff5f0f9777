#include "../query/resident.h"

#include "rules.h"

#include <string.h>

#define LEAST_BYTES (16 << 20)
#define LEAST_SHARE 4 /* a part of what was live */

void find_untouched(struct rules *r)
{
    struct resident_peak peak;
    int64_t all;
    if (strcmp(r->device->name, "host") != 0 || resident_peak_load(r->db, &peak, r->err))
        return;
    const int64_t later = resident_peak_later(&peak), never = peak.untouched_bytes - later;
    if (never < LEAST_BYTES || never < peak.live_bytes / LEAST_SHARE ||
        !resident_peak_has_most(&peak, r->device->peak_active))
        return;
    const struct rule_line *line = rule_top_line(r, LINE_UNTOUCHED_BYTES, &all);
    if (!line)
        return;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = never;
    f->time_ns = peak.time_ns;
    finding_say(f,
                "Of %s that were live at %s, %s (%d %%) were on no page: never written, or given back to the kernel. "
                "They take addresses, and no memory.",
                units_bytes(r->a, peak.live_bytes), units_ns(r->b, peak.time_ns),
                units_bytes(r->c, peak.untouched_bytes), rule_percent(peak.untouched_bytes, peak.live_bytes));
    if (later)
        finding_say(f,
                    " Resident memory was up to %s more at another time than at this look: as much of it may have been "
                    "there then.",
                    units_bytes(r->d, later));
    finding_say(f, " The largest part: ");
    finding_line(r, f, line->site_id, "peak");
    finding_say(f, ", %s.", units_bytes(r->d, line->sums[LINE_UNTOUCHED_BYTES]));
    f->next = "By line: memprof report --by line --sort resident.";
}
