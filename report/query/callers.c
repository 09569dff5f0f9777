#include "callers.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/map.h"
#include "../../common/sum.h"
#include "site_rows.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

static int is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int is_line(const struct walk_frame *f, const struct row *row)
{
    if (!row->function)
        return row->module && is_same(f->module, row->module) && f->offset == row->offset;
    return is_same(f->function, row->function) && is_same(f->file, row->file) && (!row->file || f->line == row->line);
}

/* Where stacks run through the line: the node, and the frame beyond the line's; what the blocks of these stacks held.
 */
struct place {
    struct walk_step step; /* step.count 0: the line is not in the stack */
    int64_t stack_id;
    int first;
    int64_t bytes, blocks;
};

/* Stacks share most of their nodes, so what lies from a node outwards is looked for once, of those that have an id as
 * the collector gives them. */
#define NODES_KNOWN     (1 << 24)
#define ADDRESSES_KNOWN (1 << 20)
enum { OTHER_ALLOCATORS = 1, OTHER_CODE = 2 }; /* whose frames an address has, none of which is the line's */
struct callers_line {
    struct walk *walk;
    const struct row *row;
    uint32_t *place_at; /* by node: the place's number + 1; 0: not known */
    size_t place_room;
    uint8_t *other; /* by address; 0: not known, or the line's, or where a stack begins */
    size_t other_room;
    int has_between;        /* in some stack other code than allocators' lies between the allocation and the line */
    struct map place_index; /* by node and frame, and node 0 for none */
    struct place *places;
    uint32_t place_count, place_capacity;
    int64_t site_count;
};

static uint32_t place_of(struct callers_line *l, int64_t stack_id, const struct walk_step *step, int first)
{
    uint32_t at = map_number(&l->place_index, (uint64_t)stack_id, (uint64_t)first);
    if (at == MAP_NONE) {
        at = l->place_count;
        *ARRAY_ADD(l->places, l->place_count, l->place_capacity) = (struct place){.stack_id = stack_id, .first = first};
        if (step)
            l->places[at].step = *step;
        map_set_number(&l->place_index, (uint64_t)stack_id, (uint64_t)first, at);
    }
    return at;
}

static uint32_t known_place(const struct callers_line *l, int64_t id)
{
    return id > 0 && (uint64_t)id < l->place_room && l->place_at[id] ? l->place_at[id] - 1 : MAP_NONE;
}

static void remember_place(struct callers_line *l, int64_t id, uint32_t place)
{
    if (id <= 0 || id >= NODES_KNOWN)
        return;
    ARRAY_ROOM_ZERO(l->place_at, (size_t)id + 1, l->place_room);
    l->place_at[id] = place + 1;
}

/* Whether nothing of an address is the line's, as is known of those that were looked at before. */
static int is_other(struct callers_line *l, int64_t address_id)
{
    const int other = address_id >= 0 && (uint64_t)address_id < l->other_room ? l->other[address_id] : 0;
    l->has_between |= other == OTHER_CODE;
    return other;
}

static void remember_other(struct callers_line *l, int64_t address_id, int is_code)
{
    if (address_id < 0 || address_id >= ADDRESSES_KNOWN)
        return;
    ARRAY_ROOM_ZERO(l->other, (size_t)address_id + 1, l->other_room);
    l->other[address_id] = is_code ? OTHER_CODE : OTHER_ALLOCATORS;
}

/* Looks for the line in a node, innermost frame first. 1: where the stack begins, no further. */
static int look_in(struct callers_line *l, int64_t id, const struct walk_node *node, uint32_t *place)
{
    struct walk_step step = {.parent_id = node->parent_id, .is_cut = node->is_cut, .is_unknown = node->is_unknown};
    int is_code = 0, is_start = 0;
    step.frames = walk_frames(l->walk, node->address_id, &step.count);
    for (int i = 0; i < step.count && !is_start && *place == MAP_NONE; i++) {
        if (walk_hides(l->walk, &step.frames[i]))
            continue;
        if (is_line(&step.frames[i], l->row))
            *place = place_of(l, id, &step, i + 1);
        else
            is_code |= !step.frames[i].is_allocator;
        is_start = walk_is_start(&step.frames[i]);
    }
    l->has_between |= is_code;
    if (!is_start && *place == MAP_NONE)
        remember_other(l, node->address_id, is_code);
    return is_start;
}

/* The innermost frame that is the line's. */
static int find_place(struct callers_line *l, int64_t stack_id, uint32_t *place, struct error *err)
{
    int64_t path[WALK_FRAMES_MAX], id = stack_id;
    int depth = 0;
    *place = MAP_NONE;
    while (id && *place == MAP_NONE && depth < WALK_FRAMES_MAX) {
        *place = depth ? known_place(l, id) : MAP_NONE;
        if (*place != MAP_NONE)
            break;
        struct walk_node node;
        int rc = walk_node(l->walk, id, depth > 0, &node, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        path[depth++] = id;
        const int is_start = !is_other(l, node.address_id) && look_in(l, id, &node, place);
        id = is_start ? 0 : node.parent_id;
    }
    if (*place == MAP_NONE)
        *place = place_of(l, 0, NULL, 0);
    for (int i = 1; i < depth; i++)
        remember_place(l, path[i], *place);
    return 0;
}

/* The first frame from a place outwards that is another function's (a wrapper may call itself), or so many further out.
 */
static int caller_at(const struct callers_line *l, const struct place *place, int further,
                     const struct walk_frame **caller, struct error *err)
{
    struct walk_step step = place->step;
    *caller = NULL;
    for (int depth = 0, first = place->first; step.count && depth < WALK_FRAMES_MAX; depth++, first = 0) {
        for (int i = first; i < step.count; i++) {
            const struct walk_frame *f = &step.frames[i];
            if (walk_hides(l->walk, f))
                continue;
            if (walk_is_start(f))
                return 0;
            if (!f->is_allocator && !(l->row->function && is_same(f->function, l->row->function)) && further-- == 0) {
                *caller = f;
                return 0;
            }
        }
        int rc = step.parent_id ? walk_step(l->walk, step.parent_id, 1, &step, err) : 0;
        if (rc != 1)
            return rc;
    }
    return 0;
}

static int is_caller(const struct row *r, const struct walk_frame *f)
{
    if (!f || !r->module)
        return !f && !r->module;
    return is_same(r->function, f->function) && is_same(r->file, f->file) && r->line == f->line &&
           (f->function || (r->offset == f->offset && is_same(r->module, f->module)));
}

static void add(struct callers *c, const struct walk_frame *f, int64_t bytes, int64_t blocks)
{
    int i = 0;
    while (i < c->count && !is_caller(&c->item[i].row, f))
        i++;
    if (i == c->count) {
        ARRAY_ADD(c->item, c->count, c->capacity);
        /* module "": a caller without one, apart from no caller at all */
        if (f)
            c->item[i].row = (struct row){.function = xstrdup_if(f->function),
                                          .plain_name = xstrdup_if(f->plain_name),
                                          .file = xstrdup_if(f->file),
                                          .module = xstrdup(f->module ? f->module : ""),
                                          .line = f->line,
                                          .offset = f->offset};
    }
    sum_add(&c->item[i].bytes, bytes);
    sum_add(&c->item[i].blocks, blocks);
}

static int by_bytes(const void *a, const void *b)
{
    const struct caller *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    int order = strcmp(x->row.function ? x->row.function : "", y->row.function ? y->row.function : "");
    if (order == 0)
        order = strcmp(x->row.file ? x->row.file : "", y->row.file ? y->row.file : "");
    return order ? order : (x->row.line > y->row.line) - (x->row.line < y->row.line);
}

static void count_functions(struct callers *c)
{
    for (int i = 0; i < c->count; i++) {
        int is_new = c->item[i].row.module != NULL;
        for (int k = 0; k < i && is_new; k++)
            is_new = !c->item[i].row.function || !is_same(c->item[i].row.function, c->item[k].row.function);
        c->function_count += is_new;
    }
}

enum { STACK, DEVICE, KIND, BYTES, BLOCKS, COLUMNS };

static void columns_of(enum callers_of of, enum packed_column *columns)
{
    static const enum packed_column held[][2] = {
        [CALLERS_OF_PEAK] = {PACKED_site_at_peak_bytes, PACKED_site_at_peak_count},
        [CALLERS_OF_KIND_PEAK] = {PACKED_site_at_kind_peak_bytes, PACKED_site_at_peak_count},
        [CALLERS_OF_END] = {PACKED_site_end_bytes, PACKED_site_end_count},
        [CALLERS_OF_END_RECORDED] = {PACKED_site_end_bytes, PACKED_site_end_count},
        [CALLERS_OF_RUN] = {PACKED_site_alloc_bytes, PACKED_site_alloc_count},
    };
    columns[STACK] = PACKED_site_stack_id;
    columns[DEVICE] = PACKED_site_device_id;
    columns[KIND] = PACKED_site_kind;
    columns[BYTES] = held[of][0];
    columns[BLOCKS] = held[of][1];
}

/* -1: there is none of that name */
static int64_t device_of(sqlite3 *db, const char *name, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t id = -1;
    if (db_prepare(db, "SELECT device_id FROM device WHERE name = ?", &s, err) == 0) {
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW)
            id = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return id;
}

int callers_open(sqlite3 *db, struct walk *walk, const struct row *row, enum callers_of of, const char *kind,
                 struct callers_line **line, struct error *err)
{
    struct callers_line *l = *line = xcalloc(1, sizeof *l);
    l->walk = walk;
    l->row = row;
    const int64_t device_id = device_of(db, row->device, err);
    const int is_any = !kind || strcmp(kind, "all") == 0;
    enum packed_column columns[COLUMNS];
    struct site_rows rows;
    columns_of(of, columns);
    int rc = site_rows_open_line(db, row->key_id, of == CALLERS_OF_END_RECORDED, columns, COLUMNS, &rows, err);
    while (rc == 0 && (rc = site_rows_next(&rows, err)) == 1) {
        uint32_t at;
        const int64_t bytes = site_rows_value(&rows, BYTES);
        rc = 0;
        if (bytes <= 0 || site_rows_value(&rows, DEVICE) != device_id ||
            (!is_any && strcmp(kind_name((unsigned)site_rows_value(&rows, KIND)), kind) != 0))
            continue;
        rc = find_place(l, site_rows_value(&rows, STACK), &at, err);
        if (rc)
            break;
        sum_add(&l->places[at].bytes, bytes);
        sum_add(&l->places[at].blocks, site_rows_value(&rows, BLOCKS));
        l->site_count++;
    }
    site_rows_close(&rows);
    return rc;
}

int callers_load(const struct callers_line *l, int further, struct callers *callers, struct error *err)
{
    int rc = 0;
    *callers = (struct callers){.site_count = l->site_count};
    for (uint32_t i = 0; i < l->place_count && rc == 0; i++) {
        const struct walk_frame *caller;
        rc = caller_at(l, &l->places[i], further, &caller, err);
        if (rc == 0)
            add(callers, caller, l->places[i].bytes, l->places[i].blocks);
    }
    if (callers->count)
        qsort(callers->item, (size_t)callers->count, sizeof *callers->item, by_bytes);
    count_functions(callers);
    return rc;
}

/* The line's own frame at a place; NULL: the line is in none of these stacks, or the code names itself (an imported
 * recording), and one address may stand for all of a function. */
static const struct walk_frame *own_frame(const struct place *place)
{
    const struct walk_frame *f = place->step.count ? &place->step.frames[place->first - 1] : NULL;
    return f && f->module && f->offset >= 0 ? f : NULL;
}

int callers_leave_one_place(const struct callers_line *l)
{
    const struct walk_frame *first = l->place_count ? own_frame(&l->places[0]) : NULL;
    int is_one = first != NULL;
    for (uint32_t i = 1; i < l->place_count && is_one; i++) {
        const struct walk_frame *f = own_frame(&l->places[i]);
        is_one = f && f->offset == first->offset && is_same(f->module, first->module);
    }
    return is_one;
}

int callers_line_is_direct(const struct callers_line *l)
{
    return l->place_count > 0 && !l->has_between;
}

void callers_close(struct callers_line *l)
{
    if (!l)
        return;
    free(l->place_at);
    free(l->other);
    map_close(&l->place_index);
    free(l->places);
    free(l);
}

void callers_free(struct callers *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->item[i].row.function);
        free(c->item[i].row.plain_name);
        free(c->item[i].row.file);
        free(c->item[i].row.module);
    }
    free(c->item);
    *c = (struct callers){0};
}
