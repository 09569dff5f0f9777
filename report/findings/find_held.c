#include "../../common/db.h"
#include "../query/heap_end.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

/* below, and in programs that end before it matters, it is no news */
#define LARGE    (4 << 20)
#define LARGE_NS 100000000

static uint64_t held_by(const struct heap_line *line, int is_segments)
{
    return is_segments ? line->held_bytes - line->trim_bytes : line->trim_bytes;
}

static const struct heap_line *most_held(const struct heap *heap, int is_segments)
{
    const struct heap_line *most = NULL;
    for (uint32_t i = 0; i < heap->line_count; i++)
        if (!most || held_by(&heap->lines[i], is_segments) > held_by(most, is_segments))
            most = &heap->lines[i];
    return most;
}

/* What of each gives back at once what it would return in time. */
static const struct {
    const char *name, *call;
} allocators[] = {
    {"jemalloc", "mallctl(\"arena.<i>.purge\"), and in time dirty_decay_ms, give"},
    {"tcmalloc", "MallocExtension::ReleaseFreeMemory() gives"},
    {"mimalloc", "mi_collect(true) gives"},
};

/* Which one the program has loaded; -1: none of these, one that is linked into it, or more than one. */
static int allocator_of(struct rules *r)
{
    char *loaded = db_meta_text(r->db, "mallocs");
    int found = -1;
    for (size_t i = 0; loaded && i < sizeof allocators / sizeof *allocators; i++)
        if (strcmp(loaded, allocators[i].name) == 0)
            found = (int)i;
    free(loaded);
    return found;
}

/* What an allocator keeps in slabs that have a live block is nobody's to give back. */
static void say_segments(struct rules *r, struct finding *f, const struct heap_end *end, const struct heap_line *line)
{
    int allocator = allocator_of(r);
    const char *name = allocator < 0 ? "the allocator" : allocators[allocator].name;
    finding_say(f, "%s of free pages below them in %s's segments%s. ", units_bytes(r->a, (int64_t)held_by(line, 1)),
                name, end->whose);
    finding_say(f, "Of %s that these reserved at the end ", units_bytes(r->a, (int64_t)end->reserved_bytes));
    finding_say(f, "%s of pages had a live byte, and %s were resident without one.",
                units_bytes(r->a, (int64_t)end->pin_bytes), units_bytes(r->b, f->bytes));
    if (allocator >= 0)
        finding_say(f, " %s back what is wholly free: not pages beside a live block of their size.",
                    allocators[allocator].call);
    finding_look(f, FINDING_SECTION, 0, "heap", "See the segments");
    f->next = "Allocate what stays apart from what goes, or before it.";
}

/* Blocks that live long among pages that are free. */
void find_held(struct rules *r)
{
    const struct heap_end *end = r->heap_end;
    const struct heap_line *line = end && end->is_there ? most_held(&end->heap, end->is_segments) : NULL;
    if (!line || strcmp(r->device->name, "host") != 0)
        return;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = (int64_t)end->trim_bytes;
    if (end->trim_bytes < LARGE || end->end_ns - end->since_ns < LARGE_NS)
        finding_lessen(f);
    f->time_ns = end->end_ns;
    finding_line(r, f, line->site_id, "end");
    finding_say(f, ": %s live in %s block%s, pins %s, holds ", units_bytes(r->a, (int64_t)line->live_bytes),
                units_count(r->b, (int64_t)line->block_count), line->block_count == 1 ? "" : "s",
                units_bytes(r->c, (int64_t)line->pinned_bytes));
    if (end->is_segments) {
        say_segments(r, f, end, line);
        return;
    }
    finding_say(f,
                "%s of free pages below the top of glibc's heap%s. malloc_trim(0) would give %s back to the kernel; ",
                units_bytes(r->a, (int64_t)line->trim_bytes), end->whose, units_bytes(r->b, f->bytes));
    finding_say(f, "%s of pages with a live byte would stay.", units_bytes(r->a, (int64_t)end->pin_bytes));
    if (end->is_before_teardown)
        finding_say(f,
                    " That is as Python began to take itself down; when it had, %s of pages had one, and %s were free.",
                    units_bytes(r->a, (int64_t)end->left_pin_bytes), units_bytes(r->b, (int64_t)end->left_free_bytes));
    finding_look(f, FINDING_SECTION, 0, "heap", "See the heap");
    f->next = "Allocate what stays apart from what goes, or before it; or call malloc_trim(0) when much was freed.";
}
