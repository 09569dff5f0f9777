#include "heap_end.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "heap_idle.h"
#include "heap_released.h"
#include "heap_there.h"
#include "process_label.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES (1 << 20)
#define LARGE_BYTES (16 << 20) /* below, it must be */
#define LEAST_PEAK  8          /* of the peak of what was reserved, */
#define LEAST_PART  4          /* and in any case of what is reserved at the end, */
#define SEGMENTS    (4 << 20)  /* of segments, where allocators hold more to go on with */
#define SPREAD_PART 4          /* of pages with a live byte less than this part is live */
#define SHORT_NS    250000000  /* idle for less is none */
#define EVENTS_MOST 50000000   /* a replay of more takes too long for a sentence */
#define TRIED_MOST  3          /* processes: each may take two replays */

static void drop_blocks(struct heap_end *e)
{
    inherited_close(e->inherited);
    e->inherited = NULL;
    free(e->blocks.slots);
    e->blocks = (struct blocks){0};
}

static void drop_later(struct heap_end *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->blocks.count; i++)
        if ((int64_t)e->blocks.slots[i].time_ns <= e->before_ns)
            e->blocks.slots[kept++] = e->blocks.slots[i];
    e->blocks.count = kept;
}

/* The heap of the one process that was asked for, in the place of those that are no fork's: there are none. */
static void take_forked(struct heap *heap)
{
    struct heap *forked = heap->forked;
    heap->forked = NULL;
    heap_free(heap);
    if (forked)
        *heap = *forked;
    free(forked);
}

/* The process at an instant. INT64_MAX: its end, or where its interpreter began to take it down */
static int load_at(sqlite3 *db, int64_t time_ns, struct heap_end *e)
{
    struct error err;
    struct instant at;
    if (time_ns == INT64_MAX)
        instant_end(&at);
    else
        instant_at(&at, time_ns);
    heap_free(&e->heap);
    if (e->is_forked && !e->inherited)
        drop_blocks(e);
    if (!e->blocks.slots && live_blocks_load(db, &at, "", &e->blocks, e->is_forked ? &e->inherited : NULL, &err) != 0) {
        drop_blocks(e);
        return 0;
    }
    if (e->before_ns)
        drop_later(e);
    int rc = heap_load(db, &at, &e->blocks, e->inherited, e->of.process_id, &e->heap, &err);
    if (rc == 0 && e->is_forked)
        take_forked(&e->heap);
    return rc == 0;
}

static uint64_t peak_reserved(sqlite3 *db)
{
    return (uint64_t)db_int(db, "SELECT peak_reserved_bytes FROM total WHERE device_id = 0 AND kind = 'heap'", 0);
}

static uint64_t less(uint64_t bytes, uint64_t gone)
{
    return bytes > gone ? bytes - gone : 0;
}

/* Whether so much of glibc's heaps is free pages that live blocks keep there, and that take memory. */
static int holds_much(sqlite3 *db, struct heap_end *e)
{
    const struct heap *h = &e->heap;
    e->reserved_bytes = e->pin_bytes = 0;
    for (size_t i = 0; i < h->range_count; i++) {
        const struct heap_range *r = &h->ranges[i];
        if (r->kind > HEAP_OWN)
            continue;
        e->reserved_bytes += r->page_bytes;
        e->pin_bytes += r->pinned_bytes + r->shared_bytes;
    }
    e->trim_bytes = less(h->trim_bytes + h->main_top_bytes, e->gone_bytes);
    uint64_t peak = peak_reserved(db), held = h->trim_bytes < e->trim_bytes ? h->trim_bytes : e->trim_bytes;
    return held >= LEAST_BYTES && (held >= LARGE_BYTES || held >= peak / LEAST_PEAK) &&
           held >= less(e->reserved_bytes, e->gone_bytes) / LEAST_PART;
}

/* Free pages of its segments; sums up the others. */
static uint64_t idle_segments(struct heap_end *e)
{
    const struct heap *h = &e->heap;
    uint64_t idle = 0;
    e->reserved_bytes = e->pin_bytes = 0;
    for (size_t i = 0; i < h->range_count; i++) {
        const struct heap_range *r = &h->ranges[i];
        if (r->kind != HEAP_SEGMENT)
            continue;
        e->reserved_bytes += r->page_bytes;
        e->pin_bytes += r->pinned_bytes + r->shared_bytes;
        idle += r->held_bytes + r->top_bytes;
    }
    return idle;
}

/* Whether so much of its pages is between few live blocks: no page is free, and nothing gives them back. */
static int is_spread(sqlite3 *db, struct heap_end *e)
{
    uint64_t live = 0;
    uint64_t peak = peak_reserved(db);
    if (e->is_segments)
        idle_segments(e);
    else
        holds_much(db, e);
    for (size_t i = 0; i < e->heap.range_count; i++) {
        const struct heap_range *r = &e->heap.ranges[i];
        live += (e->is_segments ? r->kind == HEAP_SEGMENT : r->kind <= HEAP_OWN) ? r->live_bytes : 0;
    }
    e->spread_bytes = e->pin_bytes > live ? e->pin_bytes - live : 0;
    return e->spread_bytes >= SEGMENTS && live < e->pin_bytes / SPREAD_PART &&
           (e->spread_bytes >= LARGE_BYTES || e->spread_bytes >= peak / LEAST_PEAK);
}

/* What is reserved and not live may be parts of pages, whose blocks a program frees before it ends: the pages
 * themselves were free for that long. */
static int held_at(sqlite3 *db, const struct heap_end *e, int64_t time_ns)
{
    struct heap_end before = {.of = e->of, .is_forked = e->is_forked, .is_segments = e->is_segments};
    int held = time_ns >= 0 && load_at(db, time_ns, &before) &&
               (e->is_spread     ? is_spread(db, &before)
                : e->is_segments ? idle_segments(&before) >= e->trim_bytes / 2
                                 : holds_much(db, &before));
    heap_end_free(&before);
    return held;
}

static int held_before(sqlite3 *db, const struct heap_end *e)
{
    int64_t work_ns = heap_idle_work(db, e);
    return (heap_idle_is_long(e) && held_at(db, e, heap_idle_long_before(e))) ||
           (e->since_ns <= work_ns && held_at(db, e, work_ns));
}

static int is_large(sqlite3 *db, struct heap_end *e)
{
    e->gone_bytes = 0;
    if (!holds_much(db, e))
        return 0;
    e->gone_bytes = heap_there_gone(db, e);
    if (!holds_much(db, e))
        return 0;
    heap_idle_since(db, e, (int64_t)e->trim_bytes); /* that so much is there is known by now */
    return !e->is_kept || (heap_idle_goes_on(db, e) && held_before(db, e));
}

static void trim_segments(sqlite3 *db, struct heap_end *e)
{
    uint64_t idle = idle_segments(e);
    int64_t there = heap_idle_free_there(db, e, (int64_t)e->pin_bytes);
    e->trim_bytes = there < 0 ? 0 : idle < (uint64_t)there ? idle : (uint64_t)there;
}

static int is_large_segments(sqlite3 *db, struct heap_end *e)
{
    trim_segments(db, e);
    uint64_t peak = peak_reserved(db);
    return e->trim_bytes >= SEGMENTS && (e->trim_bytes >= LARGE_BYTES || e->trim_bytes >= peak / LEAST_PEAK) &&
           e->trim_bytes >= (e->trim_bytes + e->pin_bytes) / LEAST_PART &&
           heap_idle_since(db, e, (int64_t)e->trim_bytes) && heap_idle_goes_on(db, e) && held_before(db, e);
}

static int is_large_spread(sqlite3 *db, struct heap_end *e)
{
    if (e->is_segments)
        trim_segments(db, e);
    return is_spread(db, e) && heap_idle_since(db, e, (int64_t)e->spread_bytes) && heap_idle_goes_on(db, e) &&
           held_before(db, e);
}

/* What glibc's heaps, or segments, had more than live blocks. */
static int64_t idle_of(const struct heap_gap *g, int is_segments)
{
    return (is_segments ? g->segment_bytes : g->glibc_bytes) - g->live_bytes;
}

/* Whether half at most of what it has is live, by the samples: a quarter where pages are spread, of which there may be
 * more than the last sample saw. What another allocator has may all be live. */
static int may_be_spread(const struct heap_end *e)
{
    const struct heap_gap *g = &e->of;
    int64_t own = e->is_segments ? g->segment_bytes : g->glibc_bytes;
    int64_t other = e->is_segments ? g->glibc_bytes : g->segment_bytes;
    return g->live_bytes - other <= own / 2;
}

/* Whether it may be, by the samples: less than is_large asks. */
static int may_be(sqlite3 *db, struct heap_end *e)
{
    const struct heap_gap *g = &e->of;
    int64_t idle = idle_of(g, e->is_segments);
    if (e->is_spread)
        return idle >= SEGMENTS && may_be_spread(e) && heap_idle_since(db, e, SEGMENTS) && heap_idle_goes_on(db, e);
    if (e->is_segments)
        return idle >= SEGMENTS && heap_idle_since(db, e, SEGMENTS) && heap_idle_goes_on(db, e) &&
               heap_idle_free_there(db, e, g->live_bytes) >= SEGMENTS;
    return idle >= LEAST_BYTES && idle >= g->glibc_bytes / LEAST_PART &&
           heap_idle_since(db, e, g->glibc_bytes / LEAST_PART) && (!e->is_kept || heap_idle_goes_on(db, e));
}

static int by_glibc(const void *x, const void *y)
{
    int64_t a = idle_of(x, 0), b = idle_of(y, 0);
    return a != b ? (a > b ? -1 : 1) : 0;
}

static int by_segments(const void *x, const void *y)
{
    int64_t a = idle_of(x, 1), b = idle_of(y, 1);
    return a != b ? (a > b ? -1 : 1) : 0;
}

static void name_process(sqlite3 *db, struct heap_end *e)
{
    struct buf name = BUF(1 << 16);
    sqlite3_stmt *labels = e->is_one_of ? process_label_query(db) : NULL;
    int64_t pid = -1;
    if (labels) {
        buf_puts(&name, " of ");
        pid = process_label(labels, e->of.process_id, &name);
    }
    if (pid >= 0)
        buf_printf(&name, ", pid %lld", (long long)pid);
    else
        buf_reset(&name);
    e->whose = xstrdup(buf_text(&name));
    sqlite3_finalize(labels);
    buf_free(&name);
}

/* Of those with most first, the first one that is. */
static void find_process(sqlite3 *db, struct heap_end *e, struct heap_gap *gaps, size_t count)
{
    int is_segments = e->is_segments;
    if (count)
        qsort(gaps, count, sizeof *gaps, is_segments ? by_segments : by_glibc);
    int tried = 0;
    for (size_t i = 0; i < count && tried < TRIED_MOST && !e->is_there; i++) {
        if (!is_segments && gaps[i].is_forked != e->is_forked)
            continue;
        tried++;
        e->of = gaps[i];
        e->is_there = may_be(db, e) && load_at(db, INT64_MAX, e) &&
                      (e->is_spread  ? is_large_spread(db, e)
                       : is_segments ? is_large_segments(db, e)
                                     : is_large(db, e));
    }
}

/* One that kept it first, one that is no fork before one that is, as that has its parent's heap; then one whose pages
 * are hardly used. Where none did, glibc's at the end alone; other allocators give back by themselves. */
static int find_kept(sqlite3 *db, struct heap_end *e, struct heap_gap *gaps, size_t count)
{
    static const struct {
        int is_segments, is_kept, is_forked, is_spread;
    } order[] = {{0, 1, 0, 0}, {1, 1, 0, 0}, {0, 1, 1, 0}, {1, 1, 0, 1}, {0, 1, 0, 1}, {0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof order / sizeof *order && !e->is_there; i++) {
        e->is_segments = order[i].is_segments;
        e->is_kept = order[i].is_kept;
        e->is_forked = order[i].is_forked;
        e->is_spread = order[i].is_spread;
        find_process(db, e, gaps, count);
    }
    return e->is_there;
}

/* The same before it freed what it had as it ended: that was the end of its work. One replay more, and those of
 * held_before where it is. */
static int find_released(sqlite3 *db, struct heap_end *e, const struct heap_gap *of)
{
    int64_t released_ns = of ? heap_released(db, of) : -1;
    if (released_ns <= 0)
        return 0;
    e->of = *of;
    e->of.end_ns = e->released_ns = released_ns;
    e->is_kept = 1;
    e->is_forked = of->is_forked;
    e->of.glibc_bytes = heap_idle_glibc(db, of->process_id, released_ns);
    e->of.live_bytes = 0; /* it is not known */
    if (!may_be(db, e) || !load_at(db, released_ns, e))
        return 0;
    e->is_there = is_large(db, e);
    e->is_spread = !e->is_there;
    e->is_there = e->is_there || is_large_spread(db, e);
    return e->is_there;
}

static int find_any_released(sqlite3 *db, struct heap_end *e, const struct heap_gap *gaps, size_t count)
{
    return heap_idle_for(db, LEAST_BYTES / 2, SHORT_NS) &&
           (find_released(db, e, heap_released_by(db, 0, gaps, count)) ||
            find_released(db, e, heap_released_by(db, 1, gaps, count)));
}

static int is_much(sqlite3 *db, struct heap_end *e)
{
    return e->is_spread ? is_spread(db, e) : holds_much(db, e);
}

static struct blocks copy_of(const struct blocks *blocks)
{
    struct blocks copy = {.slots = xcalloc(blocks->count + 1, sizeof *copy.slots), .count = blocks->count};
    if (blocks->count)
        memcpy(copy.slots, blocks->slots, blocks->count * sizeof *copy.slots);
    return copy;
}

/* Blocks that came as it ended, such as a buffer for its output, did not keep it for long. Where the first line is of
 * those, who did is found without them, if others do. 0: by them alone. */
static int leave_out_late(sqlite3 *db, struct heap_end *e)
{
    struct heap_end older = *e;
    int64_t before_ns = heap_idle_is_long(e) ? heap_idle_long_before(e) : heap_idle_work(db, e);
    older.heap = (struct heap){0};
    older.blocks = e->is_forked ? (struct blocks){0} : copy_of(&e->blocks); /* a fork's are of several */
    older.inherited = NULL;
    older.before_ns = before_ns > 0 ? before_ns : INT64_MAX;
    if (!load_at(db, e->released_ns ? e->released_ns : INT64_MAX, &older)) {
        heap_end_free(&older);
        return 1;
    }
    int is_there = is_much(db, &older), is_same = older.heap.line_count && e->heap.line_count &&
                                                  older.heap.lines[0].site_id == e->heap.lines[0].site_id;
    if (is_there && !is_same) {
        heap_free(&e->heap);
        drop_blocks(e);
        *e = older;
        return 1;
    }
    heap_end_free(&older);
    return is_there || is_same;
}

/* What was left of it when its interpreter had taken itself down. */
static void load_left(sqlite3 *db, struct heap_end *e)
{
    struct instant at;
    struct error err;
    struct heap heap = {0};
    struct blocks blocks = {0};
    instant_at(&at, INT64_MAX);
    e->is_before_teardown = db_int_of(db, "SELECT 1 FROM teardown WHERE process_id = ?1", &e->of.process_id, 1, 0) == 1;
    if (e->is_before_teardown && live_blocks_load(db, &at, "", &blocks, NULL, &err) == 0 &&
        heap_load(db, &at, &blocks, NULL, e->of.process_id, &heap, &err) == 0)
        for (size_t i = 0; i < heap.range_count; i++) {
            const struct heap_range *r = &heap.ranges[i];
            e->left_pin_bytes += r->kind <= HEAP_OWN ? r->pinned_bytes + r->shared_bytes : 0;
            e->left_free_bytes += r->kind <= HEAP_THREAD ? r->held_bytes + r->top_bytes : 0;
        }
    heap_free(&heap);
    free(blocks.slots);
}

void heap_end_when(const struct heap_end *end, struct buf *text)
{
    static const char of[] = " of ";
    const char *name = strncmp(end->whose, of, sizeof of - 1) == 0 ? end->whose + sizeof of - 1 : NULL;
    char t[UNITS_TEXT];
    if (end->released_ns)
        buf_printf(text, "at %s, before %s%s freed what it had as it ended", units_ns(t, end->released_ns),
                   name ? name : "it", name ? "," : "");
    else if (!end->is_before_teardown)
        buf_printf(text, "at the end%s", end->whose);
    else if (name)
        buf_printf(text, "as Python began to take itself down (%s)", name);
    else
        buf_puts(text, "as Python began to take itself down");
}

void heap_end_when_short(const struct heap_end *end, struct buf *text)
{
    char t[UNITS_TEXT];
    if (end->released_ns)
        buf_printf(text, "at %s", units_ns(t, end->released_ns));
    else
        buf_puts(text, "at end");
}

void heap_end_load(sqlite3 *db, struct heap_end *end)
{
    size_t count = 0;
    *end = (struct heap_end){0};
    if (db_meta_int(db, "event_count", 0) > EVENTS_MOST)
        return;
    struct heap_gap *gaps = heap_gaps_at_end(db, &count);
    end->is_one_of = db_int(db, "SELECT count(DISTINCT first_id) FROM v_image", 0) > 1;
    struct heap_end released = {.is_one_of = end->is_one_of};
    int is_kept = find_kept(db, end, gaps, count) && end->is_kept;
    if (is_kept && !end->is_segments)
        is_kept = end->is_kept = leave_out_late(db, end);
    if (!is_kept && find_any_released(db, &released, gaps, count)) {
        leave_out_late(db, &released);
        heap_end_free(end);
        *end = released;
    } else {
        heap_end_free(&released);
    }
    if (end->is_there)
        name_process(db, end);
    else
        heap_end_free(end);
    if (end->is_there && !end->is_forked)
        load_left(db, end);
    free(gaps);
}

void heap_end_free(struct heap_end *end)
{
    heap_free(&end->heap);
    drop_blocks(end);
    free(end->whose);
    *end = (struct heap_end){0};
}
