#include "rounding.h"

#include <stdlib.h>

void find_tiny(struct rules *r)
{
    size_t count, said = 0;
    struct rounding *lines = rounding_lines(r, &count);
    for (size_t i = 0; i < count && said < FINDINGS_MOST; i++) {
        const struct rounding *l = &lines[i];
        if (!rounding_is_tiny(r, l) || rounding_is_python(r, l))
            continue;
        struct finding *f = rule_finding(r, r->device->name);
        f->bytes = l->tiny_over_bytes;
        f->time_ns = r->device->peak_ns;
        finding_line(r, f, l->line->site_id, "peak");
        finding_caller(r, f, l->site_id);
        finding_say(f, " had %s blocks of at most %d bytes at the peak, with %s in them, for which glibc took ",
                    units_count(r->a, l->tiny_count), ROUNDING_TINY, units_bytes(r->b, l->tiny_bytes));
        finding_say(f, "%s more: 8 bytes before each, and steps of 16 bytes from 32 on.",
                    units_bytes(r->a, l->tiny_over_bytes));
        finding_look(f, FINDING_PEAK, 0, NULL, "Look at the peak");
        f->next = "Keep them in an array, or take many at once from a pool of their size.";
        finding_number(f, "tiny_count", l->tiny_count);
        finding_number(f, "tiny_bytes", l->tiny_bytes);
        finding_number(f, "over_bytes", l->tiny_over_bytes);
        finding_saves_of(r, f, FINDING_BESIDE, FINDING_AT_MOST, l->tiny_over_bytes, r->device->peak_active);
        said++;
    }
    free(lines);
}
