#include "nodes.h"

#include "packer.h"

#include "../../common/array.h"
#include "../../common/hash.h"

#include <stdlib.h>
#include <string.h>

#define PENDING_MOST 8192u   /* rows; about 2 ms, in which no ring is read */
#define PLAIN_MOST   131072u /* rows; where there are more, they are packed */

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
    struct rows rows;      /* those up to rows.last are in the database */
    struct packer *packer; /* NULL: they are plain rows */
    uint32_t packed;       /* those up to it are packed */
};

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
            slot_put(slots, mask, hash_pair(n->nodes[id].caller, n->nodes[id].address), id);
    free(n->slots);
    n->slots = slots;
    n->mask = mask;
}

static uint32_t append(struct nodes *n, uint32_t caller, uint32_t address)
{
    uint32_t id = n->count + 1;
    if (id >= NODES_ROOT)
        bug("too many stacks");
    ARRAY_ROOM(n->nodes, id + 1ul, n->room);
    n->nodes[id] = (struct node){caller, address, caller >= NODES_ROOT ? 1 : n->nodes[caller].depth + 1};
    n->count = id;
    if (n->packer ? id - n->packed / PACKED_ROWS * PACKED_ROWS >= PACKED_ROWS : id - n->rows.last >= PENDING_MOST)
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
    uint64_t hash = hash_pair(caller, address);
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

static void column(void *arg, uint32_t id, int number, sqlite3_context *value)
{
    const struct node *node = &((const struct nodes *)arg)->nodes[id];
    int is_root = node->caller >= NODES_ROOT;
    switch (number) {
    case 0:
        if (!is_root)
            sqlite3_result_int64(value, node->caller);
        break; /* else NULL */
    case 1:
        sqlite3_result_int64(value, node->address);
        break;
    case 2:
        sqlite3_result_int64(value, node->depth);
        break;
    default:
        sqlite3_result_int64(value, is_root ? node->caller - NODES_ROOT : 0);
    }
}

/* SQLite numbers the rows as we do: the newest one's id and one more. */
static void write_rows(struct nodes *n)
{
    static const char sql[] = "INSERT INTO stack(parent_id, address_id, depth, flags) "
                              "SELECT parent_id, address_id, depth, flags FROM new_stack(?1)";
    n->rows.first = n->rows.last + 1;
    n->rows.last = n->count;
    store_rows(n->store, &n->rows, sql);
    if (!store_failed(n->store, NULL) && sqlite3_last_insert_rowid(store_db(n->store)) != n->count)
        bug("stack %u has another row", n->count);
}

static void pack_chunk(struct nodes *n, uint32_t first, uint32_t count)
{
    const struct node *nodes = n->nodes + first;
    uint64_t *parents = packer_values(n->packer, PACKED_stack_parent_id);
    uint64_t *addresses = packer_values(n->packer, PACKED_stack_address_id);
    uint64_t *flags = packer_values(n->packer, PACKED_stack_flags);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t caller = nodes[i].caller;
        parents[i] = caller >= NODES_ROOT ? 0 : caller;
        addresses[i] = nodes[i].address;
        flags[i] = caller >= NODES_ROOT ? caller - NODES_ROOT : 0;
    }
    for (enum packed_column c = PACKED_KEY_stack; c < PACKED_KEY_site; c++)
        packer_column(n->packer, 0, c, first, count);
}

/* The last chunk is written as it is, and anew until it is full. */
static void write_packed(struct nodes *n)
{
    while (n->packed < n->count) {
        uint32_t first = n->packed / PACKED_ROWS * PACKED_ROWS + 1, count = n->count - first + 1;
        if (count > PACKED_ROWS)
            count = PACKED_ROWS;
        if (n->packed >= first)
            packer_drop_chunk(n->packer, first);
        pack_chunk(n, first, count);
        n->packed = first + count - 1;
    }
}

void nodes_write(struct nodes *n)
{
    if (!n->packer && n->count > PLAIN_MOST)
        n->packer = packer_open(n->store, PACKED_TABLE_stack);
    if (n->packer)
        write_packed(n);
    else if (n->rows.last != n->count)
        write_rows(n);
}

struct nodes *nodes_open(struct store *store)
{
    struct nodes *n = xcalloc(1, sizeof *n);
    n->store = store;
    n->rows = (struct rows){.name = "new_stack",
                            .declaration = "CREATE TABLE x(rows HIDDEN, parent_id, address_id, depth, flags)",
                            .column = column,
                            .arg = n};
    n->room = 1024;
    n->nodes = xcalloc(n->room, sizeof *n->nodes);
    return n;
}

void nodes_close(struct nodes *n)
{
    if (!n)
        return;
    packer_close(n->packer);
    free(n->slots);
    free(n->nodes);
    free(n);
}
