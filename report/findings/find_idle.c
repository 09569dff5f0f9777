/*
 * Blocks of GPUs that nothing was copied to or from for a part of their life. Kernels are not seen, so all of it is a
 * bound. Of a line what was idle at the device's peak is known from the tables; its blocks one by one where all of
 * them are among the largest of the run and all events are there: then the peak is replayed.
 */
#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

enum idle_part { IDLE_EARLY, IDLE_LATE };

#define IDLE_PERCENT 5 /* of the peak: less of a line is not said */

struct idle {
    const struct rule_line *line;
    int64_t site_id, site_bytes;               /* of these the one that has most idle at the peak */
    int64_t peak_bytes, peak_count;            /* idle at the peak */
    int64_t block_count, idle_ns, lifetime_ns; /* of its blocks that were copied, all together */
};

/* --- lines ------------------------------------------------------------------------------------------------------- */

static void add_site(sqlite3_stmt *s, struct idle *idle)
{
    int64_t *const into[] = {&idle->peak_bytes, &idle->peak_count, &idle->block_count, &idle->idle_ns,
                             &idle->lifetime_ns};
    for (int i = 0; i < 5; i++)
        sum_add(into[i], rule_amount(s, i + 1));
    if (rule_amount(s, 1) > idle->site_bytes) {
        idle->site_id = sqlite3_column_int64(s, 0);
        idle->site_bytes = rule_amount(s, 1);
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct idle *x = a, *y = b;
    return (x->peak_bytes < y->peak_bytes) - (x->peak_bytes > y->peak_bytes);
}

/* The lines of r->device that have most of that, worth saying, which the caller frees: *kept of them. */
static struct idle *find_lines(struct rules *r, enum idle_part part, uint32_t *kept)
{
    static const char *const sql[] = {
        "SELECT site_id, early_peak_bytes, early_peak_count, block_count, before_ns, lifetime_ns FROM site_touch",
        "SELECT site_id, late_peak_bytes, late_peak_count, block_count, after_ns, lifetime_ns FROM site_touch"};
    struct map number_of = {0};
    struct idle *all = NULL;
    uint32_t count = 0, capacity = 0;
    sqlite3_stmt *s = rule_lines(r) == 0 ? rule_query(r, sql[part]) : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const struct rule_line *line = rule_line_of(r, sqlite3_column_int64(s, 0));
        if (!line || line->device_id != r->device->device_id)
            continue;
        uint32_t i = map_number_or(&number_of, (uint64_t)(line - r->lines), 0, count);
        if (i == count)
            *ARRAY_ADD(all, count, capacity) = (struct idle){.line = line};
        add_site(s, &all[i]);
    }
    sqlite3_finalize(s);
    map_close(&number_of);
    if (count)
        qsort(all, count, sizeof *all, by_bytes);
    *kept = 0;
    while (*kept < FINDINGS_MOST && *kept < count && all[*kept].block_count > 0 &&
           all[*kept].peak_bytes > r->device->peak_active / 100 * IDLE_PERCENT)
        ++*kept;
    return all;
}

/* --- blocks, one by one ------------------------------------------------------------------------------------------ */

struct idle_block {
    uint64_t address;
    int64_t process_id, alloc_ns, first_ns, last_ns, size_bytes;
    int is_early, is_late; /* the first copy wrote; the last one read */
    /* numbers of events: of its birth (-1: not seen), the last one before the first copy, the first one behind the last
     * copy, of its end */
    int64_t birth, first, last, end;
    uint32_t site_id;
};

struct idle_watch {
    struct idle_block *blocks;
    uint32_t count, capacity;
    uint32_t *by_first, *by_last, next_first, next_last;
    struct map of_birth; /* (address and process, alloc_ns) -> number */
    struct map living;   /* birth -> number */
};

static uint64_t place_of(uint64_t address, int64_t process_id)
{
    return address ^ (uint64_t)process_id << 48;
}

static int first_before(const void *a, const void *b, void *blocks)
{
    const struct idle_block *all = blocks;
    int64_t x = all[*(const uint32_t *)a].first_ns, y = all[*(const uint32_t *)b].first_ns;
    return (x > y) - (x < y);
}

static int last_before(const void *a, const void *b, void *blocks)
{
    const struct idle_block *all = blocks;
    int64_t x = all[*(const uint32_t *)a].last_ns, y = all[*(const uint32_t *)b].last_ns;
    return (x > y) - (x < y);
}

static uint32_t *order(const struct idle_watch *w, int (*before)(const void *a, const void *b, void *blocks))
{
    uint32_t *numbers = xcalloc(w->count, sizeof *numbers);
    for (uint32_t i = 0; i < w->count; i++)
        numbers[i] = i;
    qsort_r(numbers, w->count, sizeof *numbers, before, w->blocks);
    return numbers;
}

void *watch_idle_open(struct rules *r)
{
    struct idle_watch *w = xcalloc(1, sizeof *w);
    sqlite3_stmt *s = rule_query(r, "SELECT address, process_id, alloc_ns, first_ns, last_ns, size_bytes, first_what = "
                                    "'write', last_what = 'read' FROM block_touch JOIN block USING(block_id)");
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        struct idle_block b = {.address = (uint64_t)sqlite3_column_int64(s, 0),
                               .process_id = sqlite3_column_int64(s, 1),
                               .alloc_ns = sqlite3_column_int64(s, 2),
                               .first_ns = sqlite3_column_int64(s, 3),
                               .last_ns = sqlite3_column_int64(s, 4),
                               .size_bytes = rule_amount(s, 5),
                               .is_early = sqlite3_column_int(s, 6),
                               .is_late = sqlite3_column_int(s, 7),
                               .birth = -1,
                               .first = PASS_END,
                               .last = PASS_END,
                               .end = PASS_END};
        map_set_number(&w->of_birth, place_of(b.address, b.process_id), (uint64_t)b.alloc_ns, w->count);
        *ARRAY_ADD(w->blocks, w->count, w->capacity) = b;
    }
    sqlite3_finalize(s);
    if (!w->count) {
        watch_idle_close(w);
        return NULL;
    }
    w->by_first = order(w, first_before);
    w->by_last = order(w, last_before);
    return w;
}

/* Copies are no events: what is active at one is what was left by the last event before it. */
static void pass_copies(struct idle_watch *w, int64_t time_ns, int64_t number)
{
    while (w->next_first < w->count && w->blocks[w->by_first[w->next_first]].first_ns < time_ns)
        w->blocks[w->by_first[w->next_first++]].first = number - 1;
    while (w->next_last < w->count && w->blocks[w->by_last[w->next_last]].last_ns < time_ns)
        w->blocks[w->by_last[w->next_last++]].last = number;
}

void watch_idle_see(void *watch, const struct pass_event *e)
{
    struct idle_watch *w = watch;
    const struct chunk_event *event = e->event;
    pass_copies(w, (int64_t)event->time_ns, e->number);
    if (!event->device)
        return;
    if (chunk_op_is_birth(event->op)) {
        uint32_t i = map_number(&w->of_birth, place_of(event->address, event->process_id), event->time_ns);
        if (i == MAP_NONE || w->blocks[i].birth >= 0)
            return;
        w->blocks[i].birth = e->number;
        w->blocks[i].site_id = event->site_id;
        map_set_number(&w->living, (uint64_t)e->number, 0, i);
    } else if (e->block) {
        uint32_t i = map_number(&w->living, e->block->time_ns, 0);
        if (i != MAP_NONE)
            w->blocks[i].end = e->number;
    }
}

void watch_idle_close(void *watch)
{
    struct idle_watch *w = watch;
    map_close(&w->of_birth);
    map_close(&w->living);
    free(w->by_first);
    free(w->by_last);
    free(w->blocks);
    free(w);
}

/* Those that ended with their process. */
static void find_ends(const struct rules *r, struct idle_watch *w)
{
    for (size_t i = 0; i < r->pass->gone_count; i++) {
        uint32_t n = map_number(&w->living, r->pass->gone[i].block.time_ns, 0);
        if (n != MAP_NONE)
            w->blocks[n].end = r->pass->gone[i].end_event;
    }
}

static void find_savings(struct rules *r, struct finding *f, enum idle_part part, const struct idle *idle)
{
    struct idle_watch *w = r->watch[WATCH_idle];
    struct saving saving = {.changes = NULL};
    int64_t known = 0;
    if (w && r->pass)
        find_ends(r, w);
    for (uint32_t i = 0; w && r->pass && i < w->count; i++) {
        const struct idle_block *b = &w->blocks[i];
        if (b->birth < 0 || rule_line_of(r, b->site_id) != idle->line)
            continue;
        known++;
        if (part == IDLE_EARLY && b->is_early)
            saving_add(&saving, b->birth, b->first < b->end ? b->first : b->end, b->size_bytes);
        else if (part == IDLE_LATE && b->is_late)
            saving_add(&saving, b->last > b->birth ? b->last : b->birth, b->end, b->size_bytes);
    }
    if (known == idle->block_count && r->pass)
        finding_saves(r, f, &saving, FINDING_AT_MOST);
    else {
        saving_close(&saving);
        finding_saves_at_most(r, f, idle->peak_bytes);
    }
}

/* --- what is said ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *at_peak, *so_long[2], *next;
} texts[] = {
    [IDLE_EARLY] = {"nothing had been copied to yet",
                    {"the first copy came", "after the allocation of a block"},
                    "Allocate right before the first copy, unless a kernel uses the memory before that: kernels are "
                    "not seen."},
    [IDLE_LATE] = {"had been copied from for the last time",
                   {"a block was kept for", "after its last copy"},
                   "Free right after that copy, unless a kernel uses the memory after it: kernels are not seen."},
};

static void say(struct rules *r, enum idle_part part, const struct idle *idle)
{
    const int64_t idle_ns = idle->idle_ns / idle->block_count;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = idle->peak_bytes;
    f->time_ns = r->device->peak_ns;
    finding_line(r, f, idle->line->site_id, "peak");
    finding_caller(r, f, idle->site_id);
    finding_say(f, " had %s in %s of its blocks at the peak that %s. ", units_bytes(r->a, idle->peak_bytes),
                units_count(r->b, idle->peak_count), texts[part].at_peak);
    finding_say(f, "On average %s %s %s, %d %% of its life.", texts[part].so_long[0], units_ns(r->a, idle_ns),
                texts[part].so_long[1], rule_percent(idle->idle_ns, idle->lifetime_ns));
    finding_look(f, FINDING_PEAK, 0, NULL, "Look at the peak");
    f->next = texts[part].next;
    finding_number(f, "idle_peak_bytes", idle->peak_bytes);
    finding_number(f, "idle_peak_count", idle->peak_count);
    finding_number(f, "idle_ns", idle_ns);
    find_savings(r, f, part, idle);
}

static void find(struct rules *r, enum idle_part part)
{
    uint32_t count;
    struct idle *idle = find_lines(r, part, &count);
    for (uint32_t i = 0; i < count; i++)
        say(r, part, &idle[i]);
    free(idle);
}

void find_early(struct rules *r)
{
    find(r, IDLE_EARLY);
}

void find_late(struct rules *r)
{
    find(r, IDLE_LATE);
}
