#include "../../common/array.h"
#include "../../common/sum.h"
#include "../query/named_blocks.h"
#include "rules.h"

#include <stdlib.h>

#define LEAST_REST  4096 /* of a block: allocators of devices round up */
#define LEAST_BYTES (64 << 10)
#define MUCH_BYTES  (1 << 20)
#define PART        4 /* names cover less than a quarter */

struct kept { /* of a line */
    const struct rule_line *line;
    int64_t site_id, site_bytes, block_bytes, rest_bytes, block_count, name_count;
};

struct views {
    struct rules *r;
    struct named_blocks all;
    struct map number_of; /* of kept, by line */
    struct kept *kept;
    uint32_t count, capacity;
};

/* What was said of a block by the time; NULL: all of it. The cover is of a copy, which is sorted. */
static int64_t cover_of(const struct views *v, const struct named_block *b, const int64_t *time_ns, int64_t *count)
{
    struct block_name *names = xcalloc(b->count + 1, sizeof *names);
    size_t said = 0;
    for (size_t i = b->first; i < b->first + b->count; i++)
        if (!time_ns || v->all.names[i].time_ns <= *time_ns)
            names[said++] = v->all.names[i];
    const int64_t covered = named_cover(names, said);
    *count = (int64_t)said;
    free(names);
    return covered;
}

static struct kept *kept_of(struct views *v, const struct rule_line *line)
{
    const uint32_t i = map_number_or(&v->number_of, (uint64_t)(line - v->r->lines), 0, v->count);
    if (i == v->count)
        *ARRAY_ADD(v->kept, v->count, v->capacity) = (struct kept){.line = line};
    return &v->kept[i];
}

static void take_block(struct views *v, const struct named_block *b, const int64_t *time_ns)
{
    int64_t names;
    const struct rule_line *line = rule_line_of(v->r, b->site_id);
    const int64_t covered = cover_of(v, b, time_ns, &names), rest = b->size_bytes - covered;
    if (!names || !line || rest < LEAST_REST || covered >= b->size_bytes / PART)
        return;
    struct kept *k = kept_of(v, line);
    sum_add(&k->block_bytes, b->size_bytes);
    sum_add(&k->rest_bytes, rest);
    k->block_count++;
    k->name_count += names;
    if (rest > k->site_bytes) {
        k->site_bytes = rest;
        k->site_id = b->site_id;
    }
}

/* At the device's peak; else, where is_end, what was live at the end. */
static void take_blocks(struct views *v, int is_end)
{
    const struct rule_device *d = v->r->device;
    for (size_t i = 0; i < v->all.count; i++) {
        const struct named_block *b = &v->all.blocks[i];
        const int is_live = is_end ? b->is_at_end : b->alloc_ns <= d->peak_ns && b->end_ns > d->peak_ns;
        if (b->device_id == d->device_id && is_live)
            take_block(v, b, is_end ? NULL : &d->peak_ns);
    }
}

static int by_rest(const void *a, const void *b)
{
    const struct kept *left = a, *right = b;
    if (left->rest_bytes != right->rest_bytes)
        return left->rest_bytes < right->rest_bytes ? 1 : -1;
    return left->site_id < right->site_id ? -1 : left->site_id > right->site_id;
}

static void say(struct views *v, const struct kept *k, int is_end)
{
    struct rules *r = v->r;
    const struct rule_device *d = r->device;
    struct finding *f = rule_finding(r, d->name);
    f->bytes = k->rest_bytes;
    f->time_ns = is_end ? -1 : d->peak_ns;
    finding_line(r, f, k->site_id, is_end ? "end" : "peak");
    finding_say(f, " had %s in %s block%s at the %s, of which names cover %s: ", units_bytes(r->a, k->block_bytes),
                units_count(r->b, k->block_count), k->block_count == 1 ? "" : "s", is_end ? "end" : "peak",
                units_bytes(r->c, k->block_bytes - k->rest_bytes));
    finding_say(f, "%s of a part keep%s all of it.", k->name_count == 1 ? "a view" : "views",
                k->name_count == 1 ? "s" : "");
    if (!is_end)
        finding_look(f, FINDING_PEAK, 0, NULL, "Look at the peak");
    f->next =
        "If nothing without a name uses the rest, keep a copy of the part (PyTorch: clone()) and let the block go.";
    finding_number(f, "block_bytes", k->block_bytes);
    finding_number(f, "covered_bytes", k->block_bytes - k->rest_bytes);
    finding_number(f, "block_count", k->block_count);
    finding_number(f, "name_count", k->name_count);
    finding_saves_at_most(r, f, is_end ? 0 : k->rest_bytes);
    if (k->rest_bytes < MUCH_BYTES && k->rest_bytes < d->peak_active / 100)
        finding_lessen(f);
}

/* Blocks that names cover little of: a view of a large tensor that somebody kept. What nobody named may be in use all
 * the same, so what would go is a bound. */
void find_views(struct rules *r)
{
    struct views v = {.r = r};
    int is_end = 0;
    if (rule_lines(r) == 0 && named_blocks_load(r->db, &v.all, r->err) == 0)
        take_blocks(&v, is_end);
    if (!v.count)
        take_blocks(&v, is_end = 1);
    if (v.count)
        qsort(v.kept, v.count, sizeof *v.kept, by_rest);
    for (uint32_t i = 0; i < v.count && i < FINDINGS_MOST; i++)
        if (v.kept[i].rest_bytes >= LEAST_BYTES || v.kept[i].rest_bytes >= r->device->peak_active / 100)
            say(&v, &v.kept[i], is_end);
    named_blocks_close(&v.all);
    map_close(&v.number_of);
    free(v.kept);
}
