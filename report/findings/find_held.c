#include "../query/heap_end.h"
#include "rules.h"

#include <string.h>

/* below, and in programs that end before it matters, it is no news for a terminal */
#define TERMINAL_BYTES (4 << 20)
#define TERMINAL_NS    100000000

static const struct heap_line *most_held(const struct heap *heap)
{
    const struct heap_line *most = NULL;
    for (uint32_t i = 0; i < heap->line_count; i++)
        if (!most || heap->lines[i].trim_bytes > most->trim_bytes)
            most = &heap->lines[i];
    return most;
}

/* Blocks that live long among pages that are free. */
void find_held(struct rules *r)
{
    const struct heap_end *end = r->heap_end;
    const struct heap_line *line = end && end->is_there ? most_held(&end->heap) : NULL;
    if (!line || strcmp(r->device->name, "host") != 0)
        return;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = (int64_t)end->trim_bytes;
    f->is_large = end->trim_bytes >= TERMINAL_BYTES && end->end_ns - end->since_ns >= TERMINAL_NS;
    f->time_ns = end->end_ns;
    finding_line(r, f, line->site_id, "end");
    finding_say(f, ": %s live in %s block%s, pins %s, holds ", units_bytes(r->a, (int64_t)line->live_bytes),
                units_count(r->b, (int64_t)line->block_count), line->block_count == 1 ? "" : "s",
                units_bytes(r->c, (int64_t)line->pinned_bytes));
    finding_say(f, "%s of free pages below the top of glibc's heap. malloc_trim(0) would give %s back to the kernel; ",
                units_bytes(r->a, (int64_t)line->trim_bytes), units_bytes(r->b, f->bytes));
    finding_say(f, "%s of pages with a live byte would stay.", units_bytes(r->a, (int64_t)end->pin_bytes));
    finding_look(f, FINDING_SECTION, 0, "heap", "See the heap");
    f->next = "Allocate what stays apart from what goes, or before it; or call malloc_trim(0) when much was freed.";
}
