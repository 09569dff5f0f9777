#include "diff_tree.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "../../common/text.h"
#include "diff_private.h"
#include "site_rows.h"
#include "tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_LIMIT = 64 << 20, DEVICES_MOST = 64 };

const int diff_tree_stats[DIFF_TREE_STATS] = {STAT_at_peak_bytes, STAT_end_bytes, STAT_alloc_bytes, STAT_alloc_count,
                                              STAT_temporary_count};

struct names { /* of a function */
    char *name, *file;
};

struct loading {
    struct diff_state state; /* for the modules' builds */
    struct diff_tree *tree;
    struct text_map frame_of, device_of;
    struct map node_of, leaf_of;
    struct buf key;
    /* of the recording at hand */
    struct tree stacks;
    struct names *names;         /* by function */
    uint32_t *frame_of_function; /* by function: frames + 1; 0: not yet */
    uint32_t *frame_of_address;  /* the same of code without a symbol */
    uint32_t *node_of_stack;     /* by node of stacks: nodes + 1; 0: not yet */
    int side;
};

/* --- functions --- */

static int read_names(struct loading *l, sqlite3 *db, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        db, "SELECT f.function_id, f.name, p.path FROM function f LEFT JOIN file p ON p.file_id = f.file_id", &s, err);
    while (db_next(s, &rc, err)) {
        struct names *names = &l->names[ids_column(&l->stacks.function_ids, s, 0)];
        free(names->name);
        free(names->file);
        *names = (struct names){db_own_text(s, 1), NULL};
        if (sqlite3_column_type(s, 2) != SQLITE_NULL)
            names->file = xstrdup(diff_new_path(&l->state, l->side, db_text(s, 2)));
    }
    sqlite3_finalize(s);
    return rc;
}

/* The frame of the key at hand, made where there is none. */
static uint32_t frame_of_key(struct loading *l, int *is_new)
{
    struct diff_tree *t = l->tree;
    uint32_t *slot = text_map_slot(&l->frame_of, l->key.data, l->key.length);
    *is_new = *slot == 0;
    if (*is_new) {
        ARRAY_ADD(t->frames, t->frame_count, t->frame_capacity);
        *slot = t->frame_count;
    }
    return *slot - 1;
}

static uint32_t function_frame(struct loading *l, const struct tree_frame *f, const char *module)
{
    const struct names *names = &l->names[f->function];
    const char *name = names->name ? names->name : "";
    int is_new;
    struct buf bare = BUF(KEY_LIMIT);
    if (f->is_python)
        buf_puts(&bare, name);
    else
        diff_bare_name(name, &bare);
    buf_reset(&l->key);
    diff_key(&l->key, buf_text(&bare));
    diff_key(&l->key, f->is_python && names->file ? text_filename(names->file) : NULL);
    buf_free(&bare);
    uint32_t number = frame_of_key(l, &is_new);
    if (is_new)
        l->tree->frames[number] =
            (struct diff_tree_frame){.name = xstrdup(name),
                                     .file = xstrdup_if(names->file),
                                     .module = xstrdup_if(f->is_python ? NULL : module),
                                     .is_python = f->is_python,
                                     .is_allocator = l->stacks.functions[f->function].is_allocator};
    return number;
}

/* Of another build an offset says nothing: the module's code is one function then, as it is in the rows. */
static uint32_t address_frame(struct loading *l, uint32_t address)
{
    const struct tree_address *a = &l->stacks.addresses[address];
    const char *module = a->module ? l->stacks.modules[a->module].name : NULL;
    const int has_offset = !module || diff_is_one_build(&l->state, module);
    int is_new;
    buf_reset(&l->key);
    diff_key(&l->key, NULL);
    diff_key(&l->key, module);
    if (has_offset)
        buf_printf(&l->key, "%" PRIx64, (uint64_t)a->offset);
    uint32_t number = frame_of_key(l, &is_new);
    if (!is_new)
        return number;
    struct buf name = BUF(KEY_LIMIT);
    buf_puts(&name, module ? module : "");
    if (has_offset)
        buf_printf(&name, "%s0x%" PRIx64, module ? "+" : "", (uint64_t)a->offset);
    else
        buf_puts(&name, " (no symbols)");
    l->tree->frames[number] =
        (struct diff_tree_frame){.name = xstrdup(buf_text(&name)), .module = xstrdup_if(module), .is_unknown = 1};
    buf_free(&name);
    return number;
}

static uint32_t frame_of_address(struct loading *l, uint32_t address)
{
    uint32_t *known = &l->frame_of_address[address];
    if (!*known)
        *known = address_frame(l, address) + 1;
    return *known - 1;
}

static uint32_t frame_of(struct loading *l, uint32_t address, uint32_t frame)
{
    const struct tree_frame *f = &l->stacks.frames[frame];
    const struct tree_address *a = &l->stacks.addresses[address];
    uint32_t *known = &l->frame_of_function[f->function];
    if (!f->function)
        return frame_of_address(l, address);
    if (!*known)
        *known = function_frame(l, f, a->module ? l->stacks.modules[a->module].name : NULL) + 1;
    return *known - 1;
}

/* --- the tree --- */

static uint32_t child(struct loading *l, uint32_t parent, uint32_t frame)
{
    struct diff_tree *t = l->tree;
    uint32_t number = map_number_or(&l->node_of, parent, frame, t->node_count);
    if (number == t->node_count)
        *ARRAY_ADD(t->nodes, t->node_count, t->node_capacity) = (struct diff_tree_node){parent, frame};
    return number;
}

/* The frames of an address below a node: the outermost of those that were inlined first. */
static uint32_t below(struct loading *l, uint32_t parent, uint32_t address)
{
    const struct tree_address *a = &l->stacks.addresses[address];
    if (!address || l->stacks.modules[a->module].is_ours)
        return parent;
    if (!a->frame_count)
        return child(l, parent, frame_of_address(l, address));
    for (uint32_t i = a->frame_count; i-- > 0;)
        parent = child(l, parent, frame_of(l, address, a->first_frame + i));
    return parent;
}

/* A cycle of parents ends at the depth that no recorded stack has. */
static uint32_t node_of_stack(struct loading *l, uint32_t stack)
{
    uint32_t path[TREE_DEPTH_MAX];
    int depth = 0;
    for (; stack && !l->node_of_stack[stack] && depth < TREE_DEPTH_MAX; stack = l->stacks.nodes[stack].parent)
        path[depth++] = stack;
    uint32_t node = stack && l->node_of_stack[stack] ? l->node_of_stack[stack] - 1 : 0;
    while (depth > 0) {
        stack = path[--depth];
        node = below(l, node, l->stacks.nodes[stack].address);
        l->node_of_stack[stack] = node + 1;
    }
    return node;
}

/* --- sites --- */

/* MAP_NONE where a file has more devices than any machine. */
static uint32_t device_of(struct loading *l, const char *name)
{
    struct diff_tree *t = l->tree;
    uint32_t *slot = text_map_slot(&l->device_of, name, strlen(name));
    if (!*slot && t->device_count == DEVICES_MOST)
        return MAP_NONE;
    if (!*slot) {
        *ARRAY_ADD(t->devices, t->device_count, t->device_capacity) = xstrdup(name);
        *slot = t->device_count;
    }
    return *slot - 1;
}

static int read_devices(struct loading *l, sqlite3 *db, struct map *device_of_id, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT device_id, name FROM device ORDER BY device_id", &s, err);
    while (db_next(s, &rc, err)) {
        uint32_t device = device_of(l, db_text(s, 1));
        if (device != MAP_NONE)
            map_set_number(device_of_id, (uint64_t)sqlite3_column_int64(s, 0), 0, device);
    }
    sqlite3_finalize(s);
    return rc;
}

static struct diff_tree_leaf *leaf_of(struct loading *l, uint32_t node, uint32_t device)
{
    struct diff_tree *t = l->tree;
    uint32_t number = map_number_or(&l->leaf_of, node, device, t->leaf_count);
    if (number == t->leaf_count)
        *ARRAY_ADD(t->leaves, t->leaf_count, t->leaf_capacity) =
            (struct diff_tree_leaf){.node = node, .device = device};
    return &t->leaves[number];
}

static int read_sites(struct loading *l, sqlite3 *db, struct error *err)
{
    enum packed_column columns[2 + DIFF_TREE_STATS] = {PACKED_site_stack_id, PACKED_site_device_id};
    struct map device_of_id = {0};
    struct site_rows rows;
    for (int i = 0; i < DIFF_TREE_STATS; i++)
        columns[2 + i] = (enum packed_column)(PACKED_STATS + diff_tree_stats[i]);
    int rc = read_devices(l, db, &device_of_id, err);
    if (rc == 0) {
        rc = site_rows_open(db, columns, 2 + DIFF_TREE_STATS, &rows, err);
        int more = rc;
        while (rc == 0 && (more = site_rows_next(&rows, err)) == 1) {
            uint32_t device = map_number(&device_of_id, (uint64_t)site_rows_value(&rows, 1), 0);
            if (device == MAP_NONE)
                continue;
            uint32_t node = node_of_stack(l, tree_node(&l->stacks, site_rows_value(&rows, 0)));
            struct diff_tree_leaf *leaf = leaf_of(l, node, device);
            for (int i = 0; i < DIFF_TREE_STATS; i++)
                sum_add(&leaf->values[l->side][i], site_rows_value(&rows, 2 + i));
        }
        rc = more;
        site_rows_close(&rows);
    }
    map_close(&device_of_id);
    return rc;
}

/* --- both --- */

static int load_side(struct loading *l, sqlite3 *db, struct error *err)
{
    int rc = tree_open(db, &l->stacks, err);
    const uint32_t functions = l->stacks.function_count + 1;
    l->names = xcalloc(functions, sizeof *l->names);
    l->frame_of_function = xcalloc(functions, sizeof *l->frame_of_function);
    l->frame_of_address = xcalloc(l->stacks.address_count + 1ul, sizeof *l->frame_of_address);
    l->node_of_stack = xcalloc(l->stacks.node_count + 1ul, sizeof *l->node_of_stack);
    if (rc == 0)
        rc = read_names(l, db, err);
    if (rc == 0)
        rc = read_sites(l, db, err);
    for (uint32_t i = 0; i < functions; i++) {
        free(l->names[i].name);
        free(l->names[i].file);
    }
    void *arrays[] = {l->names, l->frame_of_function, l->frame_of_address, l->node_of_stack};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    tree_close(&l->stacks);
    return rc;
}

int diff_tree_load(sqlite3 *const dbs[DIFF_SIDES], struct diff_tree *tree, struct error *err)
{
    struct loading l = {.tree = tree, .key = BUF(KEY_LIMIT)};
    *tree = (struct diff_tree){0};
    ARRAY_ADD(tree->nodes, tree->node_count, tree->node_capacity);
    for (int side = 0; side < DIFF_SIDES; side++) {
        l.state.side[side].dbs = &dbs[side];
        l.state.side[side].count = 1;
    }
    int rc = diff_load_modules(&l.state, err);
    if (rc == 0)
        rc = diff_load_python(&l.state, err);
    if (rc == 0)
        diff_match_files(&l.state);
    for (l.side = DIFF_NEW; rc == 0 && l.side >= DIFF_OLD; l.side--) /* the new one's names are those that are shown */
        rc = load_side(&l, dbs[l.side], err);
    for (int side = 0; side < DIFF_SIDES; side++)
        diff_close_side(&l.state.side[side]);
    text_map_close(&l.state.modules);
    free(l.state.builds);
    text_map_close(&l.frame_of);
    text_map_close(&l.device_of);
    map_close(&l.node_of);
    map_close(&l.leaf_of);
    buf_free(&l.key);
    return rc;
}

void diff_tree_close(struct diff_tree *t)
{
    for (uint32_t i = 0; i < t->frame_count; i++) {
        free(t->frames[i].name);
        free(t->frames[i].file);
        free(t->frames[i].module);
    }
    for (uint32_t i = 0; i < t->device_count; i++)
        free(t->devices[i]);
    free(t->frames);
    free(t->nodes);
    free(t->leaves);
    free(t->devices);
    *t = (struct diff_tree){0};
}
