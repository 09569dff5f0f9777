/*
 * The recording as arrays: module keys, addresses with their frames, the stack tree in preorder, and the sites in the
 * order of that tree, so that the sites of every subtree lie together. The database may be hostile: ids may be sparse,
 * parents may form cycles, references may lead nowhere.
 */
#include "finish_private.h"

#include "../../common/array.h"
#include "../../common/ids.h"
#include "../../common/kind.h"
#include "../../common/module_kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIXES_MAX 16

struct load_module {
    uint32_t key;
    uint8_t is_ours, is_runtime, is_own; /* as in model_address */
};

struct load {
    sqlite3 *db;
    struct error *err;
    struct model *m;
    struct ids modules, functions, files, addresses, nodes;
    struct load_module *of_modules; /* by place in the table */
    size_t module_capacity, parent_capacity;
    char *prefixes[PREFIXES_MAX]; /* of Python interpreters, with their last slash */
    size_t prefix_count;
    int64_t *parents; /* of nodes, by place in the table: stack_id, the node's own without one; NULL: packed */
    const struct packed_values *packed_parents; /* NULL: plain rows */
    uint32_t *new_index;                        /* of nodes: by place in the table + 1 */
};

/* Calls row for every row of the query. */
static int each(struct load *l, const char *sql, void (*row)(struct load *, sqlite3_stmt *))
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(l->db, sql, &s, l->err);
    if (rc)
        return rc;
    int step;
    size_t n = 0;
    while ((step = sqlite3_step(s)) == SQLITE_ROW && n++ < UINT32_MAX / 4) {
        row(l, s);
        if (finish_interrupted) {
            sqlite3_finalize(s);
            return -EINTR;
        }
    }
    if (step != SQLITE_DONE)
        rc = step == SQLITE_ROW ? error_set(l->err, EFBIG, "too many rows to account for") : db_error(l->db, l->err);
    sqlite3_finalize(s);
    return rc;
}

/* --- modules, names, frames -------------------------------------------------------------------------------------- */

static void function_row(struct load *l, sqlite3_stmt *s)
{
    struct model *m = l->m;
    ids_add(&l->functions, sqlite3_column_int64(s, 0));
    *ARRAY_ADD(m->functions, m->function_count, m->function_capacity) =
        (struct model_function){sqlite3_column_int64(s, 0), sqlite3_column_int(s, 1)};
}

static void file_row(struct load *l, sqlite3_stmt *s)
{
    struct model *m = l->m;
    ids_add(&l->files, sqlite3_column_int64(s, 0));
    *ARRAY_ADD(m->files, m->file_count, m->file_capacity) = (struct model_file){
        .id = sqlite3_column_int64(s, 0), .has_source = sqlite3_column_int(s, 1) || access(db_text(s, 2), R_OK) == 0};
}

/* A Python interpreter's directory, from PREFIX/bin/python3.11 or PREFIX/lib/libpython3.11.so.1.0. */
static void prefix_row(struct load *l, sqlite3_stmt *s)
{
    const char *path = db_text(s, 0), *name = strrchr(path, '/');
    if (!name || l->prefix_count == PREFIXES_MAX || (strncmp(name, "/python3", 8) && strncmp(name, "/libpython3", 11)))
        return;
    while (name > path && *--name != '/')
        ;
    if (name == path)
        return;
    char *prefix = xstrdup(path);
    prefix[name - path + 1] = 0;
    l->prefixes[l->prefix_count++] = prefix;
}

/* What a package manager, pip or the interpreter's own installation put there is not the user's code. */
static int is_installed(const struct load *l, const char *path)
{
    static const char *const systems[] = {"/usr/", "/lib", "/opt/", "/nix/", "/snap/"};
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib-dynload/"};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (strncmp(path, systems[i], strlen(systems[i])) == 0)
            return 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(path, parts[i]))
            return 1;
    for (size_t i = 0; i < l->prefix_count; i++)
        if (strncmp(path, l->prefixes[i], strlen(l->prefixes[i])) == 0)
            return 1;
    return 0;
}

static void module_row(struct load *l, sqlite3_stmt *s)
{
    const char *path = db_text(s, 2);
    int64_t key = sqlite3_column_int64(s, 1);
    ids_add(&l->modules, sqlite3_column_int64(s, 0));
    ARRAY_ROOM(l->of_modules, l->modules.count, l->module_capacity);
    struct load_module *m = &l->of_modules[l->modules.count - 1];
    *m = (struct load_module){.key = key > 0 && key < UINT32_MAX ? (uint32_t)key : 0};
    m->is_ours = (uint8_t)module_is_ours(path);
    m->is_runtime = (uint8_t)module_is_runtime(path);
    m->is_own = !m->is_ours && !m->is_runtime && !is_installed(l, path);
    if ((size_t)key + 1 > l->m->module_count)
        l->m->module_count = (size_t)key + 1;
}

static void address_row(struct load *l, sqlite3_stmt *s)
{
    struct model *m = l->m;
    ids_add(&l->addresses, sqlite3_column_int64(s, 0));
    struct model_address *a = ARRAY_ADD(m->addresses, m->address_count, m->address_capacity);
    *a = (struct model_address){.offset = sqlite3_column_int64(s, 2)};
    uint32_t module = ids_column(&l->modules, s, 1);
    if (!module)
        return;
    const struct load_module *of = &l->of_modules[module - 1];
    a->module = of->key;
    a->is_ours = of->is_ours;
    a->is_runtime = of->is_runtime;
    a->is_own = of->is_own;
}

static void frame_row(struct load *l, sqlite3_stmt *s)
{
    struct model *m = l->m;
    uint32_t address = ids_column(&l->addresses, s, 0);
    if (!address)
        return;
    struct model_address *a = &m->addresses[address];
    if (!a->frame_count)
        a->first_frame = (uint32_t)m->frame_count;
    a->frame_count++;
    struct model_frame *f = ARRAY_ADD(m->frames, m->frame_count, m->frame_capacity);
    int64_t line = sqlite3_column_int64(s, 3);
    *f = (struct model_frame){
        .function = ids_column(&l->functions, s, 1), .file = ids_column(&l->files, s, 2), .address = address};
    f->is_python = strcmp(db_text(s, 4), "python") == 0;
    f->line = f->file && line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

/* --- the stack tree ---------------------------------------------------------------------------------------------- */

static void node_row(struct load *l, sqlite3_stmt *s)
{
    struct model *m = l->m;
    int64_t id = sqlite3_column_int64(s, 0);
    ids_add(&l->nodes, id);
    ARRAY_ROOM(l->parents, l->nodes.count, l->parent_capacity);
    l->parents[l->nodes.count - 1] = sqlite3_column_type(s, 2) == SQLITE_NULL ? id : sqlite3_column_int64(s, 2);
    *ARRAY_ADD(m->nodes, m->node_count, m->node_capacity) = (struct model_node){0, ids_column(&l->addresses, s, 1)};
}

static int read_packed(struct load *l, enum packed_column column, const struct packed_values **values)
{
    int rc = packed_read(l->m->packed, column, values);
    return rc ? error_set(l->err, -rc, "%s: %s", sqlite3_db_filename(l->db, "main"), packed_error(rc)) : 0;
}

static int load_packed_nodes(struct load *l)
{
    struct model *m = l->m;
    const struct packed_values *addresses;
    int rc = read_packed(l, PACKED_stack_address_id, &addresses);
    if (rc == 0)
        rc = read_packed(l, PACKED_stack_parent_id, &l->packed_parents);
    if (rc)
        return rc;
    size_t count = (size_t)packed_count(m->packed, PACKED_TABLE_stack);
    ARRAY_ROOM(m->nodes, count + 1, m->node_capacity);
    for (size_t i = 1; i <= count; i++)
        m->nodes[i] = (struct model_node){0, ids_find(&l->addresses, (int64_t)packed_at(addresses, (uint32_t)i))};
    m->node_count = count + 1;
    return 0;
}

static int load_nodes(struct load *l)
{
    if (packed_has(l->db, PACKED_TABLE_stack))
        return load_packed_nodes(l);
    return each(l, "SELECT stack_id, address_id, parent_id FROM main.stack ORDER BY stack_id", node_row);
}

/* By place in the table + 1; 0: none. */
static uint32_t node_parent(const struct load *l, size_t i)
{
    if (l->packed_parents)
        return (uint32_t)packed_at(l->packed_parents, (uint32_t)i);
    return l->parents[i - 1] == l->nodes.ids[i - 1] ? 0 : ids_find(&l->nodes, l->parents[i - 1]);
}

struct links { /* first child and next sibling, by old index */
    uint32_t *parent, *child, *sibling;
};

/* Numbers the subtree of root in preorder, from next on. Returns the next free number. */
static uint32_t number_subtree(struct load *l, struct links *k, uint32_t root, uint32_t next)
{
    uint32_t node = root;
    for (;;) {
        l->new_index[node] = next++;
        if (k->child[node] && !l->new_index[k->child[node]]) {
            node = k->child[node];
            continue;
        }
        for (;;) {
            if (node == root)
                return next;
            if (k->sibling[node]) {
                node = k->sibling[node];
                break;
            }
            node = k->parent[node];
        }
    }
}

static void link_parents(struct load *l, struct links *k)
{
    size_t n = l->m->node_count;
    /* children in ascending order: the list is built from its end */
    for (size_t i = n; i-- > 1;) {
        uint32_t parent = k->parent[i];
        if (!parent)
            continue;
        k->sibling[i] = k->child[parent];
        k->child[parent] = (uint32_t)i;
    }
}

/* Nodes that no walk from a root reaches lie on or below a cycle: those become roots. */
static void break_cycles(struct links *k, size_t n)
{
    uint8_t *state = xcalloc(n, 1); /* 1: on the walk, 2: leads to a root */
    for (size_t i = 1; i < n; i++) {
        uint32_t at = (uint32_t)i;
        while (at && !state[at]) {
            state[at] = 1;
            at = k->parent[at];
        }
        if (at && state[at] == 1)
            k->parent[at] = 0;
        for (at = (uint32_t)i; at && state[at] == 1; at = k->parent[at])
            state[at] = 2;
    }
    free(state);
}

/* Walks from the roots number the nodes that they reach. */
static void number_linked(struct load *l, struct links *k)
{
    size_t n = l->m->node_count;
    uint32_t next = 1;
    k->child = xcalloc(n, sizeof *k->child);
    k->sibling = xcalloc(n, sizeof *k->sibling);
    break_cycles(k, n);
    link_parents(l, k);
    for (size_t i = 1; i < n; i++)
        if (!k->parent[i])
            next = number_subtree(l, k, (uint32_t)i, next);
    if (next != n)
        bug("%zu nodes, %u numbered", n, next);
    free(k->child);
    free(k->sibling);
}

/* Where every caller comes before its callees, as the collector writes them: from the sizes of the subtrees. */
static void number_ascending(struct load *l, const uint32_t *parent)
{
    size_t n = l->m->node_count;
    uint32_t *sizes = xcalloc(n, sizeof *sizes), *next = sizes; /* the next free number in the subtree of a node */
    for (size_t i = n; i-- > 1;) {
        sizes[i]++;
        if (parent[i])
            sizes[parent[i]] += sizes[i];
    }
    next[0] = 1;
    for (size_t i = 1; i < n; i++) {
        uint32_t size = sizes[i];
        l->new_index[i] = next[parent[i]];
        next[parent[i]] += size;
        next[i] = l->new_index[i] + 1;
    }
    free(sizes);
}

static int is_ascending(const uint32_t *parent, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (parent[i] >= i)
            return 0;
    return 1;
}

static void order_nodes(struct load *l)
{
    struct model *m = l->m;
    size_t n = m->node_count;
    struct links k = {.parent = xcalloc(n, sizeof *k.parent)};
    l->new_index = xcalloc(n, sizeof *l->new_index);
    for (size_t i = 1; i < n; i++)
        k.parent[i] = node_parent(l, i);
    if (is_ascending(k.parent, n))
        number_ascending(l, k.parent);
    else
        number_linked(l, &k);
    struct model_node *nodes = xcalloc(n, sizeof *nodes);
    for (size_t i = 1; i < n; i++)
        nodes[l->new_index[i]] = (struct model_node){l->new_index[k.parent[i]], m->nodes[i].address};
    free(m->nodes);
    m->nodes = nodes;
    free(k.parent);
}

/* --- sites ------------------------------------------------------------------------------------------------------- */

/* In the order of their first sites, until order_sites. */
static uint32_t group_of(struct model *m, int64_t device, const char *kind)
{
    for (size_t i = m->group_count; i-- > 0;)
        if (m->groups[i].device == device && strncmp(m->groups[i].kind, kind, sizeof m->groups[i].kind - 1) == 0)
            return (uint32_t)i;
    uint32_t group = (uint32_t)m->group_count;
    struct model_group *g = ARRAY_ADD(m->groups, m->group_count, m->group_capacity);
    *g = (struct model_group){.device = device, .first_site = group, .peak_bytes = -1, .device_peak_bytes = -1};
    memcpy(g->kind, kind, strnlen(kind, sizeof g->kind - 1));
    return group;
}

static uint32_t node_of_stack(const struct load *l, uint64_t stack_id)
{
    if (!l->packed_parents)
        return stack_id <= INT64_MAX ? l->new_index[ids_find(&l->nodes, (int64_t)stack_id)] : 0;
    return stack_id < l->m->node_count ? l->new_index[stack_id] : 0;
}

static void site_row(struct load *l, sqlite3_stmt *s)
{
    struct model *m = l->m;
    struct model_site *site = ARRAY_ADD(m->sites, m->site_count, m->site_capacity);
    *site = (struct model_site){.id = sqlite3_column_int64(s, 0)};
    site->node = sqlite3_column_type(s, 1) == SQLITE_NULL ? 0 : node_of_stack(l, (uint64_t)sqlite3_column_int64(s, 1));
    site->group = group_of(m, sqlite3_column_int64(s, 2), db_text(s, 3));
    m->groups[site->group].site_count++;
    for (int i = 0; i < VALUE_COUNT; i++)
        if (i != STAT_own_largest)
            site->stat[i] = sqlite3_column_int64(s, 4 + i - (i > STAT_own_largest));
    site->stat[STAT_own_largest] = site->stat[STAT_own_peak_bytes];
}

static int by_device(const void *a, const void *b)
{
    const struct model_group *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return strcmp(x->kind, y->kind);
}

/* The place of each site: by group, then by node, then by id, in which order they come. */
static uint32_t *places(const struct model *m, uint32_t *next_of_group)
{
    uint32_t *places = xcalloc(m->site_count, sizeof *places), *order = xcalloc(m->site_count, sizeof *order);
    uint32_t *next = xcalloc(m->node_count + 1, sizeof *next);
    for (size_t i = 0; i < m->site_count; i++)
        next[m->sites[i].node + 1]++;
    for (size_t i = 0; i < m->node_count; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < m->site_count; i++)
        order[next[m->sites[i].node]++] = (uint32_t)i;
    for (size_t i = 0; i < m->site_count; i++)
        places[order[i]] = next_of_group[m->sites[order[i]].group]++;
    free(next);
    free(order);
    return places;
}

/* In place: a second array would be as large as all else together. */
static void move_sites(struct model *m, uint32_t *places)
{
    for (uint32_t i = 0; i < m->site_count; i++)
        while (places[i] != i) {
            uint32_t at = places[i];
            struct model_site site = m->sites[at];
            m->sites[at] = m->sites[i];
            m->sites[i] = site;
            places[i] = places[at];
            places[at] = at;
        }
}

/* Groups by device and kind, and sites by group and node. SQLite would carry all columns through its sorter. */
static void order_sites(struct model *m)
{
    if (!m->site_count)
        return;
    uint32_t *place = xcalloc(m->group_count, sizeof *place), *next = xcalloc(m->group_count, sizeof *next), first = 0;
    qsort(m->groups, m->group_count, sizeof *m->groups, by_device);
    for (size_t i = 0; i < m->group_count; i++) {
        place[m->groups[i].first_site] = (uint32_t)i;
        next[i] = m->groups[i].first_site = first;
        first += m->groups[i].site_count;
    }
    for (size_t i = 0; i < m->site_count; i++)
        m->sites[i].group = place[m->sites[i].group];
    uint32_t *of_sites = places(m, next);
    move_sites(m, of_sites);
    free(of_sites);
    free(place);
    free(next);
}

static void total_row(struct load *l, sqlite3_stmt *s)
{
    int64_t device = sqlite3_column_int64(s, 0);
    const char *kind = db_text(s, 1);
    for (size_t i = 0; i < l->m->group_count; i++) {
        struct model_group *g = &l->m->groups[i];
        if (g->device != device)
            continue;
        if (strcmp(kind, "all") == 0)
            g->device_peak_bytes = sqlite3_column_int64(s, 2);
        else if (strcmp(kind, g->kind) == 0)
            g->peak_bytes = sqlite3_column_int64(s, 2);
    }
}

static void group_devices(struct model *m)
{
    for (size_t i = 0; i < m->group_count; i++) {
        struct model_group *g = &m->groups[i];
        size_t first = i, end = i + 1;
        while (first > 0 && m->groups[first - 1].device == g->device)
            first--;
        while (end < m->group_count && m->groups[end].device == g->device)
            end++;
        g->device_first = m->groups[first].first_site;
        g->device_count = m->groups[end - 1].first_site + m->groups[end - 1].site_count - g->device_first;
    }
}

#define STAT(column, name, unit, combine, text) ", " #column
#define SCANNED(column, name, unit, text)       ", r." #column
static const char site_sql[] = "SELECT s.site_id, stack_id, device_id, kind"
#include "../../common/stat.def"
                               " FROM main.site s LEFT JOIN resident_sum r USING(site_id) ORDER BY s.site_id";
#undef STAT

#define STAT(...)
#define SCANNED(column, name, unit, text) ", " #column
static const char scanned_sql[] = "SELECT site_id"
#include "../../common/stat.def"
                                  " FROM resident_sum";
#undef STAT

/* Sites are still in their order, without gaps. */
static void scanned_row(struct load *l, sqlite3_stmt *s)
{
    int64_t id = sqlite3_column_int64(s, 0);
    if (id < 1 || (uint64_t)id > l->m->site_count)
        return;
    for (int i = STAT_own_largest + 1; i < VALUE_COUNT; i++)
        l->m->sites[id - 1].stat[i] = sqlite3_column_int64(s, i - STAT_own_largest);
}

static int load_packed_sites(struct load *l)
{
    struct model *m = l->m;
    const struct packed_values *columns[PACKED_site_line_id];
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_site_line_id; c++) {
        int rc = read_packed(l, c, &columns[c]);
        if (rc)
            return rc;
    }
    uint32_t count = (uint32_t)packed_count(m->packed, PACKED_TABLE_site);
    ARRAY_ROOM(m->sites, count, m->site_capacity);
    for (uint32_t i = 1; i <= count; i++) {
        struct model_site *site = &m->sites[m->site_count++];
        *site = (struct model_site){.id = i, .node = node_of_stack(l, packed_at(columns[PACKED_site_stack_id], i))};
        site->group = group_of(m, (int64_t)packed_at(columns[PACKED_site_device_id], i),
                               kind_name((unsigned)packed_at(columns[PACKED_site_kind], i)));
        m->groups[site->group].site_count++;
        for (int k = 0; k < STAT_COUNT; k++)
            site->stat[k] = (int64_t)packed_at(columns[PACKED_STATS + k], i);
        site->stat[STAT_own_largest] = site->stat[STAT_own_peak_bytes];
    }
    return each(l, scanned_sql, scanned_row);
}

static int load_sites(struct load *l)
{
    int rc = packed_has(l->db, PACKED_TABLE_site) ? load_packed_sites(l) : each(l, site_sql, site_row);
    if (rc)
        return rc;
    order_sites(l->m);
    group_devices(l->m);
    return each(l, "SELECT device_id, kind, peak_active_bytes FROM total", total_row);
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static void first_rows(struct model *m)
{
    ARRAY_ADD(m->functions, m->function_count, m->function_capacity);
    ARRAY_ADD(m->files, m->file_count, m->file_capacity);
    ARRAY_ADD(m->addresses, m->address_count, m->address_capacity);
    ARRAY_ADD(m->frames, m->frame_count, m->frame_capacity);
    ARRAY_ADD(m->nodes, m->node_count, m->node_capacity);
    ARRAY_ADD(m->lines, m->line_count, m->line_capacity);
    m->module_count = 1;
}

int model_load(sqlite3 *db, struct model *m, struct error *err)
{
    *m = (struct model){.db = db, .packed = packed_open(db)};
    if (!m->packed)
        return error_set(err, ENOMEM, "out of memory");
    first_rows(m);
    struct load l = {.db = db, .err = err, .m = m};
    int rc = db_exec(
        db,
        "DELETE FROM module_key;"
        "INSERT INTO module_key(path, build_id) SELECT DISTINCT path, build_id FROM module ORDER BY path, build_id;",
        err);
    if (rc == 0)
        rc = each(&l, "SELECT DISTINCT path FROM module WHERE path GLOB '*python3*'", prefix_row);
    if (rc == 0)
        rc = each(&l,
                  "SELECT m.module_id, k.key_id, m.path FROM module m JOIN module_key k ON k.path = m.path AND "
                  "k.build_id IS m.build_id GROUP BY m.module_id ORDER BY m.module_id",
                  module_row);
    if (rc == 0)
        rc = each(&l, "SELECT function_id, is_allocator FROM function ORDER BY function_id", function_row);
    if (rc == 0)
        rc = each(&l, "SELECT file_id, source IS NOT NULL, path FROM file ORDER BY file_id", file_row);
    if (rc == 0)
        rc = each(&l, "SELECT address_id, module_id, offset FROM address ORDER BY address_id", address_row);
    if (rc == 0)
        rc = each(
            &l, "SELECT address_id, function_id, file_id, line, language FROM frame ORDER BY address_id, inline_depth",
            frame_row);
    if (rc == 0)
        rc = load_nodes(&l);
    if (rc == 0)
        order_nodes(&l);
    if (rc == 0)
        rc = load_sites(&l);
    free(l.modules.ids);
    free(l.functions.ids);
    free(l.files.ids);
    free(l.addresses.ids);
    free(l.nodes.ids);
    free(l.of_modules);
    for (size_t i = 0; i < l.prefix_count; i++)
        free(l.prefixes[i]);
    free(l.parents);
    free(l.new_index);
    return rc;
}

void model_free(struct model *m)
{
    packed_close(m->packed);
    free(m->functions);
    free(m->files);
    free(m->addresses);
    free(m->frames);
    free(m->nodes);
    free(m->sites);
    free(m->groups);
    free(m->lines);
    memset(m, 0, sizeof *m);
}
