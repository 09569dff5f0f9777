/* Nodes of graphs that allocate, free and copy: all of it happens at the launches. */
#include "devices_private.h"
#include "transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (1u << 20)
#define TOUCH_MAX 4096u /* places that a launch's copies touch */

struct graph_node {
    uint64_t address, size; /* copies: the destination, bytes */
    uint64_t from;
    uint32_t stack_id;
    uint8_t device_id;
    uint8_t what;
};
enum { NODE_ALLOC, NODE_FREE, NODE_COPY };

struct graph {
    uint64_t handle;
    struct graph_node *nodes; /* in their order; copies: those whose addresses are asked at each launch */
    uint32_t count, capacity;
    struct transfers copies; /* all others, of one launch: nothing depends on their order */
    struct graph_touch {     /* what these touch, each place once */
        uint64_t address, bytes;
        unsigned what;
    } * touches;
    uint32_t touch_count, touch_capacity;
    struct map touched; /* (address, what) */
};

static struct graph *find(struct devices *d, uint64_t handle)
{
    struct graph *g = map_pointer(&d->graphs, handle);
    if (!g) {
        g = xcalloc(1, sizeof *g);
        g->handle = handle;
        map_set_pointer(&d->graphs, handle, g);
    }
    return g;
}

static void add(struct graph *g, const struct graph_node *node)
{
    if (g->count < NODES_MAX)
        *ARRAY_ADD(g->nodes, g->count, g->capacity) = *node;
}

static void add_touch(struct graph *g, uint64_t address, uint64_t bytes, unsigned what)
{
    uint64_t *slot = address && g->touch_count < TOUCH_MAX ? map_slot(&g->touched, address, what) : NULL;
    if (!slot || *slot)
        return;
    *slot = 1;
    *ARRAY_ADD(g->touches, g->touch_count, g->touch_capacity) = (struct graph_touch){address, bytes, what};
}

int device_graph_node(struct devices *d, int is_alloc)
{
    const uint64_t *w = d->call->words;
    struct graph_node node = {.address = w[1], .size = is_alloc ? w[2] : 0, .what = is_alloc ? NODE_ALLOC : NODE_FREE};
    if (!w[0] || devices_range_is_bad(node.address, node.size))
        return -EINVAL;
    node.device_id = (uint8_t)devices_id(d, d->call->device);
    node.stack_id = d->call->stack_id;
    add(find(d, w[0]), &node);
    return 0;
}

int device_graph_transfer(struct devices *d)
{
    const struct devices_call *c = d->call;
    const uint64_t *w = c->words;
    if (c->word_count < 5 || !w[4])
        return 0;
    struct graph *g = find(d, w[4]);
    unsigned device_id = devices_id(d, c->device);
    if (w[1] == WIRE_UNIFIED)
        add(g, &(struct graph_node){.address = w[2],
                                    .size = w[0],
                                    .from = w[3],
                                    .stack_id = c->stack_id,
                                    .device_id = (uint8_t)device_id,
                                    .what = NODE_COPY});
    else {
        transfers_add(&g->copies, c->stack_id, device_id, (unsigned)w[1], 1, w[0]);
        add_touch(g, w[1] == WIRE_FILL ? 0 : w[3], w[0], TOUCH_READ);
        add_touch(g, w[2], w[0], TOUCH_WRITE);
    }
    return 0;
}

/* The nodes of one graph behind those of another. */
static int append(struct devices *d, uint64_t from_handle, uint64_t to_handle, int instead)
{
    const struct graph *from = map_pointer(&d->graphs, from_handle);
    struct graph *to = map_pointer(&d->graphs, to_handle);
    if (!from_handle || !to_handle || from_handle == to_handle)
        return -EINVAL;
    if (to && instead) {
        to->count = to->touch_count = 0;
        transfers_close(&to->copies);
        map_close(&to->touched);
    }
    if (!from || !(from->count || from->copies.count))
        return 0;
    if (!to)
        to = find(d, to_handle);
    for (uint32_t i = 0; i < from->count; i++)
        add(to, &from->nodes[i]);
    for (uint32_t i = 0; i < from->copies.count; i++) {
        const struct transfer *t = &from->copies.entries[i];
        transfers_add(&to->copies, t->stack_id, t->device_id, t->direction, t->count, t->bytes);
    }
    for (uint32_t i = 0; i < from->touch_count; i++)
        add_touch(to, from->touches[i].address, from->touches[i].bytes, from->touches[i].what);
    return 0;
}

int device_graph_instantiate(struct devices *d)
{
    return append(d, d->call->words[0], d->call->words[1], 1);
}

int device_graph_child(struct devices *d)
{
    const uint64_t *w = d->call->words;
    if (!w[0]) /* captured into a graph that is not known */
        return 0;
    return append(d, w[1], w[0], 0);
}

static void launch_alloc(struct devices *d, const struct graph_node *node)
{
    struct block *b = devices_block_new(d, node->address, node->size, node->device_id);
    b->kind = KIND_pool;
    b->pool = device_pool_graph(d, node->device_id);
    b->stack_id = node->stack_id;
    devices_block_add(d, b);
}

int device_graph_launch(struct devices *d)
{
    const struct graph *g = map_pointer(&d->graphs, d->call->words[0]);
    if (!g)
        return 0;
    for (uint32_t i = 0; i < g->copies.count; i++) {
        const struct transfer *t = &g->copies.entries[i];
        d->sink->transfer(d->sink->arg, t->stack_id, t->device_id, t->direction, t->count, t->bytes);
    }
    for (uint32_t i = 0; i < g->count; i++) {
        const struct graph_node *n = &g->nodes[i];
        if (n->what == NODE_COPY) {
            devices_transfer(d, n->device_id, n->stack_id, WIRE_UNIFIED, n->size, n->address, n->from);
            continue;
        }
        struct block *b = devices_block_at(d, n->address);
        if (b && (b->object || b->where == WHERE_FOREIGN))
            continue;
        if (b) /* an allocation node that runs again frees first what it gave before */
            devices_block_end(d, b, NULL);
        if (n->what == NODE_ALLOC)
            launch_alloc(d, n);
    }
    for (uint32_t i = 0; i < g->touch_count; i++)
        device_touch_one(d, g->touches[i].address, g->touches[i].bytes, g->touches[i].what);
    return 0;
}

void device_graph_free(void *graph)
{
    struct graph *g = graph;
    if (!g)
        return;
    transfers_close(&g->copies);
    map_close(&g->touched);
    free(g->touches);
    free(g->nodes);
    free(g);
}

int device_graph_end(struct devices *d)
{
    devices_thread(d)->undo.graph = map_take_pointer(&d->graphs, d->call->words[0]);
    return 0;
}

void device_graph_undo(struct devices *d, struct undo *u)
{
    if (!u->graph)
        return;
    device_graph_free(map_take_pointer(&d->graphs, u->graph->handle));
    map_set_pointer(&d->graphs, u->graph->handle, u->graph);
    u->graph = NULL;
}

int device_graph_state(struct devices *d)
{
    const uint64_t *w = d->call->words;
    if (w[0] >= 1ull << 57)
        return -EINVAL;
    device_pool_now(d, device_pool_graph(d, devices_id(d, d->call->device)), w[0]);
    return 0;
}

void device_graphs_close(struct devices *d)
{
    map_close_pointers(&d->graphs, device_graph_free);
}
