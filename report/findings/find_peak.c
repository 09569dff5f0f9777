#include "../query/merged.h"
#include "../query/peak_line.h"

#include "rules.h"

void find_peak(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t all;
    const struct rule_line *line = rule_top_line(r, LINE_PEAK_BYTES, &all);
    const struct rule_line *named = line ? rule_line_of(r, peak_line_site(r->db, d->device_id)) : NULL;
    if (!line)
        return;
    if (named)
        line = named;
    int64_t bytes = line->sums[LINE_PEAK_BYTES], blocks = line->sums[LINE_PEAK_COUNT];
    struct finding *f = rule_finding(r, d->name);
    f->bytes = bytes;
    f->time_ns = d->peak_ns;
    if (merged_count(r->db))
        finding_say(f, "Each at its own peak, the recordings held %s of %s. ", units_bytes(r->b, d->peak_active),
                    d->name);
    else
        finding_say(f, "At its peak, %s into the run, %s held %s. ", units_ns(r->a, d->peak_ns), d->name,
                    units_bytes(r->b, d->peak_active));
    finding_line(r, f, line->site_id, "peak");
    finding_say(f, " held %s of it (%d %%) in %s block%s.", units_bytes(r->c, bytes),
                rule_percent(bytes, d->peak_active), units_count(r->d, blocks), blocks == 1 ? "" : "s");
    if (!finding_runtime(r, f, line->site_id) && !finding_wrapper(r, f, line, LINE_PEAK_BYTES) &&
        rule_percent(bytes, d->peak_active) >= 30)
        f->next = "Making this one line hold less, or hold it for less time, lowers the peak most.";
}
