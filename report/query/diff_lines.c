/*
 * The lines of a function whose numbers shifted. The source's text says which line is which, where both recordings have
 * it; without it the order of the lines does, or their distance from the function's beginning: as long as these agree.
 */
#include "diff_private.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/hash.h"
#include "source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct place {
    uint32_t item;
    int64_t line;
    uint64_t text;  /* hash; 0: unknown */
    uint32_t other; /* place of the other side; DIFF_NONE */
};

struct places {
    struct place *at;
    uint32_t count, capacity;
};

struct item_line {
    int64_t line;
    uint32_t item;
};

struct lines {
    struct diff_state *d;
    uint32_t *items[DIFF_SIDES]; /* by function, then by line */
    uint32_t *first[DIFF_SIDES]; /* by function: where its items begin; one more */
    struct map sources[DIFF_SIDES];
    struct places of[DIFF_SIDES]; /* of the two functions at hand */
    int is_open;                  /* nothing tells which line is which */
    int has_texts;                /* both sides keep the source's text */
};

/* --- the text of lines --- */

static void free_source(void *source)
{
    source_free(source);
    free(source);
}

/* NULL: not to be had as it was when the recording was made. */
static const struct source *source_of(struct lines *l, int side, const struct diff_item *item)
{
    const uint64_t key = (uint64_t)item->recording << 48 ^ (uint64_t)item->file_id;
    struct source *source = map_pointer(&l->sources[side], key);
    if (!source) {
        source = xcalloc(1, sizeof *source);
        if (item->file && item->file_id > 0)
            source_load(l->d->side[side].dbs[item->recording], item->file_id, item->file, source);
        map_set_pointer(&l->sources[side], key, source);
    }
    return source->text && !source->is_newer ? source : NULL;
}

static uint64_t hash_line(const struct source *source, int64_t line)
{
    size_t length = 0;
    const char *text = source ? source_line(source, line, &length) : NULL;
    uint64_t hash = HASH_START;
    for (size_t i = 0; text && i < length; i++)
        if (!isspace((unsigned char)text[i]))
            hash = hash_byte(hash, (unsigned char)text[i]);
    return text ? hash | 1 : 0;
}

/* Whether the text of every line is known. */
static int read_texts(struct lines *l, int side)
{
    struct places *p = &l->of[side];
    for (uint32_t i = 0; i < p->count; i++) {
        p->at[i].text = hash_line(source_of(l, side, &l->d->side[side].items[p->at[i].item]), p->at[i].line);
        if (!p->at[i].text)
            return 0;
    }
    return 1;
}

/* --- two functions --- */

static void join(struct lines *l, uint32_t old, uint32_t new)
{
    l->of[DIFF_OLD].at[old].other = new;
    l->of[DIFF_NEW].at[new].other = old;
}

struct text_place {
    uint64_t text;
    uint32_t place;
};

static int compare_texts(const void *a, const void *b)
{
    const struct text_place *x = a, *y = b;
    return x->text != y->text ? (x->text < y->text ? -1 : 1) : x->place < y->place ? -1 : x->place > y->place;
}

static struct text_place *by_text(const struct places *p)
{
    struct text_place *order = xcalloc((size_t)p->count + 1, sizeof *order);
    for (uint32_t i = 0; i < p->count; i++)
        order[i] = (struct text_place){p->at[i].text, i};
    qsort(order, p->count, sizeof *order, compare_texts);
    return order;
}

/* How many have the text of the one at from. */
static uint32_t run_of(const struct text_place *order, uint32_t from, uint32_t count)
{
    uint32_t end = from + 1;
    while (end < count && order[end].text == order[from].text)
        end++;
    return end - from;
}

/* Lines of one text, in their order, where both functions have as many of them. */
static void join_by_text(struct lines *l)
{
    const uint32_t old_count = l->of[DIFF_OLD].count, new_count = l->of[DIFF_NEW].count;
    struct text_place *old = by_text(&l->of[DIFF_OLD]), *new = by_text(&l->of[DIFF_NEW]);
    for (uint32_t i = 0, k = 0; i < old_count && k < new_count;) {
        uint32_t old_run = run_of(old, i, old_count), new_run = run_of(new, k, new_count);
        uint64_t left = old[i].text, right = new[k].text;
        for (uint32_t j = 0; left == right && old_run == new_run && j < old_run; j++)
            join(l, old[i + j].place, new[k + j].place);
        i += left <= right ? old_run : 0;
        k += right <= left ? new_run : 0;
    }
    free(old);
    free(new);
}

/* By how much the function moved; 0 where that is not known. */
static int64_t shift_of(const struct lines *l)
{
    int64_t declared[DIFF_SIDES], shift;
    for (int side = 0; side < DIFF_SIDES; side++)
        declared[side] = l->d->side[side].items[l->of[side].at[0].item].declared;
    if (declared[DIFF_OLD] <= 0 || declared[DIFF_NEW] <= 0)
        return 0;
    return __builtin_sub_overflow(declared[DIFF_NEW], declared[DIFF_OLD], &shift) ? 0 : shift;
}

/* Lines at one distance from the beginning of their function. */
static void join_by_distance(struct lines *l, int64_t shift)
{
    const struct places *o = &l->of[DIFF_OLD], *n = &l->of[DIFF_NEW];
    for (uint32_t i = 0, k = 0; i < o->count && k < n->count;) {
        int64_t line;
        if (__builtin_add_overflow(o->at[i].line, shift, &line))
            return;
        if (line == n->at[k].line)
            join(l, i, k);
        int is_past = line >= n->at[k].line;
        i += line <= n->at[k].line;
        k += (uint32_t)is_past;
    }
}

static void forget_joined(struct lines *l)
{
    for (int side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < l->of[side].count; i++)
            l->of[side].at[i].other = DIFF_NONE;
}

/* Whether all lines that are joined are at the same place in the order of both. */
static int is_in_order(const struct lines *l)
{
    for (uint32_t i = 0; i < l->of[DIFF_OLD].count; i++)
        if (l->of[DIFF_OLD].at[i].other != DIFF_NONE && l->of[DIFF_OLD].at[i].other != i)
            return 0;
    return 1;
}

static int64_t allocs_of(const struct lines *l, int side, uint32_t place)
{
    return l->d->side[side].items[l->of[side].at[place].item].alloc_count;
}

/* Whether each line allocated as often as the one at its place in the order; or, by_join, as the one it is joined with.
 */
static int is_as_often(const struct lines *l, int by_join)
{
    for (uint32_t i = 0; i < l->of[DIFF_OLD].count; i++) {
        uint32_t other = by_join ? l->of[DIFF_OLD].at[i].other : i;
        if (other != DIFF_NONE && allocs_of(l, DIFF_OLD, i) != allocs_of(l, DIFF_NEW, other))
            return 0;
    }
    return 1;
}

/* As many lines in both, and no text: their order, and their distance from the function's beginning, must not say two
 * things. Where they do, the counts of allocations decide, if they agree with one of the two alone. */
static void check_order(struct lines *l)
{
    if (is_in_order(l))
        return;
    int is_order = is_as_often(l, 0), is_distance = is_as_often(l, 1);
    if (is_order == is_distance || is_order)
        forget_joined(l);
    if (is_order && !is_distance)
        for (uint32_t i = 0; i < l->of[DIFF_OLD].count; i++)
            join(l, i, i);
    l->is_open = is_order == is_distance;
}

/* Those between two joined ones, where both have as many. */
static void join_gap(struct lines *l, uint32_t old, uint32_t old_end, uint32_t new, uint32_t new_end)
{
    if (old_end - old == new_end - new)
        for (; old < old_end; old++, new ++)
            join(l, old, new);
}

static void join_gaps(struct lines *l)
{
    const struct places *o = &l->of[DIFF_OLD], *n = &l->of[DIFF_NEW];
    uint32_t last = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->at[i].other == DIFF_NONE)
            continue;
        if (o->at[i].other < last) /* the lines changed their order */
            return;
        last = o->at[i].other + 1;
    }
    uint32_t old = 0, new = 0;
    for (uint32_t i = 0; i <= o->count; i++) {
        uint32_t at = i < o->count ? o->at[i].other : n->count;
        if (at == DIFF_NONE)
            continue;
        join_gap(l, old, i, new, at);
        old = i + 1;
        new = at + 1;
    }
}

/* Where nothing moved, files are not read for it, but lines may have changed places in a text that is there. */
static int is_unchanged(const struct lines *l)
{
    const struct places *o = &l->of[DIFF_OLD], *n = &l->of[DIFF_NEW];
    if (o->count != n->count || shift_of(l) != 0 || (l->has_texts && o->count > 1))
        return 0;
    for (uint32_t i = 0; i < o->count; i++)
        if (o->at[i].line != n->at[i].line)
            return 0;
    return 1;
}

static void match_places(struct lines *l)
{
    const int is_known = !is_unchanged(l) && read_texts(l, DIFF_OLD) && read_texts(l, DIFF_NEW);
    l->is_open = 0;
    if (is_known) {
        join_by_text(l);
    } else {
        join_by_distance(l, shift_of(l));
        if (l->of[DIFF_OLD].count == l->of[DIFF_NEW].count)
            check_order(l);
    }
    if (!l->is_open)
        join_gaps(l);
}

/* --- all functions --- */

static void fill_places(struct lines *l, int side, uint32_t function)
{
    struct places *p = &l->of[side];
    const uint32_t *first = &l->first[side][function];
    ARRAY_ROOM(p->at, first[1] - first[0], p->capacity);
    p->count = first[1] - first[0];
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t item = l->items[side][first[0] + i];
        p->at[i] = (struct place){.item = item, .line = l->d->side[side].items[item].line, .other = DIFF_NONE};
    }
}

static void match_function(struct lines *l, uint32_t old)
{
    const struct diff_function *f = &l->d->side[DIFF_OLD].functions[old];
    if (f->other == DIFF_NONE)
        return;
    fill_places(l, DIFF_OLD, old);
    fill_places(l, DIFF_NEW, f->other);
    if (!l->of[DIFF_OLD].count || !l->of[DIFF_NEW].count)
        return;
    match_places(l);
    for (uint32_t i = 0; i < l->of[DIFF_OLD].count; i++) {
        const struct place *p = &l->of[DIFF_OLD].at[i];
        if (p->other != DIFF_NONE)
            diff_join_items(l->d, p->item, l->of[DIFF_NEW].at[p->other].item, f->match);
    }
}

static int compare_lines(const void *a, const void *b)
{
    const struct item_line *x = a, *y = b;
    return x->line != y->line ? (x->line < y->line ? -1 : 1) : x->item < y->item ? -1 : x->item > y->item;
}

/* Items by function, and of each by line. */
static void sort_items(struct lines *l, int side)
{
    const struct diff_side *s = &l->d->side[side];
    struct item_line *order = xcalloc((size_t)s->item_count + 1, sizeof *order);
    uint32_t *first = xcalloc((size_t)s->function_count + 2, sizeof *first), count = 0;
    for (uint32_t i = 0; i < s->item_count; i++)
        if (s->items[i].function_number != DIFF_NONE)
            order[count++] = (struct item_line){s->items[i].line, i};
    qsort(order, count, sizeof *order, compare_lines);
    for (uint32_t i = 0; i < count; i++)
        first[s->items[order[i].item].function_number + 1]++;
    for (uint32_t i = 0; i < s->function_count; i++)
        first[i + 1] += first[i];
    uint32_t *next = xcalloc((size_t)s->function_count + 1, sizeof *next);
    memcpy(next, first, s->function_count * sizeof *next);
    l->items[side] = xcalloc((size_t)count + 1, sizeof *l->items[side]);
    for (uint32_t i = 0; i < count; i++)
        l->items[side][next[s->items[order[i].item].function_number]++] = order[i].item;
    l->first[side] = first;
    free(next);
    free(order);
}

void diff_match_lines(struct diff_state *d)
{
    struct lines l = {.d = d, .has_texts = 1};
    for (int side = 0; side < DIFF_SIDES; side++) {
        sort_items(&l, side);
        l.has_texts &= (int)db_int(d->side[side].dbs[0], "SELECT count(*) > 0 FROM file WHERE source IS NOT NULL", 0);
    }
    for (uint32_t i = 0; i < d->side[DIFF_OLD].function_count; i++)
        match_function(&l, i);
    for (int side = 0; side < DIFF_SIDES; side++) {
        free(l.items[side]);
        free(l.first[side]);
        free(l.of[side].at);
        map_close_pointers(&l.sources[side], free_source);
    }
}
