#include "gap.h"

#define LARGE (16 << 20) /* below, a few processes reach it by what each keeps to go on with */

void find_gap(struct rules *r)
{
    const struct rule_device *d = r->device;
    struct gap gap;
    if (!gap_of(r, &gap) || gap.is_mapped)
        return;
    struct finding *f = rule_finding(r, d->name);
    f->bytes = gap.idle;
    if (gap.idle < LARGE)
        finding_lessen(f);
    f->time_ns = d->peak_reserved_ns;
    finding_say(f,
                "The allocators of %s held %s%s at %s, yet the program never had more than %s in use: at least %s "
                "(%d %%) lay idle or in fragments.",
                d->name, units_bytes(r->a, gap.reserved), gap.arenas ? " beside Python's arenas" : "",
                units_ns(r->b, d->peak_reserved_ns), units_bytes(r->c, d->peak_active), units_bytes(r->d, gap.idle),
                rule_percent(gap.idle, gap.reserved));
    finding_look(f, FINDING_MOMENT, d->peak_reserved_ns, NULL, "Look at that moment");
    f->next = "Look for a peak before this one that left holes, and for long-lived blocks among short-lived ones.";
}
