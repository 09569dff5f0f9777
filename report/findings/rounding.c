#include "rounding.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/sum.h"
#include "../../common/wrap.h"
#include "../query/site_rows.h"

#include <stdlib.h>
#include <string.h>

/* glibc's, on x86-64 */
#define CHUNK_LEAST      32u
#define CHUNK_STEP       16u
#define CHUNK_HEADER     8u           /* beside the block; a mapped one has twice that */
#define MAPPED_LEAST     (128u << 10) /* M_MMAP_THRESHOLD, which grows to the largest mapped block that was freed: */
#define MAPPED_MOST      (32u << 20)
#define PAGE             4096u
#define TORCH_STEP       512u
#define LEAST_OVER_BYTES (1 << 20) /* below, it is no matter whatever the peak is */

/* --- at the peak ------------------------------------------------------------------------------------------------- */

struct site_over {
    int64_t count, bytes, over_bytes, tiny_count, tiny_bytes, tiny_over_bytes;
};

struct rounding_watch {
    int64_t end[256]; /* by device: how many events its peak is after */
    int is_glibc, is_torch;
    const struct rules *r;
    struct site_over *sites; /* as r->sites */
    struct map mapped;       /* blocks that glibc mapped: (address, process) -> what they took more, and 1 */
    struct map thresholds;   /* by process */
};

/* The host's small blocks are glibc's where no other allocator is loaded, and none was seen to take memory. */
static int is_glibc(struct rules *r)
{
    char *loaded = db_meta_text(r->db, "mallocs");
    int is_other = (loaded && *loaded) ||
                   db_int(r->db, "SELECT 1 FROM segment WHERE device_id = 0 AND kind IN ('heap', 'map') LIMIT 1", 0);
    free(loaded);
    return !is_other;
}

void *watch_rounding_open(struct rules *r)
{
    struct rounding_watch *w = xcalloc(1, sizeof *w);
    sqlite3_stmt *s = rule_query(r, "SELECT device_id, event_count FROM keyframe WHERE reason = 'peak'");
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        int64_t device_id = sqlite3_column_int64(s, 0);
        if (device_id >= 0 && device_id < 256)
            w->end[device_id] = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    w->r = r;
    w->sites = xcalloc(r->site_count + 1, sizeof *w->sites);
    w->is_torch = db_int(r->db, "SELECT 1 FROM meta WHERE key = 'imported_from'", 0) == 1;
    w->is_glibc = !w->is_torch && is_glibc(r);
    return w;
}

static uint64_t up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static uint64_t threshold(struct rounding_watch *w, unsigned process_id)
{
    uint64_t known = map_get(&w->thresholds, process_id, 0);
    return known ? known : MAPPED_LEAST;
}

/* What a birth takes more than it asks for. */
static uint64_t over_at_birth(struct rounding_watch *w, const struct chunk_event *e)
{
    if (e->device)
        return up(e->size_bytes, TORCH_STEP) - e->size_bytes;
    if (e->size_bytes >= threshold(w, e->process_id)) {
        uint64_t over = up(e->size_bytes + 2ull * CHUNK_HEADER, PAGE) - e->size_bytes;
        *map_slot(&w->mapped, e->address, e->process_id) = over + 1;
        return over;
    }
    uint64_t chunk = up(e->size_bytes + CHUNK_HEADER, CHUNK_STEP);
    return (chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk) - e->size_bytes;
}

static uint64_t over_at_death(struct rounding_watch *w, const struct chunk_event *e)
{
    uint64_t mapped = e->device || e->size_bytes < MAPPED_LEAST ? 0 : map_take(&w->mapped, e->address, e->process_id);
    if (e->device || e->size_bytes < MAPPED_LEAST)
        return over_at_birth(w, e);
    if (!mapped)
        return up(e->size_bytes + CHUNK_HEADER, CHUNK_STEP) - e->size_bytes;
    uint64_t size = e->size_bytes + mapped - 1;
    if (e->op == CHUNK_free && size > threshold(w, e->process_id) && size <= MAPPED_MOST)
        *map_slot(&w->thresholds, e->process_id, 0) = size;
    return mapped - 1;
}

static void add(struct site_over *s, const struct chunk_event *e, int64_t sign, uint64_t over)
{
    s->count += sign;
    wrap_change(&s->bytes, (uint64_t)sign * e->size_bytes);
    wrap_change(&s->over_bytes, (uint64_t)sign * over);
    if (e->size_bytes > ROUNDING_TINY)
        return;
    s->tiny_count += sign;
    wrap_change(&s->tiny_bytes, (uint64_t)sign * e->size_bytes);
    wrap_change(&s->tiny_over_bytes, (uint64_t)sign * over);
}

/* As many of its blocks, on average, end with a process: of most sites all of them. */
static void end(struct site_over *s, const struct chunk_event *e)
{
    int64_t *const sums[] = {&s->bytes, &s->over_bytes, &s->tiny_count, &s->tiny_bytes, &s->tiny_over_bytes};
    int64_t gone = e->address < (uint64_t)s->count ? (int64_t)e->address : s->count;
    for (size_t i = 0; s->count > 0 && i < sizeof sums / sizeof *sums; i++)
        *sums[i] -= (int64_t)((double)*sums[i] * ((double)gone / (double)s->count));
    s->count -= gone;
}

void watch_rounding_see(void *watch, const struct pass_event *event)
{
    struct rounding_watch *w = watch;
    const struct chunk_event *e = event->event;
    int is_birth = chunk_op_is_birth(e->op);
    if (event->number >= w->end[e->device] || !(is_birth || chunk_op_is_loss(e->op)) ||
        !(e->device ? w->is_torch && e->kind == KIND_sub : w->is_glibc && e->kind == KIND_heap))
        return;
    const struct rule_site *site = rule_site_of(w->r, e->site_id);
    if (!site)
        return;
    struct site_over *s = &w->sites[site - w->r->sites];
    if (is_birth)
        add(s, e, 1, over_at_birth(w, e));
    else if (e->op == CHUNK_end)
        end(s, e);
    else
        add(s, e, -1, over_at_death(w, e));
}

void watch_rounding_close(void *watch)
{
    struct rounding_watch *w = watch;
    map_close(&w->mapped);
    map_close(&w->thresholds);
    free(w->sites);
    free(w);
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

static void sum(struct rounding *line, const struct site_over *s, int64_t site_id)
{
    if (s->over_bytes > line->site_bytes) {
        line->site_id = site_id;
        line->site_bytes = s->over_bytes;
    }
    const int64_t from[] = {s->count, s->bytes, s->over_bytes, s->tiny_count, s->tiny_bytes, s->tiny_over_bytes};
    int64_t *const into[] = {&line->count,      &line->bytes,      &line->over_bytes,
                             &line->tiny_count, &line->tiny_bytes, &line->tiny_over_bytes};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        sum_add(into[i], rule_sane(from[i]));
}

static int by_over(const void *a, const void *b)
{
    const struct rounding *x = a, *y = b;
    return (x->over_bytes < y->over_bytes) - (x->over_bytes > y->over_bytes);
}

struct rounding *rounding_lines(struct rules *r, size_t *count)
{
    const struct rounding_watch *w = r->watch[WATCH_rounding];
    struct map number_of = {0};
    struct rounding *all = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t i = 0; w && i < r->site_count; i++) {
        const struct rule_line *line = w->sites[i].over_bytes > 0 ? &r->lines[r->sites[i].line] : NULL;
        if (!line || line->device_id != r->device->device_id)
            continue;
        uint32_t n = map_number_or(&number_of, (uint64_t)(line - r->lines), 0, (uint32_t)*count);
        if (n == *count)
            *ARRAY_ADD(all, *count, capacity) = (struct rounding){.line = line};
        sum(&all[n], &w->sites[i], r->sites[i].site_id);
    }
    map_close(&number_of);
    if (*count)
        qsort(all, *count, sizeof *all, by_over);
    return all;
}

/* Where no event was watched: glibc's steps and headers, of each site's mean block; what it maps counts by the page,
 * which is no matter here. */
static int64_t unseen_over(struct rules *r)
{
    enum { DEVICE, KIND, BYTES, COUNT, COLUMNS };
    static const enum packed_column columns[COLUMNS] = {PACKED_site_device_id, PACKED_site_kind,
                                                        PACKED_site_at_peak_bytes, PACKED_site_at_peak_count};
    struct site_rows rows;
    int64_t over_bytes = 0;
    int rc = site_rows_open(r->db, columns, COLUMNS, &rows, r->err);
    while (rc == 0 && (rc = site_rows_next(&rows, r->err)) == 1) {
        const int64_t bytes = rule_sane(site_rows_value(&rows, BYTES)),
                      count = rule_sane(site_rows_value(&rows, COUNT));
        rc = 0;
        if (count == 0 || bytes / count >= MAPPED_LEAST || site_rows_value(&rows, KIND) != KIND_heap ||
            site_rows_value(&rows, DEVICE) != r->device->device_id)
            continue;
        const int64_t chunk = (int64_t)up((uint64_t)(bytes / count) + CHUNK_HEADER, CHUNK_STEP);
        int64_t chunks;
        if (!__builtin_mul_overflow(chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk, count, &chunks))
            sum_add(&over_bytes, chunks - bytes);
    }
    site_rows_close(&rows);
    return rule_sane(over_bytes);
}

int64_t rounding_over(struct rules *r)
{
    const struct rounding_watch *w = r->watch[WATCH_rounding];
    int64_t over_bytes = 0;
    if (!w)
        return strcmp(r->device->name, "host") == 0 && is_glibc(r) ? unseen_over(r) : 0;
    for (size_t i = 0; i < r->site_count; i++)
        if (r->lines[r->sites[i].line].device_id == r->device->device_id)
            sum_add(&over_bytes, rule_sane(w->sites[i].over_bytes));
    return over_bytes;
}

int rounding_is_tiny(const struct rules *r, const struct rounding *line)
{
    return line->tiny_count >= ROUNDING_TINY_COUNT && line->tiny_over_bytes >= LEAST_OVER_BYTES &&
           line->tiny_over_bytes > r->device->peak_active / 100 * ROUNDING_PERCENT;
}

int rounding_is_python(struct rules *r, const struct rounding *line)
{
    static const char sql[] = "SELECT 1 FROM site_line s JOIN line l USING(line_id) JOIN frame f USING(function_id) "
                              "WHERE s.site_id = ? AND f.language = 'python' LIMIT 1";
    char *python = db_meta_text(r->db, "python_malloc");
    int is_malloc = python && strcmp(python, "malloc") == 0;
    free(python);
    return is_malloc && rule_query_amount(r, sql, &line->line->site_id, 1, 0) == 1;
}
