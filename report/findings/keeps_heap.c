#include "../../common/hash.h"
#include "../../common/map.h"
#include "../query/callers.h"
#include "../query/ending.h"
#include "../query/wrapper.h"
#include "live_at_end.h"

#define KEEPING_LINES  12  /* so many lines' blocks live at the end: a program that gives nothing back as it ends, */
#define KEEPING_SHARE  2   /* if they are that part of its peak; */
#define KEEPING_STACKS 96  /* or, of code without names, whose lines may be a wrapper's, so many stacks; */
#define KEEPING_MANY   96  /* or so many, none of which has that part of what is live; */
#define KEEPING_MOST   480 /* or so many, whatever one of them has had since half of the run */
#define SETTLED        9   /* tenths of what it has at the end */

static void add_caller(struct map *lines, const struct row *row)
{
    uint64_t function = hash_text(HASH_START, row->function ? row->function : row->module);
    uint64_t place = hash_pair(hash_text(HASH_START, row->file), (uint64_t)(row->function ? row->line : row->offset));
    if (row->function || (row->module && *row->module))
        map_set_number(lines, function, place, 1);
}

/* How many lines' blocks live at the end, as they were recorded, those that went through a function that is called like
 * an allocator by its callers; no more are counted than it takes. */
static uint32_t count_keeping(struct rules *r)
{
    uint32_t lines = 0;
    struct map callers = {0};
    for (uint32_t i = 0; i < r->recorded_count; i++)
        lines += r->recorded[i].device_id == r->device->device_id && r->recorded[i].end_bytes;
    for (uint32_t i = 0; i < r->recorded_count && lines + callers.count < KEEPING_LINES; i++) {
        struct callers of = {0};
        if (r->recorded[i].device_id != r->device->device_id || !r->recorded[i].end_bytes)
            continue;
        int rc =
            wrapper_callers(r->db, r->recorded[i].site_id, r->device->name, CALLERS_OF_END_RECORDED, &of, NULL, r->err);
        lines -= rc == 0 && of.count > 0;
        for (int k = 0; k < of.count && rc == 0; k++)
            add_caller(&callers, &of.item[k].row);
        callers_free(&of);
    }
    lines += callers.count;
    map_close(&callers);
    return lines;
}

/* What it has at the end it had halfway: fonts and brushes that were loaded, and no leak of what goes on. */
static int is_settled(const struct rules *r, uint32_t recorded)
{
    const int64_t *live = &r->recorded_growth[(size_t)recorded * GROWTH_POINTS];
    return live[GROWTH_POINTS / 2] >= r->recorded[recorded].end_bytes / 10 * SETTLED;
}

/* Of very many lines, as large programs without a runtime have, none makes most of it; where nearly nothing is given
 * back, none that went on. */
static int many_keep(const struct rules *r, int64_t bytes)
{
    uint32_t lines = 0;
    int64_t most = 0, going_on = 0;
    for (uint32_t i = 0; i < r->recorded_count; i++) {
        const int64_t end_bytes = r->recorded[i].end_bytes;
        if (r->recorded[i].device_id != r->device->device_id || !end_bytes)
            continue;
        lines++;
        most = end_bytes > most ? end_bytes : most;
        if (end_bytes > going_on && !is_settled(r, i))
            going_on = end_bytes;
    }
    return (lines >= KEEPING_MANY && most < bytes / KEEPING_SHARE) ||
           (lines >= KEEPING_MOST && going_on < bytes / KEEPING_SHARE);
}

/* The same of stacks, where the lines have no names: of a program without symbols all that allocates may be one line.
 */
static int stacks_keep(struct rules *r, int64_t bytes)
{
    struct buf sql = BUF(4096);
    buf_printf(
        &sql,
        "SELECT count(*) >= ?2 AND max(kept) < ?3 FROM (SELECT s.alloc_bytes - s.free_bytes AS kept FROM %s sl "
        "JOIN line l USING(line_id) JOIN site s USING(site_id) WHERE l.function_id IS NULL AND s.device_id = ?1) "
        "WHERE kept > 0",
        rule_recorded_table(r->db));
    const int64_t values[] = {r->device->device_id, KEEPING_STACKS, bytes / KEEPING_SHARE};
    int keep = rule_query_amount(r, buf_text(&sql), values, 3, 0) == 1;
    buf_free(&sql);
    return keep;
}

/* Runtimes and compilers end without giving back what they hold: of many lines, and much of the peak. Where it is not
 * known what was live when, nothing tells that from a leak. Python does take itself down. */
int keeps_its_heap(struct rules *r, int64_t bytes, int64_t peak_bytes, int is_torn)
{
    const struct rule_device *d = r->device;
    return r->growth && !is_torn && ending_of_blocks(r->db, d->device_id) == ENDING_RETURNED &&
           (many_keep(r, bytes) ||
            (bytes >= peak_bytes / KEEPING_SHARE && (count_keeping(r) >= KEEPING_LINES || stacks_keep(r, bytes))));
}
