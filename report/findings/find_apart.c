#include "../../common/array.h"
#include "../../common/sum.h"
#include "../query/named_blocks.h"
#include "../query/short_name.h"
#include "rules.h"

#include <stdlib.h>

#define LEAST_BYTES (64 << 10)
#define MUCH_BYTES  (1 << 20)
#define BLOCKS_MOST 64 /* of a name: the collector keeps fewer (account/names.h) */

struct place { /* of a name that shared a block: there, and where it is later */
    struct block_name was, is;
};

struct apart { /* of a line that made the last of the blocks */
    const struct rule_line *line;
    int64_t site_id, lost_bytes, at_peak_bytes, most_bytes;
    int64_t name_count, block_count, time_ns; /* of the group that lost most; */
    const char *names[2];                     /* and two of its names, which are in two blocks */
};

struct sharing {
    struct rules *r;
    struct named_blocks all;
    size_t *by_text; /* names, by text, then by when they were said */
    size_t *first;   /* in by_text, of each text; the last is their number */
    struct place *places;
    size_t place_count, place_capacity;
    struct map number_of; /* of found, by line */
    struct apart *found;
    uint32_t count, capacity;
};

static int by_said(const void *a, const void *b, void *names)
{
    const struct block_name *left = (const struct block_name *)names + *(const size_t *)a,
                            *right = (const struct block_name *)names + *(const size_t *)b;
    if (left->text != right->text)
        return left->text < right->text ? -1 : 1;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void sort_names(struct sharing *s)
{
    const size_t count = s->all.name_count;
    s->by_text = xcalloc(count + 1, sizeof *s->by_text);
    s->first = xcalloc(s->all.text_count + 2ul, sizeof *s->first);
    for (size_t i = 0; i < count; i++)
        s->by_text[i] = i;
    if (count)
        qsort_r(s->by_text, count, sizeof *s->by_text, by_said, s->all.names);
    for (size_t i = count; i-- > 0;)
        s->first[s->all.names[s->by_text[i]].text] = i;
    s->first[s->all.text_count + 1] = count;
}

/* Where a name of a block was said next, of another one that was made while the first was there to be copied. */
static const struct block_name *next_place(const struct sharing *s, const struct block_name *was)
{
    const struct named_block *from = &s->all.blocks[was->block];
    const size_t first = s->first[was->text], end = s->first[was->text + 1];
    for (size_t i = first; i < end && i < first + BLOCKS_MOST; i++) {
        const struct block_name *n = &s->all.names[s->by_text[i]];
        const struct named_block *to = &s->all.blocks[n->block];
        if (n->block != was->block && n->time_ns > was->time_ns && to->alloc_ns > from->alloc_ns &&
            to->alloc_ns <= from->end_ns)
            return n;
    }
    return NULL;
}

/* Where the names of a block are once the last of them has moved. 0: none has. */
static int64_t find_places(struct sharing *s, const struct named_block *b)
{
    int64_t moved_ns = 0;
    uint32_t last_text = 0;
    s->place_count = 0;
    for (size_t i = b->first; i < b->first + b->count; i++) {
        const struct block_name *was = &s->all.names[i], *next = next_place(s, was);
        if (was->text == last_text)
            continue; /* another view by the same name */
        last_text = was->text;
        *ARRAY_ADD(s->places, s->place_count, s->place_capacity) = (struct place){*was, next ? *next : *was};
        if (next && next->time_ns > moved_ns)
            moved_ns = next->time_ns;
    }
    size_t live = 0;
    for (size_t i = 0; i < s->place_count; i++)
        if (s->all.blocks[s->places[i].is.block].end_ns > moved_ns)
            s->places[live++] = s->places[i];
    s->place_count = live;
    return moved_ns;
}

static int by_block(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return left->is.block < right->is.block ? -1 : left->is.block > right->is.block;
}

/* Of places by block: what they cover now, in how many blocks; *last: a place in the block that was made last. */
static int64_t cover_now(const struct sharing *s, size_t *block_count, size_t *last)
{
    struct block_name *names = xcalloc(s->place_count + 1, sizeof *names);
    int64_t covered = 0;
    *block_count = *last = 0;
    for (size_t i = 0, count = 0; i < s->place_count; i++) {
        const size_t block = s->places[i].is.block;
        names[count++] = s->places[i].is;
        if (i + 1 < s->place_count && s->places[i + 1].is.block == block)
            continue;
        sum_add(&covered, named_cover(names, count));
        count = 0;
        ++*block_count;
        if (s->all.blocks[block].alloc_ns > s->all.blocks[s->places[*last].is.block].alloc_ns)
            *last = i;
    }
    free(names);
    return covered;
}

static int64_t cover_before(const struct sharing *s)
{
    struct block_name *names = xcalloc(s->place_count + 1, sizeof *names);
    for (size_t i = 0; i < s->place_count; i++)
        names[i] = s->places[i].was;
    const int64_t covered = named_cover(names, s->place_count);
    free(names);
    return covered;
}

/* All of them are there at the device's peak. */
static int is_at_peak(const struct sharing *s)
{
    const int64_t peak_ns = s->r->device->peak_ns;
    for (size_t i = 0; i < s->place_count; i++) {
        const struct named_block *b = &s->all.blocks[s->places[i].is.block];
        if (b->alloc_ns > peak_ns || b->end_ns <= peak_ns)
            return 0;
    }
    return 1;
}

static struct apart *apart_of(struct sharing *s, const struct rule_line *line)
{
    const uint32_t i = map_number_or(&s->number_of, (uint64_t)(line - s->r->lines), 0, s->count);
    if (i == s->count)
        *ARRAY_ADD(s->found, s->count, s->capacity) = (struct apart){.line = line};
    return &s->found[i];
}

static void take_block(struct sharing *s, const struct named_block *b)
{
    size_t block_count, last;
    const int64_t moved_ns = b->count > 1 ? find_places(s, b) : 0;
    if (!moved_ns || s->place_count < 2)
        return;
    qsort(s->places, s->place_count, sizeof *s->places, by_block);
    const int64_t lost = cover_now(s, &block_count, &last) - cover_before(s);
    const struct named_block *copy = &s->all.blocks[s->places[last].is.block];
    const struct rule_line *line = rule_line_of(s->r, copy->site_id);
    if (block_count < 2 || lost <= 0 || !line || copy->device_id != s->r->device->device_id)
        return;
    struct apart *a = apart_of(s, line);
    sum_add(&a->lost_bytes, lost);
    sum_add(&a->at_peak_bytes, is_at_peak(s) ? lost : 0);
    if (lost > a->most_bytes) {
        a->most_bytes = lost;
        a->site_id = copy->site_id;
        a->name_count = (int64_t)s->place_count;
        a->block_count = (int64_t)block_count;
        a->time_ns = copy->alloc_ns;
        a->names[0] = s->places[last ? 0 : s->place_count - 1].is.name;
        a->names[1] = s->places[last].is.name;
    }
}

static int by_lost(const void *a, const void *b)
{
    const struct apart *left = a, *right = b;
    if (left->lost_bytes != right->lost_bytes)
        return left->lost_bytes < right->lost_bytes ? 1 : -1;
    return left->site_id < right->site_id ? -1 : left->site_id > right->site_id;
}

static void say(struct rules *r, const struct apart *a)
{
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = a->lost_bytes;
    f->time_ns = a->time_ns;
    for (int i = 0; i < 2; i++) {
        char *name = short_name_cut(a->names[i]);
        finding_say(f, "%s%s", i ? " and " : "", name);
        free(name);
    }
    if (a->name_count > 2)
        finding_say(f, " (and %s more)", units_count(r->a, a->name_count - 2));
    finding_say(f, " shared a block; from %s on they are in %s blocks of their own, made by ",
                units_ns(r->a, a->time_ns), units_count(r->b, a->block_count));
    finding_line(r, f, a->site_id, "peak");
    finding_say(f, ", which takes %s more%s.", units_bytes(r->a, a->lost_bytes),
                a->lost_bytes > a->most_bytes ? ", with others of that line" : "");
    finding_look(f, FINDING_MOMENT, a->time_ns, NULL, "Look at that instant");
    f->next = "If they are meant to share, copy what they share once (memprof_plan.h, memprof.torch.move), or tie them "
              "again afterwards.";
    finding_number(f, "lost_bytes", a->lost_bytes);
    finding_number(f, "name_count", a->name_count);
    finding_number(f, "block_count", a->block_count);
    finding_saves_at_most(r, f, a->at_peak_bytes);
    if (a->lost_bytes < MUCH_BYTES && a->lost_bytes < r->device->peak_active / 100)
        finding_lessen(f);
}

/* Names that shared a block and are in several ones later, which take more than what they shared did: tied weights that
 * a copy of each has untied. Views that lie beside each other lose nothing that way, and are not told. */
void find_apart(struct rules *r)
{
    struct sharing s = {.r = r};
    if (rule_lines(r) == 0 && named_blocks_load(r->db, &s.all, r->err) == 0) {
        sort_names(&s);
        for (size_t i = 0; i < s.all.count; i++)
            take_block(&s, &s.all.blocks[i]);
    }
    if (s.count)
        qsort(s.found, s.count, sizeof *s.found, by_lost);
    for (uint32_t i = 0; i < s.count && i < FINDINGS_MOST; i++)
        if (s.found[i].lost_bytes >= LEAST_BYTES || s.found[i].lost_bytes >= r->device->peak_active / 100)
            say(r, &s.found[i]);
    named_blocks_close(&s.all);
    map_close(&s.number_of);
    free(s.by_text);
    free(s.first);
    free(s.places);
    free(s.found);
}
