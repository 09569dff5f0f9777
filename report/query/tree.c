#include "tree.h"

#include "../../common/db.h"
#include "../../common/module_kind.h"
#include "../../common/packed.h"
#include "../../common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- rows -------------------------------------------------------------------------------------------------------- */

static void function_row(struct tree *t, sqlite3_stmt *s)
{
    ids_add(&t->function_ids, sqlite3_column_int64(s, 0));
    struct tree_function *f = ARRAY_ADD(t->functions, t->function_count, t->function_capacity);
    f->id = sqlite3_column_int64(s, 0);
    f->is_allocator = sqlite3_column_int(s, 1) != 0;
    f->is_for_itself = (uint8_t)c_library_allocates_for_itself(db_text(s, 2));
}

/* Keys of line_of: a function's own lines, and (with the highest bit) addresses of a module. */
#define MODULE_KEY (UINT64_C(1) << 63)

static uint64_t source_key(int64_t file_id, int64_t line)
{
    return (uint64_t)file_id << 32 ^ (uint64_t)line;
}

static void line_row(struct tree *t, sqlite3_stmt *s)
{
    ids_add(&t->line_ids, sqlite3_column_int64(s, 0));
    uint32_t index = t->line_count;
    struct tree_line *l = ARRAY_ADD(t->lines, t->line_count, t->line_capacity);
    *l = (struct tree_line){.id = sqlite3_column_int64(s, 0),
                            .function = ids_column(&t->function_ids, s, 1),
                            .file_id = sqlite3_column_int64(s, 2),
                            .line = sqlite3_column_int64(s, 3),
                            .module_key_id = sqlite3_column_int64(s, 4),
                            .offset = sqlite3_column_int64(s, 5)};
    if (l->function)
        map_set_number(&t->line_of, l->function, source_key(l->file_id, l->line), index);
    else if (sqlite3_column_type(s, 5) != SQLITE_NULL)
        map_set_number(&t->line_of, MODULE_KEY | (uint64_t)l->module_key_id, (uint64_t)l->offset, index);
}

static void module_row(struct tree *t, sqlite3_stmt *s)
{
    ids_add(&t->module_ids, sqlite3_column_int64(s, 0));
    struct tree_module *m = ARRAY_ADD(t->modules, t->module_count, t->module_capacity);
    m->name = xstrdup(text_basename(db_text(s, 1)));
    m->key_id = sqlite3_column_int64(s, 2);
    m->is_ours = (uint8_t)module_is_ours(m->name);
    m->is_c = (uint8_t)module_is_c_library(m->name);
    m->is_runtime = (uint8_t)module_is_runtime(m->name);
}

static void address_row(struct tree *t, sqlite3_stmt *s)
{
    ids_add(&t->address_ids, sqlite3_column_int64(s, 0));
    struct tree_address *a = ARRAY_ADD(t->addresses, t->address_count, t->address_capacity);
    a->module = ids_column(&t->module_ids, s, 1);
    a->offset = sqlite3_column_int64(s, 2);
}

static void frame_row(struct tree *t, sqlite3_stmt *s)
{
    uint32_t address = ids_column(&t->address_ids, s, 0);
    if (!address)
        return;
    struct tree_address *a = &t->addresses[address];
    if (!a->frame_count)
        a->first_frame = t->frame_count;
    a->frame_count++;
    struct tree_frame *f = ARRAY_ADD(t->frames, t->frame_count, t->frame_capacity);
    int64_t line = sqlite3_column_int64(s, 3);
    f->function = ids_column(&t->function_ids, s, 1);
    f->file_id = sqlite3_column_int64(s, 2);
    f->has_source = f->file_id != 0 && line > 0 && line <= INT32_MAX;
    f->is_python = strcmp(db_text(s, 4), "python") == 0;
    if (!f->function && !f->has_source)
        return;
    uint32_t index = map_number(&t->line_of, f->function, f->has_source ? source_key(f->file_id, line) : 0);
    f->line = index == MAP_NONE ? 0 : index;
}

static void node_row(struct tree *t, sqlite3_stmt *s)
{
    ids_add(&t->node_ids, sqlite3_column_int64(s, 0));
    struct tree_node *n = ARRAY_ADD(t->nodes, t->node_count, t->node_capacity);
    n->address = ids_column(&t->address_ids, s, 2);
    n->is_cut = sqlite3_column_int(s, 3) & 1;
}

static void parent_row(struct tree *t, sqlite3_stmt *s)
{
    uint32_t node = ids_column(&t->node_ids, s, 0);
    if (node)
        t->nodes[node].parent = ids_column(&t->node_ids, s, 1);
}

static const struct {
    const char *sql;
    void (*row)(struct tree *, sqlite3_stmt *);
} loads[] = {
    {"SELECT function_id, is_allocator, plain_name FROM function ORDER BY function_id", function_row},
    {"SELECT line_id, function_id, file_id, line, module_key_id, offset FROM line ORDER BY line_id", line_row},
    {"SELECT m.module_id, m.path, min(k.key_id) FROM module m LEFT JOIN module_key k ON k.path = m.path AND k.build_id "
     "IS "
     "m.build_id GROUP BY m.module_id ORDER BY m.module_id",
     module_row},
    {"SELECT address_id, module_id, offset FROM address ORDER BY address_id", address_row},
    {"SELECT address_id, function_id, file_id, line, language FROM frame ORDER BY address_id, inline_depth", frame_row},
    {"SELECT stack_id, parent_id, address_id, flags FROM stack ORDER BY stack_id", node_row},
    {"SELECT stack_id, parent_id FROM stack", parent_row},
};
enum { LOADS = sizeof loads / sizeof *loads, LOADS_OF_NODES = 2 };

static int load(struct tree *t, sqlite3 *db, size_t i, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE;
    uint32_t count = 0;
    int rc = db_prepare(db, loads[i].sql, &s, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW && count++ < UINT32_MAX / 4)
        loads[i].row(t, s);
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(s);
    return rc;
}

static void take_nodes(struct tree *t, uint32_t count, const struct packed_values *const columns[3])
{
    for (uint32_t row = 1; row <= count; row++) {
        ids_add(&t->node_ids, row);
        struct tree_node *n = ARRAY_ADD(t->nodes, t->node_count, t->node_capacity);
        const uint64_t parent = packed_at(columns[0], row);
        n->parent = parent <= count ? (uint32_t)parent : 0;
        n->address = ids_find(&t->address_ids, (int64_t)packed_at(columns[1], row));
        n->is_cut = packed_at(columns[2], row) & 1;
    }
}

/* As columns, in a tenth of the time that rows by SQL take: 1; 0: they are plain rows; or an error. */
static int packed_nodes(struct tree *t, sqlite3 *db, struct error *err)
{
    static const enum packed_column columns[] = {PACKED_stack_parent_id, PACKED_stack_address_id, PACKED_stack_flags};
    const struct packed_values *values[3];
    struct packed *p = packed_has(db, PACKED_TABLE_stack) ? packed_shared(db) : NULL;
    if (!p)
        return 0;
    packed_hold(p);
    const long count = packed_count(p, PACKED_TABLE_stack);
    long rc = count < 0 ? count : 0;
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = packed_read(p, columns[i], &values[i]);
    if (rc == 0)
        take_nodes(t, (uint32_t)count, values);
    packed_let(p);
    return rc == 0 ? 1 : error_set(err, EIO, "%s: %s", sqlite3_db_filename(db, "main"), packed_error(rc));
}

int tree_open(sqlite3 *db, struct tree *t, struct error *err)
{
    int rc = 0;
    *t = (struct tree){0};
    ARRAY_ADD(t->functions, t->function_count, t->function_capacity);
    ARRAY_ADD(t->lines, t->line_count, t->line_capacity);
    ARRAY_ADD(t->frames, t->frame_count, t->frame_capacity);
    ARRAY_ADD(t->modules, t->module_count, t->module_capacity);
    ARRAY_ADD(t->addresses, t->address_count, t->address_capacity);
    ARRAY_ADD(t->nodes, t->node_count, t->node_capacity);
    for (size_t i = 0; rc == 0 && i < LOADS - LOADS_OF_NODES; i++)
        rc = load(t, db, i, err);
    const int is_packed = rc ? rc : packed_nodes(t, db, err);
    rc = is_packed < 0 ? is_packed : rc;
    for (size_t i = LOADS - LOADS_OF_NODES; rc == 0 && !is_packed && i < LOADS; i++)
        rc = load(t, db, i, err);
    t->stored_lines = t->line_count;
    return rc;
}

void tree_close(struct tree *t)
{
    struct ids *const ids[] = {&t->function_ids, &t->line_ids, &t->module_ids, &t->address_ids, &t->node_ids};
    for (uint32_t i = 0; i < t->module_count; i++)
        free(t->modules[i].name);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        free(ids[i]->ids);
    free(t->functions);
    free(t->lines);
    free(t->frames);
    free(t->modules);
    free(t->addresses);
    free(t->nodes);
    map_close(&t->line_of);
    *t = (struct tree){0};
}

/* --- look-up ----------------------------------------------------------------------------------------------------- */

uint32_t tree_node(const struct tree *t, int64_t stack_id)
{
    return ids_find(&t->node_ids, stack_id);
}

uint32_t tree_line(const struct tree *t, int64_t line_id)
{
    return ids_find(&t->line_ids, line_id);
}

uint32_t tree_add_line(struct tree *t, uint32_t function)
{
    int64_t last = t->line_ids.count ? t->line_ids.ids[t->line_ids.count - 1] : 0;
    uint32_t index = t->line_count;
    struct tree_line *l = ARRAY_ADD(t->lines, t->line_count, t->line_capacity);
    l->id = last < INT64_MAX ? last + 1 : last;
    l->function = function;
    ids_add(&t->line_ids, l->id);
    return index;
}

uint32_t tree_known_address_line(const struct tree *t, uint32_t address)
{
    const struct tree_address *a = &t->addresses[address];
    int64_t key_id = a->module ? t->modules[a->module].key_id : 0;
    uint32_t index = map_number(&t->line_of, MODULE_KEY | (uint64_t)key_id, (uint64_t)a->offset);
    return index == MAP_NONE ? 0 : index;
}

uint32_t tree_address_line(struct tree *t, uint32_t address)
{
    const struct tree_address *a = &t->addresses[address];
    int64_t key_id = a->module ? t->modules[a->module].key_id : 0;
    uint32_t index = tree_known_address_line(t, address);
    if (index)
        return index;
    index = tree_add_line(t, 0);
    t->lines[index].module_key_id = key_id;
    t->lines[index].offset = a->offset;
    map_set_number(&t->line_of, MODULE_KEY | (uint64_t)key_id, (uint64_t)a->offset, index);
    return index;
}

/* --- stacks ------------------------------------------------------------------------------------------------------ */

struct tree_place tree_first(const struct tree *t, uint32_t node)
{
    const struct tree_address *a = &t->addresses[t->nodes[node].address];
    return (struct tree_place){node, a->frame_count ? a->first_frame : 0, 0};
}

void tree_next(const struct tree *t, struct tree_place *p)
{
    const struct tree_address *a = &t->addresses[t->nodes[p->node].address];
    if (p->frame && p->frame + 1 < a->first_frame + a->frame_count) {
        p->frame++;
        return;
    }
    uint32_t depth = p->depth + 1;
    *p = depth < TREE_DEPTH_MAX ? tree_first(t, t->nodes[p->node].parent) : (struct tree_place){0};
    p->depth = depth;
}

int tree_is_shown(const struct tree *t, const struct tree_place *p, enum tree_language language)
{
    int is_python = p->frame && t->frames[p->frame].is_python;
    return language == TREE_BOTH || is_python == (language == TREE_PYTHON);
}

struct tree_place tree_find(const struct tree *t, uint32_t node, uint32_t line)
{
    const struct tree_line *l = &t->lines[line];
    for (struct tree_place p = tree_first(t, node); p.node; tree_next(t, &p)) {
        const struct tree_address *a = &t->addresses[t->nodes[p.node].address];
        if (l->function && p.frame && t->frames[p.frame].function == l->function &&
            (t->frames[p.frame].line == line || !l->file_id))
            return p;
        if (!l->function && l->file_id && p.frame && t->frames[p.frame].line == line)
            return p;
        if (!l->function && !l->file_id && a->offset == l->offset &&
            (a->module ? t->modules[a->module].key_id : 0) == l->module_key_id)
            return p;
    }
    return (struct tree_place){0};
}

/* How self lines are looked for. */
struct seek {
    enum tree_language language;
    uint32_t
        asked; /* frames of the C library at less than this depth have a caller that asked for what they allocate */
};

static int is_passed(const struct tree *t, const struct tree_place *p, const struct seek *seek)
{
    const struct tree_address *a = &t->addresses[t->nodes[p->node].address];
    if (t->modules[a->module].is_ours || !tree_is_shown(t, p, seek->language))
        return 1;
    const struct tree_function *f = p->frame ? &t->functions[t->frames[p->frame].function] : NULL;
    if (f && (f->is_allocator || f->is_skipped))
        return 1;
    if (!t->modules[a->module].is_c || p->depth >= seek->asked)
        return 0;
    for (uint32_t i = 0; i < a->frame_count; i++)
        if (t->functions[t->frames[a->first_frame + i].function].is_for_itself)
            return 0;
    return 1;
}

/* The outermost code that is neither the allocator's nor the C library's. */
static struct seek seek_from(const struct tree *t, struct tree_place p, enum tree_language language)
{
    struct seek seek = {language, 0};
    for (; p.node; tree_next(t, &p)) {
        const struct tree_node *n = &t->nodes[p.node];
        if (n->address && !t->modules[t->addresses[n->address].module].is_c && !is_passed(t, &p, &seek))
            seek.asked = p.depth;
    }
    return seek;
}

/* Code without what is looked for does not take it from the run-time library that called it (qsort, pthread_once): that
 * says nothing about who allocates, so the search goes on behind it. */
static struct tree_place search(const struct tree *t, struct tree_place p, const struct seek *seek, int want_source)
{
    uint32_t passed = 0; /* module of the code passed over, + 1 */
    int is_mixed = 0, only_user = 0;
    for (; p.node; tree_next(t, &p)) {
        const struct tree_address *a = &t->addresses[t->nodes[p.node].address];
        const struct tree_frame *f = p.frame ? &t->frames[p.frame] : NULL;
        if (is_passed(t, &p, seek))
            continue;
        int has = f && (want_source ? f->has_source : f->function != 0);
        if (has && !t->modules[a->module].is_runtime)
            return p;
        if (has && !only_user && (!passed || (!is_mixed && passed == a->module + 1)))
            return p;
        only_user |= has;
        is_mixed |= passed && passed != a->module + 1;
        passed = a->module + 1;
    }
    return p;
}

/* Code without a symbol, which may be a line of its own. */
static int is_bare(const struct tree *t, const struct tree_place *p)
{
    const struct tree_address *a = &t->addresses[t->nodes[p->node].address];
    const struct tree_frame *f = p->frame ? &t->frames[p->frame] : NULL;
    return t->nodes[p->node].address && !t->modules[a->module].is_ours && !(f && (f->function || f->has_source));
}

static uint32_t module_of(const struct tree *t, const struct tree_place *p)
{
    return t->addresses[t->nodes[p->node].address].module;
}

/* What an allocator calls in its own module is the allocator's. */
static int is_of_allocator(const struct tree *t, struct tree_place p)
{
    uint32_t module = module_of(t, &p);
    for (; module && p.node && module_of(t, &p) == module; tree_next(t, &p))
        if (!is_bare(t, &p))
            return p.frame && t->functions[t->frames[p.frame].function].is_allocator;
    return 0;
}

/* Whether the library that bare code at p is of was entered by name, as far as source. */
static int is_called_by_name(const struct tree *t, struct tree_place p, const struct tree_place *source)
{
    uint32_t module = module_of(t, &p);
    if (!module || t->modules[module].is_runtime)
        return 1;
    for (; p.node; tree_next(t, &p)) {
        if (module_of(t, &p) == module && !is_bare(t, &p))
            return 1;
        if (p.node == source->node)
            return 0;
    }
    return 1;
}

static int is_under_python(const struct tree *t, struct tree_place p)
{
    for (; p.node; tree_next(t, &p))
        if (p.frame && t->frames[p.frame].is_python)
            return 1;
    return 0;
}

struct tree_place tree_self(const struct tree *t, struct tree_place place, enum tree_language language)
{
    struct seek seek = seek_from(t, place, language);
    struct tree_place source = search(t, place, &seek, 1), nearest = {0};
    int has_python = language == TREE_BOTH && is_under_python(t, place), is_foreign = 0;
    if (language == TREE_PYTHON)
        return source.node ? source : search(t, place, &seek, 0);
    for (struct tree_place p = place; p.node && !is_foreign; tree_next(t, &p)) {
        if (p.node == source.node && p.frame == source.frame)
            break;
        int is_own_line = is_bare(t, &p) && !t->addresses[t->nodes[p.node].address].is_skipped;
        if (is_passed(t, &p, &seek) || (is_own_line && is_of_allocator(t, p)))
            continue;
        if (!nearest.node && (is_own_line || (p.frame && t->frames[p.frame].function)))
            nearest = p;
        is_foreign = is_own_line && source.node && !has_python && !is_called_by_name(t, p, &source);
    }
    if (source.node && !is_foreign)
        return source;
    return nearest.node && is_bare(t, &nearest) ? nearest : search(t, place, &seek, 0);
}

uint32_t tree_place_line(struct tree *t, const struct tree_place *p)
{
    const struct tree_frame *f = p->frame ? &t->frames[p->frame] : NULL;
    if (f && (f->function || f->has_source))
        return f->line;
    return p->node ? tree_address_line(t, t->nodes[p->node].address) : 0;
}
