#include "../../common/db.h"
#include "../query/heap_end.h"
#include "../query/heap_slices.h"
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
    {"mimalloc", NULL},
};

#define SLICE_BYTES 65536u /* mimalloc gives back no less */
#define LINES_NAMED 3      /* of those that keep its slices */

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
    if (allocator >= 0 && allocators[allocator].call)
        finding_say(f, " %s back what is wholly free: not pages beside a live block of their size.",
                    allocators[allocator].call);
    finding_look(f, FINDING_SECTION, 0, "heap", "See the segments");
    f->next = "Allocate what stays apart from what goes, or before it.";
}

static int is_mimalloc(struct rules *r)
{
    int allocator = allocator_of(r);
    return allocator >= 0 && !allocators[allocator].call;
}

static uint32_t next_most(const struct heap *heap, uint64_t *of_line)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < heap->line_count; i++)
        if (of_line[i] > of_line[most])
            most = i;
    return most;
}

/* The lines whose blocks keep most slices, of which each keeps a twentieth or more of what the first one does. */
static void say_keepers(struct rules *r, struct finding *f, const struct heap_end *end, struct heap_slices *slices)
{
    uint64_t first = 0;
    for (int i = 0; i < LINES_NAMED; i++) {
        uint32_t at = next_most(&end->heap, slices->of_line);
        const struct heap_line *line = &end->heap.lines[at];
        if (!slices->of_line[at] || slices->of_line[at] < first / 20)
            return;
        finding_say(f, "%s", i ? "; " : "");
        finding_line(r, f, line->site_id, "end");
        finding_say(f, ": %s live in %s block%s, ", units_bytes(r->a, (int64_t)line->live_bytes),
                    units_count(r->b, (int64_t)line->block_count), line->block_count == 1 ? "" : "s");
        finding_say(f, i ? "in %s" : "in %s of mimalloc's slices of 64 KiB",
                    units_count(r->a, (int64_t)slices->of_line[at]));
        first = first ? first : slices->of_line[at];
        slices->of_line[at] = 0;
    }
}

/* As it was seen to do: segments without a live block go at once, slices without one when others of their segment are
 * freed after a while. How much of either is there is known of all together alone. */
static void say_collected(struct rules *r, struct finding *f, const struct heap_end *end,
                          const struct heap_slices *slices)
{
    int64_t free_bytes = (int64_t)(end->reserved_bytes - slices->kept_count * SLICE_BYTES);
    int64_t most = free_bytes < 0 ? 0 : free_bytes < f->bytes ? free_bytes : f->bytes;
    int64_t least = f->bytes > (int64_t)slices->idle_bytes ? f->bytes - (int64_t)slices->idle_bytes : 0;
    finding_say(f, " mi_collect(true) gives ");
    if (least > 0 && least < most)
        finding_say(f, "%s to ", units_bytes(r->a, least));
    else
        finding_say(f, "up to ");
    finding_say(f, "%s of that back: segments without a live block (%s of %s) at once, ", units_bytes(r->a, most),
                units_count(r->b, (int64_t)slices->empty_count), units_count(r->c, (int64_t)slices->segment_count));
    finding_say(f, "slices without one when more of their segment is freed later; nothing of the other slices.");
}

static void say_mimalloc(struct rules *r, struct finding *f, const struct heap_end *end)
{
    struct heap_slices slices;
    heap_slices_load(&end->heap, &end->blocks, (uint32_t)end->of.process_id, SLICE_BYTES, &slices);
    uint64_t kept = slices.kept_count;
    say_keepers(r, f, end, &slices);
    finding_say(f, ". All live blocks%s lie in %s of these, %s, of %s that its segments reserved at the end; ",
                end->whose, units_count(r->a, (int64_t)kept), units_bytes(r->b, (int64_t)(kept * SLICE_BYTES)),
                units_bytes(r->c, (int64_t)end->reserved_bytes));
    finding_say(f, "%s of pages without a live byte were resident.", units_bytes(r->a, f->bytes));
    say_collected(r, f, end, &slices);
    heap_slices_free(&slices);
    finding_look(f, FINDING_SECTION, 0, "heap", "See the segments");
    f->next = "Allocate what stays apart from what goes, or before it: in an mi_heap_t of its own.";
}

static const struct heap_line *most_pinned(const struct heap *heap)
{
    const struct heap_line *most = NULL;
    for (uint32_t i = 0; i < heap->line_count; i++)
        if (!most ||
            heap->lines[i].pinned_bytes + heap->lines[i].shared_bytes > most->pinned_bytes + most->shared_bytes)
            most = &heap->lines[i];
    return most;
}

/* Few blocks on each page: no call gives anything of that back. */
static void say_spread(struct rules *r, struct finding *f, const struct heap_end *end)
{
    int allocator = end->is_segments ? allocator_of(r) : -1;
    const char *name = allocator >= 0 ? allocators[allocator].name : "the allocator";
    int64_t live = (int64_t)(end->pin_bytes - end->spread_bytes);
    struct buf when = BUF(1 << 16);
    f->title = "Few bytes live on many pages";
    heap_end_when(end, &when);
    finding_say(f, ". Of %s that %s%s reserved %s%s ", units_bytes(r->a, (int64_t)end->reserved_bytes),
                end->is_segments ? name : "glibc's heap", end->is_segments ? "'s segments" : "", buf_text(&when),
                end->released_ns ? "," : "");
    buf_free(&when);
    finding_say(f, "%s of pages had a live byte, for %s that was live: ", units_bytes(r->a, (int64_t)end->pin_bytes),
                units_bytes(r->b, live));
    finding_say(f, "%s lie between live blocks, which no call gives back.", units_bytes(r->a, f->bytes));
    finding_look(f, FINDING_SECTION, 0, "heap", end->is_segments ? "See the segments" : "See the heap");
    f->next = "Allocate what stays apart from what goes, or before it; or move what stays together, as Redis does with "
              "activedefrag.";
}

/* Where all that is not as it was at the end. */
static void say_released(struct finding *f, const struct heap_end *end)
{
    struct buf when = BUF(1 << 16);
    heap_end_when(end, &when);
    if (end->released_ns)
        finding_say(f, " That is %s.", buf_text(&when));
    buf_free(&when);
}

/* Blocks that live long among pages that are free. */
void find_held(struct rules *r)
{
    const struct heap_end *end = r->heap_end;
    const struct heap_line *line = !end || !end->is_there || !end->is_kept ? NULL
                                   : end->is_spread                        ? most_pinned(&end->heap)
                                                                           : most_held(&end->heap, end->is_segments);
    if (!line || strcmp(r->device->name, "host") != 0 || rule_has_unseen(r))
        return;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = (int64_t)(end->is_spread ? end->spread_bytes : end->trim_bytes);
    if (f->bytes < LARGE || end->end_ns - end->since_ns < LARGE_NS)
        finding_lessen(f);
    f->time_ns = end->released_ns ? end->released_ns : end->end_ns;
    if (end->is_segments && !end->is_spread && is_mimalloc(r)) {
        say_mimalloc(r, f, end);
        return;
    }
    finding_line(r, f, line->site_id, end->released_ns ? "peak" : "end");
    finding_say(f, ": %s live in %s block%s, pins %s", units_bytes(r->a, (int64_t)line->live_bytes),
                units_count(r->b, (int64_t)line->block_count), line->block_count == 1 ? "" : "s",
                units_bytes(r->c, (int64_t)line->pinned_bytes));
    if (end->is_spread) {
        say_spread(r, f, end);
        return;
    }
    finding_say(f, ", holds ");
    if (end->is_segments) {
        say_segments(r, f, end, line);
        return;
    }
    finding_say(f, "%s of free pages below the top of glibc's heap%s. ", units_bytes(r->a, (int64_t)line->trim_bytes),
                end->whose);
    /* a trim shortly before its frees has no sample of the RSS behind it */
    finding_say(f, "malloc_trim(0) would %s %s back to the kernel", end->released_ns ? "have given up to" : "give",
                units_bytes(r->b, f->bytes));
    if (end->gone_bytes)
        finding_say(f, ", as %s of the free pages took no memory", units_bytes(r->a, (int64_t)end->gone_bytes));
    finding_say(f, "; %s of pages with a live byte would stay.", units_bytes(r->a, (int64_t)end->pin_bytes));
    if (end->is_before_teardown)
        finding_say(f,
                    " That is as Python began to take itself down; when it had, %s of pages had one, and %s were free.",
                    units_bytes(r->a, (int64_t)end->left_pin_bytes), units_bytes(r->b, (int64_t)end->left_free_bytes));
    say_released(f, end);
    finding_look(f, FINDING_SECTION, 0, "heap", "See the heap");
    f->next = "Allocate what stays apart from what goes, or before it; or call malloc_trim(0) when much was freed.";
}
