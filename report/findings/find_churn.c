#include "rules.h"

void find_churn(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t all;
    if (d->temporary_count < 1000 || d->temporary_count < d->alloc_count / 10)
        return;
    const struct rule_line *line = rule_top_line(r, LINE_TEMPORARY_COUNT, &all);
    if (!line)
        return;
    struct finding *f = rule_finding(r, d->name);
    finding_say(f, "%s of %s allocations (%d %%) were freed ", units_count(r->a, d->temporary_count),
                units_count(r->b, d->alloc_count), rule_percent(d->temporary_count, d->alloc_count));
    finding_say(f, "before their thread allocated again. Most of them, %s, in ",
                units_count(r->c, line->sums[LINE_TEMPORARY_COUNT]));
    finding_line(r, f, line->site_id, "run");
    finding_say(f, ".");
    f->next = "They cost time rather than memory: a buffer that is kept and reused would save them.";
}
