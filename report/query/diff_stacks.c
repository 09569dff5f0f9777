/* Stacks are the same where their functions are: lines, addresses and directories may differ. */
#include "diff_private.h"

#include "../../common/db.h"
#include "../../common/hash.h"
#include "../../common/packed.h"
#include "../../common/text.h"
#include "device.h"
#include "estimate.h"
#include "tree.h"

#include <stdlib.h>
#include <string.h>

struct hashes {
    struct diff_state *d;
    struct estimates *estimates; /* NULL: not of samples */
    struct tree tree;
    uint64_t *functions; /* by function, of its name */
    uint64_t *files;     /* of those of Python: its new name without the directory */
    uint64_t *modules;   /* without symbols: by module, 0: its offsets say nothing */
    uint64_t *addresses;
    uint64_t *nodes; /* 0: not yet */
};

/* Each row's text has its hash at the place of its id. */
static int hash_names(struct hashes *h, sqlite3 *db, struct error *err)
{
    sqlite3_stmt *s = NULL;
    struct buf bare = BUF(64 << 20);
    int rc = db_prepare(db, "SELECT function_id, name FROM function", &s, err);
    while (db_next(s, &rc, err)) {
        buf_reset(&bare);
        diff_bare_name(db_text(s, 1), &bare);
        h->functions[ids_column(&h->tree.function_ids, s, 0)] = hash_text(HASH_START, buf_text(&bare));
    }
    sqlite3_finalize(s);
    buf_free(&bare);
    return rc;
}

/* "__init__" is in many files of Python. */
static int hash_python(struct hashes *h, int side, sqlite3 *db, struct error *err)
{
    struct map file_of = {0};
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT file_id, path FROM file", &s, err);
    while (db_next(s, &rc, err))
        *map_slot(&file_of, (uint64_t)sqlite3_column_int64(s, 0), 0) =
            hash_text(HASH_START, text_filename(diff_new_path(h->d, side, db_text(s, 1)))) | 1;
    sqlite3_finalize(s);
    for (uint32_t i = 1; i < h->tree.frame_count; i++) {
        const struct tree_frame *f = &h->tree.frames[i];
        if (f->is_python)
            h->files[i] = map_get(&file_of, (uint64_t)f->file_id, 0);
    }
    map_close(&file_of);
    return rc;
}

static void hash_addresses(struct hashes *h)
{
    for (uint32_t i = 1; i < h->tree.module_count; i++) {
        const char *name = h->tree.modules[i].name;
        h->modules[i] = name && diff_is_one_build(h->d, name);
    }
    for (uint32_t i = 1; i < h->tree.address_count; i++) {
        const struct tree_address *a = &h->tree.addresses[i];
        uint64_t hash = HASH_START;
        for (uint32_t k = 0; k < a->frame_count; k++) {
            const struct tree_frame *f = &h->tree.frames[a->first_frame + k];
            hash = hash_pair(hash, h->functions[f->function] ^ h->files[a->first_frame + k]);
        }
        if (a->frame_count == 0 || !h->tree.frames[a->first_frame].function) {
            hash = hash_text(hash, a->module ? h->tree.modules[a->module].name : NULL);
            hash = hash_pair(hash, !a->module || h->modules[a->module] ? (uint64_t)a->offset : 0);
        }
        h->addresses[i] = hash;
    }
}

/* Of a node and its callers. A cycle ends at the depth that no recorded stack has. */
static uint64_t hash_stack(struct hashes *h, uint32_t node)
{
    uint32_t path[TREE_DEPTH_MAX];
    int depth = 0;
    for (; node && !h->nodes[node] && depth < TREE_DEPTH_MAX; node = h->tree.nodes[node].parent)
        path[depth++] = node;
    uint64_t hash = node ? h->nodes[node] : 1;
    while (depth > 0) {
        node = path[--depth];
        hash = hash_pair(hash, h->addresses[h->tree.nodes[node].address]) | 1;
        h->nodes[node] = hash;
    }
    return hash;
}

static int is_wanted(int stat, int sort)
{
    const struct stat_info *info = &stat_infos[sort];
    int is_part = info->how > STAT_WINDOWED && (stat == (int)info->a || stat == (int)info->b);
    for (int i = 0; diff_stats[i] >= 0; i++)
        is_part |= diff_stats[i] == stat;
    return is_part || stat == sort;
}

/* Of a million sites each statistic costs: those that nobody is shown are not asked for. */
static void select_sites(int sort, struct buf *sql)
{
    buf_puts(sql, "SELECT d.name, a.stack_id");
    for (int i = 0; i < STAT_VALUE_COUNT; i++)
        buf_printf(sql, ", %s", is_wanted(i, sort) ? stat_infos[i].column : "NULL");
    buf_printf(sql, " FROM %s a LEFT JOIN device d USING(device_id) WHERE " DEVICE_IS("d.name", "?1") "",
               stat_is_of_view(sort) ? "site_stat" : "site");
}

static void add_site(struct hashes *h, struct diff_side *side, int recording, int64_t stack_id, uint32_t device,
                     struct stat_row *stats)
{
    uint64_t hash = hash_stack(h, tree_node(&h->tree, stack_id));
    const struct buf key = {.data = (char *)&hash, .length = sizeof hash};
    int is_new, is_first;
    uint32_t number = diff_add_item(side, &key, &is_new);
    if (is_new) {
        side->items[number].stack_id = stack_id;
        side->items[number].recording = (uint32_t)recording;
    }
    struct stat_row *sum = diff_stats_at(side, device, number, recording, &is_first);
    estimates_fill_bounds(h->estimates, h->d->device_names[device], stats);
    stat_add(sum, stats, is_first);
}

static int load_sites(struct hashes *h, struct diff_side *side, int recording, struct error *err)
{
    struct buf sql = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    select_sites(h->d->options.sort, &sql);
    int rc = db_prepare(side->dbs[recording], sql.data, &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, h->d->options.device, -1, SQLITE_STATIC);
    while (db_next(s, &rc, err)) {
        struct stat_row stats;
        stat_read(&stats, s, 2);
        add_site(h, side, recording, sqlite3_column_int64(s, 1), diff_device(h->d, db_text(s, 0)), &stats);
    }
    sqlite3_finalize(s);
    buf_free(&sql);
    return rc;
}

/* --- packed sites, read without statements: they are many --- */

struct packed_sites {
    const struct packed_values *stacks, *devices, *stats[STAT_COUNT]; /* NULL: not wanted */
    struct map device_of;                                             /* device_id -> number of the diff */
};

static int read_columns(struct packed *p, int sort, struct packed_sites *sites)
{
    int rc = packed_read(p, PACKED_site_stack_id, &sites->stacks);
    if (rc == 0)
        rc = packed_read(p, PACKED_site_device_id, &sites->devices);
    for (int i = 0; rc == 0 && i < STAT_COUNT; i++)
        if (is_wanted(i, sort))
            rc = packed_read(p, (enum packed_column)(PACKED_STATS + i), &sites->stats[i]);
    return rc;
}

/* Those that are compared. */
static int read_devices(struct hashes *h, sqlite3 *db, struct packed_sites *sites)
{
    struct error err;
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT device_id, name FROM device WHERE " DEVICE_IS("name", "?1") "", &s, &err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, h->d->options.device, -1, SQLITE_STATIC);
    while (db_next(s, &rc, &err))
        map_set_number(&sites->device_of, (uint64_t)sqlite3_column_int64(s, 0), 0, diff_device(h->d, db_text(s, 1)));
    sqlite3_finalize(s);
    return rc;
}

static void add_packed_site(struct hashes *h, struct diff_side *side, int recording, const struct packed_sites *sites,
                            uint32_t row)
{
    uint32_t device = map_number(&sites->device_of, packed_at(sites->devices, row), 0);
    struct stat_row stats = {.known = 0};
    for (int i = 0; i < STAT_COUNT; i++)
        if (sites->stats[i]) {
            stats.value[i] = (int64_t)packed_at(sites->stats[i], row);
            stats.known |= 1u << i;
        }
    if (device != MAP_NONE)
        add_site(h, side, recording, (int64_t)packed_at(sites->stacks, row), device, &stats);
}

/* 0 where they cannot be read so: the statement then says why. */
static int load_packed_sites(struct hashes *h, struct diff_side *side, int recording)
{
    struct packed_sites sites = {.stacks = NULL};
    sqlite3 *db = side->dbs[recording];
    const int sort = h->d->options.sort;
    if (stat_is_of_view(sort) || !packed_has(db, PACKED_TABLE_site))
        return 0;
    struct packed *p = packed_open(db);
    long count = p ? packed_count(p, PACKED_TABLE_site) : -1;
    int is_read = count >= 0 && read_columns(p, sort, &sites) == 0 && read_devices(h, db, &sites) == 0;
    for (uint32_t row = 1; is_read && row <= count; row++)
        add_packed_site(h, side, recording, &sites, row);
    map_close(&sites.device_of);
    packed_close(p);
    return is_read;
}

int diff_load_stacks(struct diff_state *d, struct diff_side *side, int recording, struct error *err)
{
    sqlite3 *db = side->dbs[recording];
    struct hashes h = {.d = d, .estimates = estimates_open(db)};
    int rc = tree_open(db, &h.tree, err);
    h.functions = xcalloc((size_t)h.tree.function_count + 1, sizeof *h.functions);
    h.files = xcalloc((size_t)h.tree.frame_count + 1, sizeof *h.files);
    h.modules = xcalloc((size_t)h.tree.module_count + 1, sizeof *h.modules);
    h.addresses = xcalloc((size_t)h.tree.address_count + 1, sizeof *h.addresses);
    h.nodes = xcalloc((size_t)h.tree.node_count + 1, sizeof *h.nodes);
    if (rc == 0)
        rc = hash_names(&h, db, err);
    if (rc == 0)
        rc = hash_python(&h, (int)(side - d->side), db, err);
    if (rc == 0) {
        hash_addresses(&h);
        rc = load_packed_sites(&h, side, recording) ? 0 : load_sites(&h, side, recording, err);
    }
    uint64_t *arrays[] = {h.functions, h.files, h.modules, h.addresses, h.nodes};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    estimates_close(h.estimates);
    tree_close(&h.tree);
    return rc;
}
