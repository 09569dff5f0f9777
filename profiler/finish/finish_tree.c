/*
 * The stack tree in preorder, and the sites in the order of that tree, so that the sites of every subtree lie together.
 * They follow from the recording alone. The database may be hostile: ids may be sparse, parents may form cycles,
 * references may lead nowhere.
 */
#include "finish_private.h"

#include "../../common/array.h"
#include "../../common/ids.h"
#include "../../common/kind.h"
#include "../../common/rotated.h"
#include "../../common/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tree {
    sqlite3 *db;
    struct error *err;
    struct model *m;
    struct ids addresses, nodes;
    size_t parent_capacity;
    int64_t *parents; /* of nodes, by place in the table: stack_id, the node's own without one; NULL: packed */
    const struct packed_values *packed_parents, *packed_addresses; /* NULL: plain rows */
    uint32_t *new_index;                                           /* of nodes: by place in the table + 1 */
    const struct packed_values *stacks;                            /* of sites; NULL: plain rows */
};

/* --- the stack tree ---------------------------------------------------------------------------------------------- */

static void address_row(void *arg, sqlite3_stmt *s)
{
    struct tree *l = arg;
    ids_add(&l->addresses, sqlite3_column_int64(s, 0));
}

static void node_row(void *arg, sqlite3_stmt *s)
{
    struct tree *l = arg;
    struct model *m = l->m;
    int64_t id = sqlite3_column_int64(s, 0);
    ids_add(&l->nodes, id);
    ARRAY_ROOM(l->parents, l->nodes.count, l->parent_capacity);
    l->parents[l->nodes.count - 1] = sqlite3_column_type(s, 2) == SQLITE_NULL ? id : sqlite3_column_int64(s, 2);
    *ARRAY_ADD(m->nodes, m->node_count, m->node_capacity) = (struct model_node){0, ids_column(&l->addresses, s, 1)};
}

static int read_packed(const struct model *m, enum packed_column column, const struct packed_values **values,
                       struct error *err)
{
    int rc = packed_read(m->packed, column, values);
    return rc ? error_set(err, -rc, "%s: %s", sqlite3_db_filename(m->db, "main"), packed_error(rc)) : 0;
}

static int read_packed_nodes(struct tree *l)
{
    struct model *m = l->m;
    int rc = read_packed(m, PACKED_stack_address_id, &l->packed_addresses, l->err);
    if (rc == 0)
        rc = read_packed(m, PACKED_stack_parent_id, &l->packed_parents, l->err);
    if (rc == 0)
        m->node_count = (size_t)packed_count(m->packed, PACKED_TABLE_stack) + 1;
    return rc;
}

static int read_plain_nodes(struct tree *l)
{
    return model_each(l->db, "SELECT stack_id, address_id, parent_id FROM main.stack ORDER BY stack_id", node_row, l,
                      l->err);
}

/* By place in the table + 1; 0: none. */
static uint32_t node_parent(const struct tree *l, size_t i)
{
    return l->parents[i - 1] == l->nodes.ids[i - 1] ? 0 : ids_find(&l->nodes, l->parents[i - 1]);
}

static uint32_t node_address(const struct tree *l, uint32_t i)
{
    if (l->packed_addresses)
        return ids_find(&l->addresses, (int64_t)packed_at(l->packed_addresses, i));
    return l->m->nodes[i].address;
}

struct links { /* first child and next sibling, by old index */
    uint32_t *parent, *child, *sibling;
};

/* Numbers the subtree of root in preorder, from next on. Returns the next free number. */
static uint32_t number_subtree(struct tree *l, struct links *k, uint32_t root, uint32_t next)
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

static void link_parents(struct tree *l, struct links *k)
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
static void number_linked(struct tree *l, struct links *k)
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
static void number_ascending(struct tree *l, const uint32_t *parent)
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

static void order_plain(struct tree *l, struct links *k)
{
    size_t n = l->m->node_count;
    k->parent = xcalloc(n, sizeof *k->parent);
    for (size_t i = 1; i < n; i++)
        k->parent[i] = node_parent(l, i);
    if (is_ascending(k->parent, n))
        number_ascending(l, k->parent);
    else
        number_linked(l, k);
}

static void order_nodes(struct tree *l)
{
    struct model *m = l->m;
    struct links k = {0};
    const uint32_t n = (uint32_t)m->node_count;
    l->new_index = xcalloc(n, sizeof *l->new_index);
    if (!l->packed_parents)
        order_plain(l, &k);
    else if (n > 1) /* a packed caller has a lower id, and no id is wide */
        number_ascending(l, l->packed_parents->narrow);
    const uint32_t *parent = k.parent ? k.parent : l->packed_parents->narrow;
    struct model_node *nodes = xcalloc(n, sizeof *nodes);
    for (uint32_t i = 1; i < n; i++)
        nodes[l->new_index[i]] = (struct model_node){l->new_index[parent[i]], node_address(l, i)};
    free(m->nodes);
    m->nodes = nodes;
    free(k.parent);
}

/* Where they stay in the order of the table: packed ones, of which each caller comes before its callees too. */
static void take_nodes(struct tree *l)
{
    struct model *m = l->m;
    ARRAY_ROOM(m->nodes, m->node_count, m->node_capacity);
    for (uint32_t i = 1; i < m->node_count; i++)
        m->nodes[i] = (struct model_node){(uint32_t)packed_at(l->packed_parents, i), node_address(l, i)};
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

static uint32_t node_of_stack(const struct tree *l, uint64_t stack_id)
{
    if (l->m->is_self_only)
        return stack_id < l->m->node_count ? (uint32_t)stack_id : 0;
    if (!l->packed_parents)
        return stack_id <= INT64_MAX ? l->new_index[ids_find(&l->nodes, (int64_t)stack_id)] : 0;
    return stack_id < l->m->node_count ? l->new_index[stack_id] : 0;
}

static struct model_site *add_site(struct model *m, int64_t id)
{
    struct model_site *site = ARRAY_ADD(m->sites, m->site_count, m->site_capacity);
    *site = (struct model_site){.id = id, .row = (uint32_t)m->site_count};
    return site;
}

/* --- their statistics -------------------------------------------------------------------------------------------- */

uint64_t *model_stats_add(struct model_stats *s, enum model_stat stat, size_t row_count)
{
    s->own[stat] = xcalloc(row_count + 1, sizeof *s->own[stat]);
    s->of[stat] = (struct packed_values){.wide = s->own[stat]};
    return s->own[stat];
}

void model_stats_free(struct model_stats *s)
{
    for (int i = 0; i < VALUE_COUNT; i++)
        free(s->own[i]);
    *s = (struct model_stats){.capacity = 0};
}

/* A row more of each. The largest own peak of one site is its own. */
static void grow_stats(struct model_stats *s, size_t row_count)
{
    size_t capacity = 0;
    for (int i = 0; i < VALUE_COUNT; i++) {
        if (i == STAT_own_largest)
            continue;
        capacity = s->capacity;
        ARRAY_ROOM(s->own[i], row_count + 1, capacity);
        s->of[i].wide = s->own[i];
    }
    s->of[STAT_own_largest] = s->of[STAT_own_peak_bytes];
    s->capacity = capacity;
}

static void site_row(void *arg, sqlite3_stmt *s)
{
    struct tree *l = arg;
    struct model *m = l->m;
    struct model_site *site = add_site(m, sqlite3_column_int64(s, 0));
    grow_stats(&m->stats, m->site_count);
    site->node = sqlite3_column_type(s, 1) == SQLITE_NULL ? 0 : node_of_stack(l, (uint64_t)sqlite3_column_int64(s, 1));
    site->group = group_of(m, sqlite3_column_int64(s, 2), db_text(s, 3));
    m->groups[site->group].site_count++;
    for (int i = 0; i < VALUE_COUNT; i++)
        if (i != STAT_own_largest)
            m->stats.own[i][site->row] = (uint64_t)sqlite3_column_int64(s, 4 + i - (i > STAT_own_largest));
}

static int by_device(const void *a, const void *b)
{
    const struct model_group *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return strcmp(x->kind, y->kind);
}

/* The site of each place: by group, then by node, then by id, in which order they come. */
static uint32_t *sites_in_order(const struct model *m, uint32_t *next_of_group)
{
    uint32_t *sites = xcalloc(m->site_count, sizeof *sites), *order = xcalloc(m->site_count, sizeof *order);
    uint32_t *next = xcalloc(m->node_count + 1, sizeof *next);
    for (size_t i = 0; i < m->site_count; i++)
        next[m->sites[i].node + 1]++;
    for (size_t i = 0; i < m->node_count; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < m->site_count; i++)
        order[next[m->sites[i].node]++] = (uint32_t)i;
    for (size_t i = 0; i < m->site_count; i++)
        sites[next_of_group[m->sites[order[i]].group]++] = order[i];
    free(next);
    free(order);
    return sites;
}

/* In place: a second array would be as large as all else together. sites: of each place, which is its own afterwards.
 */
static void move_sites(struct model *m, uint32_t *sites)
{
    for (uint32_t i = 0; i < m->site_count; i++) {
        struct model_site first = m->sites[i];
        uint32_t at = i;
        if (sites[i] == i)
            continue;
        for (uint32_t next; (next = sites[at]) != i; at = next) {
            m->sites[at] = m->sites[next];
            sites[at] = at;
        }
        m->sites[at] = first;
        sites[at] = at;
    }
}

/* Groups by device and kind. next: where the sites of each begin. */
static void order_groups(struct model *m, uint32_t *next)
{
    uint32_t *place = xcalloc(m->group_count, sizeof *place), first = 0;
    qsort(m->groups, m->group_count, sizeof *m->groups, by_device);
    for (size_t i = 0; i < m->group_count; i++) {
        place[m->groups[i].first_site] = (uint32_t)i;
        next[i] = m->groups[i].first_site = first;
        first += m->groups[i].site_count;
    }
    for (size_t i = 0; i < m->site_count; i++)
        m->sites[i].group = place[m->sites[i].group];
    free(place);
}

/* And sites by group and node. SQLite would carry all columns through its sorter. */
static void order_sites(struct model *m)
{
    if (!m->site_count)
        return;
    uint32_t *next = xcalloc(m->group_count, sizeof *next);
    order_groups(m, next);
    if (!m->is_self_only) {
        uint32_t *in_order = sites_in_order(m, next);
        move_sites(m, in_order);
        free(in_order);
    }
    free(next);
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
                               ", 0, 0 FROM main.site s LEFT JOIN resident_sum r USING(site_id) ORDER BY s.site_id";
#define SCANNED(column, name, unit, text) ", r." #column
static const char started_sql[] = "SELECT s.site_id, stack_id, device_id, kind"
#include "../../common/stat.def"
                                  ", i.start_bytes, i.start_count FROM main.site s LEFT JOIN resident_sum r "
                                  "USING(site_id) LEFT JOIN main.site_start i USING(site_id) ORDER BY s.site_id";
#undef STAT

/* The view resident_sum in the order of the table, added here: a sorter of all its rows would take longer than all else
 * of the sites. */
static const char scanned_sql[] =
    "SELECT r.site_id, c.is_peak, c.is_last, r.resident_bytes, r.shared_bytes, r.huge_bytes, r.swapped_bytes, "
    "r.untouched_bytes FROM resident_scan c CROSS JOIN resident_site r USING(scan_id)";

/* Those at the highest resident memory, in the order of the table. */
static const uint8_t at_peak[] = {STAT_resident_bytes, STAT_resident_shared_bytes, STAT_resident_huge_bytes,
                                  STAT_swapped_bytes, STAT_untouched_bytes};
#define SCANNED_SUMS (sizeof at_peak / sizeof *at_peak)

struct scans { /* of what model_scans reads */
    const struct model *m;
    void (*add)(void *arg, int64_t site_id, enum model_stat stat, uint64_t value);
    void *arg;
    struct error *err;
    int rc;
};

static void add_scanned(const struct scans *c, int64_t site_id, int is_peak, int is_last,
                        const int64_t values[SCANNED_SUMS])
{
    for (unsigned i = 0; is_peak && i < SCANNED_SUMS; i++)
        c->add(c->arg, site_id, at_peak[i], (uint64_t)values[i]);
    if (is_last)
        c->add(c->arg, site_id, STAT_resident_end_bytes, (uint64_t)values[0]);
}

static void scanned_row(void *arg, sqlite3_stmt *s)
{
    int64_t values[SCANNED_SUMS];
    for (unsigned i = 0; i < SCANNED_SUMS; i++)
        values[i] = sqlite3_column_int64(s, (int)i + 3);
    add_scanned(arg, sqlite3_column_int64(s, 0), sqlite3_column_int(s, 1), sqlite3_column_int(s, 2), values);
}

/* A packed look: its id, is_peak, is_last. */
static void packed_scan(void *arg, sqlite3_stmt *s)
{
    struct scans *c = arg;
    const struct packed_values *sites, *columns[SCANNED_SUMS];
    uint32_t row, last;
    int is_peak = sqlite3_column_int(s, 1), is_last = sqlite3_column_int(s, 2);
    packed_look_rows(c->m->packed, sqlite3_column_int64(s, 0), &row, &last);
    if (row > last || (!is_peak && !is_last))
        return;
    if (c->rc == 0)
        c->rc = read_packed(c->m, PACKED_resident_site_site_id, &sites, c->err);
    static const enum packed_column scanned[SCANNED_SUMS] = {
        PACKED_resident_site_resident_bytes, PACKED_resident_site_shared_bytes, PACKED_resident_site_huge_bytes,
        PACKED_resident_site_swapped_bytes, PACKED_resident_site_untouched_bytes};
    for (unsigned i = 0; i < SCANNED_SUMS && c->rc == 0; i++)
        c->rc = read_packed(c->m, scanned[i], &columns[i], c->err);
    for (; row <= last && c->rc == 0; row++) {
        int64_t values[SCANNED_SUMS];
        for (unsigned i = 0; i < SCANNED_SUMS; i++)
            values[i] = (int64_t)packed_at(columns[i], row);
        add_scanned(c, (int64_t)packed_at(sites, row), is_peak, is_last, values);
    }
}

static void start_row(void *arg, sqlite3_stmt *s)
{
    const struct scans *c = arg;
    c->add(c->arg, sqlite3_column_int64(s, 0), STAT_start_bytes, (uint64_t)sqlite3_column_int64(s, 1));
    c->add(c->arg, sqlite3_column_int64(s, 0), STAT_start_count, (uint64_t)sqlite3_column_int64(s, 2));
}

static int read_starts(struct scans *c)
{
    static const char sql[] = "SELECT site_id, start_bytes, start_count FROM main.site_start";
    return rotated_has_start(c->m->db) ? model_each(c->m->db, sql, start_row, c, c->err) : 0;
}

int model_scans(const struct model *m, void (*add)(void *arg, int64_t site_id, enum model_stat stat, uint64_t value),
                void *arg, struct error *err)
{
    struct scans c = {m, add, arg, err, 0};
    int start_rc = read_starts(&c);
    if (start_rc)
        return start_rc;
    if (!packed_has(m->db, PACKED_TABLE_resident_site))
        return model_each(m->db, scanned_sql, scanned_row, &c, err);
    long rows = packed_count(m->packed, PACKED_TABLE_resident_site);
    if (rows < 0)
        return error_set(err, (int)-rows, "%s: %s", sqlite3_db_filename(m->db, "main"), packed_error(rows));
    int rc = model_each(m->db, "SELECT scan_id, is_peak, is_last FROM resident_scan", packed_scan, &c, err);
    return rc ? rc : c.rc;
}

/* Sites are still in their order, without gaps. */
static void add_to_site(void *arg, int64_t site_id, enum model_stat stat, uint64_t value)
{
    struct model *m = ((struct tree *)arg)->m;
    if (site_id < 1 || (uint64_t)site_id > m->site_count || !value)
        return;
    uint64_t *values = m->stats.own[stat];
    if (!values)
        values = model_stats_add(&m->stats, stat, m->site_count);
    values[site_id] += value;
}

/* The columns stay as they are read: rows of all of them would be the most memory of all. */
static int read_stats(struct tree *l)
{
    struct model *m = l->m;
    for (int k = 0; k < STAT_COUNT; k++) {
        const struct packed_values *values;
        int rc = read_packed(m, PACKED_STATS + (enum packed_column)k, &values, l->err);
        if (rc)
            return rc;
        m->stats.of[k] = *values;
    }
    m->stats.of[STAT_own_largest] = m->stats.of[STAT_own_peak_bytes];
    return model_scans(m, add_to_site, l, l->err);
}

static int read_packed_sites(struct tree *l)
{
    struct model *m = l->m;
    const struct packed_values *devices, *kinds;
    int rc = read_packed(m, PACKED_site_stack_id, &l->stacks, l->err);
    if (rc == 0)
        rc = read_packed(m, PACKED_site_device_id, &devices, l->err);
    if (rc == 0)
        rc = read_packed(m, PACKED_site_kind, &kinds, l->err);
    if (rc)
        return rc;
    uint32_t count = (uint32_t)packed_count(m->packed, PACKED_TABLE_site);
    ARRAY_ROOM(m->sites, count, m->site_capacity);
    uint64_t device = 0, kind = UINT64_MAX; /* of the site before, and its group: most have the same */
    uint32_t group = 0;
    for (uint32_t i = 1; i <= count; i++) {
        if (packed_at(devices, i) != device || packed_at(kinds, i) != kind) {
            device = packed_at(devices, i);
            kind = packed_at(kinds, i);
            group = group_of(m, (int64_t)device, kind_name((unsigned)kind));
        }
        add_site(m, i)->group = group;
        m->groups[group].site_count++;
    }
    return m->is_self_only ? 0 : read_stats(l);
}

static int read_plain_sites(struct tree *l)
{
    return model_each(l->db, rotated_has_start(l->db) ? started_sql : site_sql, site_row, l, l->err);
}

static int read_address_ids(struct tree *l)
{
    return model_each(l->db, "SELECT address_id FROM address ORDER BY address_id", address_row, l, l->err);
}

/* What is packed is all read before anything is made of it: another connection may wait to write. */
static int load(struct tree *l)
{
    struct model *m = l->m;
    int is_packed = packed_has(l->db, PACKED_TABLE_site), has_nodes = packed_has(l->db, PACKED_TABLE_stack);
    int rc = read_address_ids(l);
    m->is_self_only &= is_packed && has_nodes && packed_is_kept(m->packed) && ownpeak_hindrance(m->db);
    if (rc == 0)
        rc = has_nodes ? read_packed_nodes(l) : read_plain_nodes(l);
    if (rc == 0 && is_packed)
        rc = read_packed_sites(l);
    if (m->has_read)
        sem_post(m->has_read);
    if (rc)
        return rc;
    if (m->is_self_only)
        take_nodes(l);
    else
        order_nodes(l);
    if (!is_packed)
        rc = read_plain_sites(l);
    for (size_t i = 0; is_packed && i < m->site_count; i++)
        m->sites[i].node = node_of_stack(l, packed_at(l->stacks, (uint32_t)i + 1));
    if (rc == 0) {
        order_sites(m);
        group_devices(m);
    }
    return rc;
}

int model_tree(sqlite3 *db, struct model *m, struct error *err)
{
    struct tree l = {.db = db, .err = err, .m = m};
    m->db = db;
    m->packed = packed_open(db);
    if (!m->packed)
        return error_set(err, ENOMEM, "out of memory");
    ARRAY_ADD(m->nodes, m->node_count, m->node_capacity);
    int rc = load(&l);
    m->tree_addresses = l.addresses.count;
    free(l.addresses.ids);
    free(l.nodes.ids);
    free(l.parents);
    free(l.new_index);
    return rc;
}
