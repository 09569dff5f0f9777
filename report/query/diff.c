#include "diff_private.h"

#include "../../common/array.h"
#include "../../common/match.h"
#include "../../common/text.h"
#include "named_caller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const diff_match_names[] = {"same", "moved", "renamed", "clone", "module", "new", "gone"};

const int diff_stats[] = {STAT_at_peak_bytes,
                          STAT_own_peak_bytes,
                          STAT_end_bytes,
                          STAT_alloc_bytes,
                          STAT_alloc_count,
                          STAT_temporary_count,
                          -1};

int64_t diff_of(const struct diff_row *row, int stat, int *known)
{
    int is_old, is_new;
    int64_t old = stat_value(&row->stats[DIFF_OLD], stat, &is_old), difference;
    int64_t new = stat_value(&row->stats[DIFF_NEW], stat, &is_new);
    *known = is_old && is_new;
    if (!*known)
        return 0;
    return __builtin_sub_overflow(new, old, &difference) ? (new < old ? INT64_MIN : INT64_MAX) : difference;
}

double diff_error(const struct diff_row *row, int stat)
{
    const double old = stat_error(&row->stats[DIFF_OLD], stat), new = stat_error(&row->stats[DIFF_NEW], stat);
    return old < 0 || new < 0 ? -1 : hypot(old, new);
}

/* --- several recordings of a side --- */

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t median(int64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_numbers);
    int64_t low = values[(count - 1) / 2], high = values[count / 2];
    return low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
}

/* The medians of what the recordings of a side have at a value; a row that one of them lacks is 0 there. Exact
 * statistics are known where all that have the row know them. */
static void sum_up(const struct diff_side *s, uint32_t value, struct stat_row *medians, int sort,
                   struct diff_range *range)
{
    if (s->count == 1) {
        static const struct stat_row nothing = {.known = UINT32_MAX};
        int known;
        *medians = value == DIFF_NONE ? nothing : s->stats[value];
        range->least = range->most = stat_value(medians, sort, &known);
        return;
    }
    int64_t *values = xcalloc((size_t)s->count, sizeof *values);
    const struct stat_row *rows = value == DIFF_NONE ? NULL : &s->stats[(size_t)value * (uint32_t)s->count];
    const uint8_t *is_there = value == DIFF_NONE ? NULL : &s->is_there[(size_t)value * (uint32_t)s->count];
    int known;
    medians->known = UINT32_MAX;
    for (int i = 0; i < STAT_VALUE_COUNT; i++) {
        for (int k = 0; k < s->count; k++) {
            values[k] = rows && is_there[k] ? rows[k].value[i] : 0;
            if (rows && is_there[k] && !(rows[k].known & 1u << i))
                medians->known &= ~(1u << i);
        }
        medians->value[i] = median(values, s->count);
    }
    for (int k = 0; k < s->count; k++)
        values[k] = rows && is_there[k] ? stat_value(&rows[k], sort, &known) : 0;
    median(values, s->count);
    *range = (struct diff_range){values[0], values[s->count - 1]};
    free(values);
}

/* --- rows --- */

int diff_line_differs(const struct diff_row *row)
{
    const struct diff_item *old = row->item[DIFF_OLD], *new = row->item[DIFF_NEW];
    return old && new && old->line != new->line && old->function_number != DIFF_NONE &&new->match != DIFF_MODULE;
}

static enum diff_match match_of(const struct diff_row *row)
{
    const struct diff_item *old = row->item[DIFF_OLD], *new = row->item[DIFF_NEW];
    if (!old)
        return DIFF_ADDED;
    if (!new)
        return DIFF_GONE;
    /* a line without a number may be anywhere */
    return diff_line_differs(row) && old->line > 0 && new->line > 0 ? DIFF_MOVED : new->match;
}

/* Where nothing has a line to tell, a closure is matched by the number that the compiler gave it in its order: a
 * program with one more before it has another one by that number. */
static int is_by_number(struct diff_state *d, const struct diff_row *row)
{
    const struct diff_item *old = row->item[DIFF_OLD], *new = row->item[DIFF_NEW];
    if ((d->options.by != ROW_LINE && d->options.by != ROW_FUNCTION) || !old || !new || !new->name || !new->module ||
        !old->module || (old->line > 0 && old->line == new->line) || !match_has_closure(new->name))
        return 0;
    return strcmp(text_basename(old->module), text_basename(new->module)) != 0 || !diff_is_one_build(d, new->module);
}

/* Two estimates of one number differ by less in 95 of 100 pairs. What has no error is no noise. */
static int is_within_error(const struct diff_row *row, int stat)
{
    int known;
    const int64_t difference = diff_of(row, stat, &known);
    const double error = diff_error(row, stat);
    return known && (difference == 0 || error < 0 || fabs((double)difference) <= error);
}

/* By what it is sorted; where nothing of that changed, by all that is shown. */
static int is_within_errors(const struct diff_state *d, const struct diff_row *row)
{
    const int stats[] = {d->options.sort, STAT_end_bytes, STAT_alloc_bytes, STAT_alloc_count};
    int known, count = d->options.is_sorted ? 1 : 2, has_error = 0;
    if (!diff_of(row, stats[0], &known) && (count == 1 || !diff_of(row, stats[1], &known)))
        count = 4;
    for (int i = 0; i < count; i++) {
        if (!is_within_error(row, stats[i]))
            return 0;
        has_error |= diff_error(row, stats[i]) != 0;
    }
    return has_error;
}

static int is_noise(const struct diff_state *d, const struct diff_row *row)
{
    if (is_within_errors(d, row))
        return 1;
    const struct diff_range *old = &row->range[DIFF_OLD], *new = &row->range[DIFF_NEW];
    return d->side[DIFF_OLD].count + d->side[DIFF_NEW].count > DIFF_SIDES &&
           old->least <= new->most &&new->least <= old->most;
}

static const struct diff_item *item_at(const struct diff_side *s, uint32_t item)
{
    return item < s->item_count ? &s->items[item] : NULL;
}

static void fill_row(struct diff_state *d, uint32_t device, const uint32_t items[DIFF_SIDES], struct diff_row *row)
{
    *row = (struct diff_row){.device = d->device_names[device]};
    for (int side = 0; side < DIFF_SIDES; side++) {
        uint32_t value = diff_find_value(&d->side[side], device, items[side]);
        row->item[side] = item_at(&d->side[side], items[side]);
        sum_up(&d->side[side], value, &row->stats[side], d->options.sort, &row->range[side]);
    }
    row->match = match_of(row);
    row->is_by_number = is_by_number(d, row);
    row->is_noise = is_noise(d, row);
}

static int differs(const struct diff_state *d, const struct diff_row *row)
{
    int known;
    for (int i = 0; diff_stats[i] >= 0; i++)
        if (diff_of(row, diff_stats[i], &known))
            return 1;
    return diff_of(row, d->options.sort, &known) != 0;
}

static int is_hidden(const struct diff_state *d, const struct diff_row *row)
{
    const int shown[] = {d->options.sort, STAT_end_bytes, STAT_alloc_bytes, STAT_alloc_count};
    int known;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (diff_of(row, shown[i], &known))
            return 0;
    return 1;
}

static void add_row(struct diff *diff, struct diff_row *row, int *capacity)
{
    if (!row->item[DIFF_OLD] && !row->item[DIFF_NEW])
        return;
    if (!differs(diff->state, row)) {
        diff->same_count++;
        return;
    }
    row->is_hidden = is_hidden(diff->state, row);
    diff->hidden_count += row->is_hidden;
    *ARRAY_ADD(diff->rows, diff->count, *capacity) = *row;
}

static void make_rows(struct diff *diff)
{
    struct diff_state *d = diff->state;
    const struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    struct diff_row row;
    int capacity = 0;
    for (uint32_t i = 0; i < n->value_count; i++) {
        uint32_t item = n->values[i].item, old = item == DIFF_TOTAL ? DIFF_TOTAL : n->items[item].other - 1;
        if (item == DIFF_TOTAL)
            continue;
        fill_row(d, n->values[i].device, (uint32_t[]){old, item}, &row);
        add_row(diff, &row, &capacity);
    }
    for (uint32_t i = 0; i < o->value_count; i++) {
        uint32_t item = o->values[i].item, new = item == DIFF_TOTAL ? DIFF_TOTAL : o->items[item].other - 1;
        if (item == DIFF_TOTAL || (new != DIFF_NONE &&diff_find_value(n, o->values[i].device, new) != DIFF_NONE))
            continue;
        fill_row(d, o->values[i].device, (uint32_t[]){item, new}, &row);
        add_row(diff, &row, &capacity);
    }
}

static void make_totals(struct diff *diff)
{
    struct diff_state *d = diff->state;
    diff->totals = xcalloc((size_t)d->device_count + 1, sizeof *diff->totals);
    for (uint32_t device = 0; device < d->device_count; device++)
        fill_row(d, device, (uint32_t[]){DIFF_TOTAL, DIFF_TOTAL}, &diff->totals[diff->total_count++]);
}

/* --- order --- */

struct sorted {
    struct diff_row row;
    uint64_t size[3]; /* of the differences, by which it is sorted */
    int place;
};

static uint64_t size_of(const struct diff_row *row, int stat)
{
    int known;
    int64_t difference = diff_of(row, stat, &known);
    return difference < 0 ? 0 - (uint64_t)difference : (uint64_t)difference;
}

static int compare_rows(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->row.is_hidden != y->row.is_hidden)
        return x->row.is_hidden - y->row.is_hidden;
    if (x->row.is_noise != y->row.is_noise)
        return x->row.is_noise - y->row.is_noise;
    for (int i = 0; i < 3; i++)
        if (x->size[i] != y->size[i])
            return x->size[i] > y->size[i] ? -1 : 1;
    return x->place - y->place;
}

static void sort_rows(struct diff *diff)
{
    struct sorted *rows = xcalloc((size_t)diff->count + 1, sizeof *rows);
    for (int i = 0; i < diff->count; i++) {
        const struct diff_row *row = &diff->rows[i];
        const struct diff_options *o = &diff->state->options;
        uint64_t first = size_of(row, o->sort), end = size_of(row, STAT_end_bytes);
        int is_end_first = !o->is_sorted && end > first;
        rows[i] = (struct sorted){
            .row = *row,
            .size = {is_end_first ? end : first, is_end_first ? first : end, size_of(row, STAT_alloc_bytes)},
            .place = i};
    }
    qsort(rows, (size_t)diff->count, sizeof *rows, compare_rows);
    for (int i = 0; i < diff->count; i++)
        diff->rows[i] = rows[i].row;
    free(rows);
}

const struct diff_item *diff_old_item(const struct diff *diff, uint32_t number, const struct diff_item **now)
{
    const struct diff_side *o = &diff->state->side[DIFF_OLD], *n = &diff->state->side[DIFF_NEW];
    const struct diff_item *old = item_at(o, number);
    *now = old && old->other ? &n->items[old->other - 1] : NULL;
    return old;
}

/* --- callers --- */

enum { CALLERS_MOST = 1000 };

struct naming {
    struct diff_item *items[CALLERS_MOST];
    int64_t line_ids[CALLERS_MOST];
    int count;
};

static void take_caller(void *arg, int64_t line_id, const struct named_caller *caller)
{
    struct naming *n = arg;
    for (int i = 0; i < n->count; i++)
        if (n->line_ids[i] == line_id && !n->items[i]->caller) {
            n->items[i]->caller = xstrdup(caller->frame->function);
            n->items[i]->other_callers = caller->other_count;
        }
}

/* Of the rows whose names are of this recording. */
static int name_callers(struct diff *diff, int rows, int side, int recording, struct error *err)
{
    struct diff_side *s = &diff->state->side[side];
    struct naming *n = xcalloc(1, sizeof *n);
    for (int i = 0; i < rows && i < diff->count && n->count < CALLERS_MOST; i++) {
        const struct diff_row *row = &diff->rows[i];
        const struct diff_item *item = row->item[DIFF_NEW] ? row->item[DIFF_NEW] : row->item[DIFF_OLD];
        if ((side == DIFF_NEW) != (row->item[DIFF_NEW] != NULL) || item->recording != (uint32_t)recording ||
            item->name || item->is_rest || item->offset < 0 || !item->key_id || item->key_id == INT64_MIN)
            continue;
        n->items[n->count] = &s->items[item - s->items];
        n->line_ids[n->count++] = item->key_id < 0 ? -item->key_id : item->key_id;
    }
    int rc = named_callers(s->dbs[recording], n->line_ids, n->count, take_caller, n, err);
    free(n);
    return rc;
}

int diff_name_callers(struct diff *diff, int rows, struct error *err)
{
    const enum row_key by = diff->state->options.by;
    int rc = 0;
    for (int side = 0; side < DIFF_SIDES && (by == ROW_LINE || by == ROW_FUNCTION); side++)
        for (int i = 0; rc == 0 && i < diff->state->side[side].count; i++)
            rc = name_callers(diff, rows, side, i, err);
    return rc;
}

int diff_load(sqlite3 *const *const dbs[DIFF_SIDES], const int counts[DIFF_SIDES], const struct diff_options *options,
              struct diff *diff, struct error *err)
{
    struct diff_state *d = xcalloc(1, sizeof *d);
    *diff = (struct diff){.state = d};
    d->options = *options;
    for (int side = 0; side < DIFF_SIDES; side++) {
        d->side[side].dbs = dbs[side];
        d->side[side].count = counts[side];
    }
    int rc = diff_load_modules(d, err);
    if (rc == 0)
        rc = diff_load_python(d, err);
    if (rc == 0 && options->by == ROW_STACK) /* its stacks are equal or not by the names of files */
        diff_match_files(d);
    for (int side = 0; rc == 0 && side < DIFF_SIDES; side++)
        rc = diff_load_side(d, side, err);
    if (rc)
        return rc;
    diff_match_items(d);
    make_rows(diff);
    make_totals(diff);
    sort_rows(diff);
    return 0;
}

void diff_close(struct diff *diff)
{
    struct diff_state *d = diff->state;
    if (d) {
        for (int side = 0; side < DIFF_SIDES; side++)
            diff_close_side(&d->side[side]);
        text_map_close(&d->devices);
        text_map_close(&d->modules);
        free(d->device_names);
        free(d->builds);
    }
    free(d);
    free(diff->rows);
    free(diff->totals);
    *diff = (struct diff){0};
}
