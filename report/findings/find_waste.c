#include "rounding.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES (1 << 20)

static int is_much(const struct rules *r, int64_t over_bytes)
{
    return over_bytes >= LEAST_BYTES && over_bytes > r->device->peak_active / 100 * ROUNDING_PERCENT;
}

/* What is lost on all lines that have no finding of their own. */
static void say_all(struct rules *r, const struct rounding *top, int64_t over_bytes, int64_t bytes)
{
    struct finding *f = rule_finding(r, r->device->name);
    f->severity = FINDING_INFO;
    f->bytes = over_bytes;
    f->time_ns = r->device->peak_ns;
    finding_say(f, "At the peak %s took %s more than the %s that were asked for in its blocks (%d %%), most of it, ",
                strcmp(r->device->name, "host") == 0 ? "glibc" : "PyTorch", units_bytes(r->a, over_bytes),
                units_bytes(r->b, bytes), rule_percent(over_bytes, bytes));
    finding_say(f, "%s, for ", units_bytes(r->a, top->over_bytes));
    finding_line(r, f, top->line->site_id, "peak");
    finding_say(f, ".");
    f->next = "Fewer and larger blocks have less of it.";
    finding_number(f, "over_bytes", over_bytes);
    finding_number(f, "asked_bytes", bytes);
    finding_saves_of(r, f, FINDING_BESIDE, FINDING_AT_MOST, over_bytes, r->device->peak_active);
}

static void say_line(struct rules *r, const struct rounding *l)
{
    const int is_host = strcmp(r->device->name, "host") == 0;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = l->over_bytes;
    f->time_ns = r->device->peak_ns;
    finding_line(r, f, l->line->site_id, "peak");
    finding_caller(r, f, l->site_id);
    finding_say(f, " had %s in %s block%s at the peak, for which ", units_bytes(r->a, l->bytes),
                units_count(r->b, l->count), l->count == 1 ? "" : "s");
    finding_say(f, "%s took %s more (%d %%): %s.", is_host ? "glibc" : "PyTorch", units_bytes(r->a, l->over_bytes),
                rule_percent(l->over_bytes, l->bytes),
                is_host ? "headers, and sizes rounded up to steps of 16 bytes or to pages"
                        : "sizes rounded up to steps of 512 bytes");
    finding_look(f, FINDING_PEAK, 0, NULL, "Look at the peak");
    f->next = is_host ? "Take many at once, or sizes that end 8 bytes below a step of 16."
                      : "Keep small tensors as parts of one.";
    finding_number(f, "block_count", l->count);
    finding_number(f, "asked_bytes", l->bytes);
    finding_number(f, "over_bytes", l->over_bytes);
    finding_saves_of(r, f, FINDING_BESIDE, FINDING_AT_MOST, l->over_bytes, r->device->peak_active);
}

void find_waste(struct rules *r)
{
    size_t count;
    struct rounding *lines = rounding_lines(r, &count);
    const struct rounding *top = NULL;
    int64_t over_bytes = 0, bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct rounding *l = &lines[i];
        if (rounding_is_tiny(r, l) || rounding_is_python(r, l))
            continue;
        if (is_much(r, l->over_bytes)) {
            say_line(r, l);
            continue;
        }
        over_bytes += l->over_bytes;
        bytes += l->bytes;
        top = top ? top : l;
    }
    if (is_much(r, over_bytes))
        say_all(r, top, over_bytes, bytes);
    free(lines);
}
