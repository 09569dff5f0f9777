#include "nodes.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>

#define PENDING_MOST 8192u /* rows; about 2 ms, in which no ring is read */

struct node {
    uint32_t caller;
    uint32_t address;
    uint32_t depth;
};

/* Most nodes are made one after the other, each under the one before: what a new stack does not share. Such a node has
 * the id after its caller's and is found there, so only the others are in the index. */
struct slot {
    uint32_t id; /* 0: free */
    uint32_t tag;
};

struct nodes {
    struct store *store;
    struct node *nodes; /* by id */
    uint32_t count, room;
    struct slot *slots;
    uint32_t mask, used;
    uint32_t written; /* rows 1..written are in the database */
    int has_module;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15ull + b;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

static int is_indexed(const struct nodes *n, uint32_t id)
{
    return n->nodes[id].caller != id - 1;
}

static void slot_put(struct slot *slots, uint32_t mask, uint64_t hash, uint32_t id)
{
    uint32_t i = (uint32_t)hash & mask;
    while (slots[i].id)
        i = (i + 1) & mask;
    slots[i] = (struct slot){id, (uint32_t)(hash >> 32)};
}

static void index_grow(struct nodes *n)
{
    uint32_t mask = n->slots ? n->mask * 2 + 1 : 1023;
    struct slot *slots = xcalloc((unsigned long)mask + 1, sizeof *slots);
    for (uint32_t id = 1; id <= n->count; id++)
        if (is_indexed(n, id))
            slot_put(slots, mask, mix(n->nodes[id].caller, n->nodes[id].address), id);
    free(n->slots);
    n->slots = slots;
    n->mask = mask;
}

static uint32_t append(struct nodes *n, uint32_t caller, uint32_t address)
{
    uint32_t id = n->count + 1;
    if (id >= NODES_ROOT)
        bug("too many stacks");
    if (id >= n->room) {
        n->room = n->room ? n->room * 2 : 1024;
        n->nodes = xrealloc(n->nodes, (unsigned long)n->room * sizeof *n->nodes);
    }
    n->nodes[id] = (struct node){caller, address, caller >= NODES_ROOT ? 1 : n->nodes[caller].depth + 1};
    n->count = id;
    if (id - n->written >= PENDING_MOST)
        nodes_write(n);
    return id;
}

uint32_t nodes_child(struct nodes *n, uint32_t caller, uint32_t address)
{
    if (caller == n->count && caller)
        return append(n, caller, address);
    if (caller < NODES_ROOT && n->nodes[caller + 1].caller == caller && n->nodes[caller + 1].address == address)
        return caller + 1;
    if (!n->slots || n->used * 2ull >= n->mask)
        index_grow(n);
    uint64_t hash = mix(caller, address);
    uint32_t tag = (uint32_t)(hash >> 32), i = (uint32_t)hash & n->mask;
    for (; n->slots[i].id; i = (i + 1) & n->mask) {
        uint32_t id = n->slots[i].id;
        if (n->slots[i].tag == tag && n->nodes[id].caller == caller && n->nodes[id].address == address)
            return id;
    }
    n->slots[i] = (struct slot){n->count + 1, tag};
    n->used++;
    return append(n, caller, address);
}

/* --- the rows, read by SQLite itself: a table-valued function of no arguments --- */

struct rows {
    sqlite3_vtab base;
    const struct nodes *nodes;
};

struct cursor {
    sqlite3_vtab_cursor base;
    uint32_t id;
};

static int rows_connect(sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    (void)argc, (void)argv, (void)err;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE new_stack(parent_id, address_id, depth, flags)");
    struct rows *r = rc == SQLITE_OK ? xcalloc(1, sizeof *r) : NULL;
    if (r)
        r->nodes = arg;
    *out = r ? &r->base : NULL;
    return rc;
}

static int rows_disconnect(sqlite3_vtab *base)
{
    free(base);
    return SQLITE_OK;
}

static int rows_plan(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = PENDING_MOST;
    return SQLITE_OK;
}

static int rows_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    struct cursor *c = xcalloc(1, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static int rows_close(sqlite3_vtab_cursor *base)
{
    free(base);
    return SQLITE_OK;
}

static const struct nodes *nodes_of(const sqlite3_vtab_cursor *base)
{
    return ((const struct rows *)(const void *)base->pVtab)->nodes;
}

static int rows_filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv)
{
    (void)plan, (void)text, (void)argc, (void)argv;
    ((struct cursor *)(void *)base)->id = nodes_of(base)->written + 1;
    return SQLITE_OK;
}

static int rows_next(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)(void *)base)->id++;
    return SQLITE_OK;
}

static int rows_eof(sqlite3_vtab_cursor *base)
{
    return ((struct cursor *)(void *)base)->id > nodes_of(base)->count;
}

static int rows_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct node *node = &nodes_of(base)->nodes[((struct cursor *)(void *)base)->id];
    int is_root = node->caller >= NODES_ROOT;
    switch (column) {
    case 0:
        if (!is_root)
            sqlite3_result_int64(context, node->caller);
        break; /* else NULL */
    case 1:
        sqlite3_result_int64(context, node->address);
        break;
    case 2:
        sqlite3_result_int64(context, node->depth);
        break;
    default:
        sqlite3_result_int64(context, is_root ? node->caller - NODES_ROOT : 0);
    }
    return SQLITE_OK;
}

static int rows_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = ((struct cursor *)(void *)base)->id;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = rows_connect, /* no xCreate: the name is there without a CREATE, and leaves nothing in the file */
    .xBestIndex = rows_plan,
    .xDisconnect = rows_disconnect,
    .xOpen = rows_open,
    .xClose = rows_close,
    .xFilter = rows_filter,
    .xNext = rows_next,
    .xEof = rows_eof,
    .xColumn = rows_column,
    .xRowid = rows_rowid,
};

/* SQLite numbers the rows as we do: the newest one's id and one more. */
void nodes_write(struct nodes *n)
{
    if (n->written == n->count || store_failed(n->store, NULL))
        return;
    if (!n->has_module)
        sqlite3_create_module_v2(store_db(n->store), "new_stack", &module, n, NULL);
    n->has_module = 1;
    store_step(n->store, store_statement(n->store, "INSERT INTO stack(parent_id, address_id, depth, flags) "
                                                   "SELECT parent_id, address_id, depth, flags FROM new_stack"));
    n->written = n->count;
    if (!store_failed(n->store, NULL) && sqlite3_last_insert_rowid(store_db(n->store)) != n->count)
        bug("stack %u has another row", n->count);
}

struct nodes *nodes_open(struct store *store)
{
    struct nodes *n = xcalloc(1, sizeof *n);
    n->store = store;
    n->room = 1024;
    n->nodes = xcalloc(n->room, sizeof *n->nodes);
    return n;
}

void nodes_close(struct nodes *n)
{
    if (!n)
        return;
    free(n->slots);
    free(n->nodes);
    free(n);
}
