/*
 * Graphs. A graph is a list of nodes in the order in which they were added; a launch queues them all as one piece of
 * work. The address of an allocation node is fixed when the node is made; its memory is taken from the device at the
 * launch and kept by the device for later launches until cuDeviceGraphMemTrim.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct CUgraph_st {
    struct CUgraphNode_st *nodes, **tail;
    struct CUgraph_st *next;
};
struct CUgraphExec_st {
    struct CUgraphNode_st *nodes; /* copies */
    unsigned flags;
    int device;
    struct CUgraphExec_st *next;
};
static struct CUgraph_st *graphs;
static struct CUgraphExec_st *execs;

static int graph_valid(const struct CUgraph_st *graph)
{
    for (const struct CUgraph_st *g = graphs; g; g = g->next)
        if (g == graph)
            return 1;
    return 0;
}
static int exec_valid(const struct CUgraphExec_st *exec)
{
    for (const struct CUgraphExec_st *e = execs; e; e = e->next)
        if (e == exec)
            return 1;
    return 0;
}

struct CUgraph_st *graph_new(void)
{
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->tail = &graph->nodes;
    graph->next = graphs;
    return graphs = graph;
}

struct CUgraphNode_st *graph_add(struct CUgraph_st *graph, int type, const struct work *work)
{
    struct CUgraphNode_st *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->type = type;
    node->work = *work;
    node->graph = graph;
    *graph->tail = node;
    graph->tail = &node->next;
    return node;
}

static void run_nothing(struct work *work)
{
    (void)work;
}

CUresult graph_add_alloc(struct CUgraph_st *graph, CUDA_MEM_ALLOC_NODE_PARAMS *params, struct CUgraphNode_st **out)
{
    NEED(params->bytesize && params->bytesize < 1ull << 46, INVALID_VALUE);
    NEED(params->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
             params->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE,
         INVALID_VALUE);
    NEED(device_valid(params->poolProps.location.id), INVALID_DEVICE);
    void *address = back_reserve(params->bytesize, NULL, 0);
    NEED(address, OUT_OF_MEMORY);
    params->dptr = (CUdeviceptr)address;
    struct CUgraphNode_st *node = graph_add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &(struct work){.run = run_nothing});
    NEED(node, OUT_OF_MEMORY);
    node->alloc = *params;
    if (out)
        *out = node;
    return CUDA_SUCCESS;
}

int graph_will_have(CUdeviceptr address, size_t bytes)
{
    for (const struct CUgraph_st *g = graphs; g; g = g->next)
        for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next)
            if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && address >= n->alloc.dptr && bytes <= n->alloc.bytesize &&
                address - n->alloc.dptr <= n->alloc.bytesize - bytes)
                return 1;
    return 0;
}

CUresult graph_add_free(struct CUgraph_st *graph, CUdeviceptr address, struct CUgraphNode_st **out)
{
    int known = 0;
    for (const struct CUgraph_st *g = graphs; g; g = g->next)
        for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next)
            known |= n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && n->alloc.dptr == address;
    NEED(known, INVALID_VALUE);
    struct CUgraphNode_st *node = graph_add(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, &(struct work){.run = run_nothing});
    NEED(node, OUT_OF_MEMORY);
    node->freed = address;
    if (out)
        *out = node;
    return CUDA_SUCCESS;
}

/* --- building --- */

API cuGraphCreate(CUgraph *out, unsigned flags)
{
    BEGIN;
    NEED(out && !flags, INVALID_VALUE);
    *out = graph_new();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult adding(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    NEED(out && graph_valid(graph) && (dependencies || !count), INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        NEED(dependencies[i] && dependencies[i]->graph == graph, INVALID_VALUE);
    return CUDA_SUCCESS;
}
#define ADDING                                                                                                         \
    BEGIN;                                                                                                             \
    CUresult error = adding(out, graph, dependencies, count);                                                          \
    PASS_ON(error)

static CUresult add(CUgraphNode *out, struct CUgraph_st *graph, int type, const struct work *work)
{
    *out = graph_add(graph, type, work);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    ADDING;
    return add(out, graph, CU_GRAPH_NODE_TYPE_EMPTY, &(struct work){.run = run_nothing});
}
API cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                           CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    ADDING;
    NEED(params, INVALID_VALUE);
    return graph_add_alloc(graph, params, out);
}
API cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                          CUdeviceptr address)
{
    ADDING;
    return graph_add_free(graph, address, out);
}

static CUresult add_memset(CUgraphNode *out, CUgraph graph, const CUDA_MEMSET_NODE_PARAMS *p)
{
    NEED(p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4, INVALID_VALUE);
    struct work work;
    fill_work(&work, p->dst, p->pitch, p->value, p->elementSize, p->width, p->height ? p->height : 1);
    return add(out, graph, CU_GRAPH_NODE_TYPE_MEMSET, &work);
}
API cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                         const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
    ADDING;
    (void)ctx;
    NEED(params, INVALID_VALUE);
    return add_memset(out, graph, params);
}

static CUresult add_memcpy(CUgraphNode *out, CUgraph graph, const CUDA_MEMCPY3D *copy)
{
    struct work work;
    int pageable;
    CUresult error = copy_work(copy, &work, &pageable, 1);
    return error ? error : add(out, graph, CU_GRAPH_NODE_TYPE_MEMCPY, &work);
}
API cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                         const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
    ADDING;
    (void)ctx;
    NEED(copy, INVALID_VALUE);
    return add_memcpy(out, graph, copy);
}

static void nodes_free(struct CUgraphNode_st *node)
{
    for (struct CUgraphNode_st *next; node; node = next) {
        next = node->next;
        free(node->work.blob);
        free(node);
    }
}

/* Copies of the nodes, as nodes of a graph or of none. */
static CUresult nodes_copy(const struct CUgraphNode_st *node, struct CUgraph_st *graph, struct CUgraphNode_st **out)
{
    struct CUgraphNode_st **tail = out;
    for (*out = NULL; node; node = node->next) {
        struct CUgraphNode_st *copy = malloc(sizeof *copy);
        if (copy)
            *copy = *node;
        if (copy && node->work.blob) {
            copy->work.blob = malloc(node->work.blob_bytes);
            if (copy->work.blob)
                memcpy(copy->work.blob, node->work.blob, node->work.blob_bytes);
        }
        if (!copy || (node->work.blob && !copy->work.blob)) {
            free(copy);
            nodes_free(*out);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        copy->graph = graph;
        copy->next = NULL;
        *tail = copy;
        tail = &copy->next;
    }
    return CUDA_SUCCESS;
}

static int has_memory_nodes(const struct CUgraph_st *graph)
{
    for (const struct CUgraphNode_st *n = graph->nodes; n; n = n->next)
        if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return 1;
    return 0;
}

static void append(struct CUgraph_st *graph, struct CUgraphNode_st *nodes)
{
    *graph->tail = nodes;
    while (*graph->tail)
        graph->tail = &(*graph->tail)->next;
}

/* The child's nodes stand in the parent themselves; the node is the last of them, or an empty one. */
static CUresult add_child(CUgraphNode *out, CUgraph graph, CUgraph child)
{
    NEED(graph_valid(child) && child != graph && !has_memory_nodes(child), INVALID_VALUE);
    struct CUgraphNode_st *nodes;
    CUresult error = nodes_copy(child->nodes, graph, &nodes);
    if (error)
        return error;
    append(graph, nodes);
    return add(out, graph, CU_GRAPH_NODE_TYPE_GRAPH, &(struct work){.run = run_nothing});
}
API cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                             CUgraph child)
{
    ADDING;
    return add_child(out, graph, child);
}

API cuGraphClone(CUgraph *out, CUgraph graph)
{
    BEGIN;
    NEED(out && graph_valid(graph) && !has_memory_nodes(graph), INVALID_VALUE);
    struct CUgraph_st *clone = graph_new();
    NEED(clone, OUT_OF_MEMORY);
    struct CUgraphNode_st *nodes;
    CUresult error = nodes_copy(graph->nodes, clone, &nodes);
    if (error)
        return error;
    append(clone, nodes);
    *out = clone;
    return CUDA_SUCCESS;
}

static CUresult add_node(CUgraphNode *out, CUgraph graph, CUgraphNodeParams *params)
{
    NEED(params, INVALID_VALUE);
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return graph_add_alloc(graph, &params->alloc, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return graph_add_free(graph, params->free.dptr, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return add_memcpy(out, graph, &params->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return add_memset(out, graph, (const CUDA_MEMSET_NODE_PARAMS *)&params->memset);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return add_child(out, graph, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return add(out, graph, CU_GRAPH_NODE_TYPE_EMPTY, &(struct work){.run = run_nothing});
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}
API cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                   CUgraphNodeParams *params)
{
    ADDING;
    return add_node(out, graph, params);
}
API cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, const void *edges, size_t count,
                      CUgraphNodeParams *params)
{
    ADDING;
    (void)edges;
    return add_node(out, graph, params);
}

API cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    BEGIN;
    NEED(graph_valid(graph) && count, INVALID_VALUE);
    size_t n = 0;
    for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next, n++)
        if (nodes && n < *count)
            nodes[n] = node;
    *count = n;
    return CUDA_SUCCESS;
}
API cuGraphNodeGetType(CUgraphNode node, int *type)
{
    BEGIN;
    NEED(node && type, INVALID_VALUE);
    *type = node->type;
    return CUDA_SUCCESS;
}
API cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
    BEGIN;
    NEED(node && out && node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC, INVALID_VALUE);
    *out = node->alloc;
    return CUDA_SUCCESS;
}
API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *out)
{
    BEGIN;
    NEED(node && out && node->type == CU_GRAPH_NODE_TYPE_MEM_FREE, INVALID_VALUE);
    *out = node->freed;
    return CUDA_SUCCESS;
}

API cuGraphDestroy(CUgraph graph)
{
    BEGIN;
    NEED(graph_valid(graph), INVALID_VALUE);
    for (struct CUgraph_st **at = &graphs; *at; at = &(*at)->next)
        if (*at == graph) {
            *at = graph->next;
            break;
        }
    nodes_free(graph->nodes); /* the addresses of allocation nodes stay reserved: executable graphs use them */
    free(graph);
    return CUDA_SUCCESS;
}

/* --- instances --- */

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(out && graph_valid(graph), INVALID_VALUE);
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
    NEED(exec, OUT_OF_MEMORY);
    exec->flags = (unsigned)flags;
    exec->device = ctx->device;
    if ((error = nodes_copy(graph->nodes, graph, &exec->nodes))) {
        free(exec);
        return error;
    }
    exec->next = execs;
    *out = execs = exec;
    return CUDA_SUCCESS;
}
API cuGraphInstantiate(CUgraphExec *out, CUgraph graph)
{
    BEGIN;
    return instantiate(out, graph, 0);
}
API cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph)
{
    BEGIN;
    return instantiate(out, graph, 0);
}
API cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    BEGIN;
    return instantiate(out, graph, flags);
}
static CUresult with_params(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    NEED(params, INVALID_VALUE);
    CUresult error = instantiate(out, graph, params->flags);
    params->result_out = error ? 1 : 0;
    return error;
}
API cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    BEGIN;
    return with_params(out, graph, params);
}
API cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    BEGIN;
    return with_params(out, graph, params);
}

/* The same nodes with other parameters. */
static CUresult update(CUgraphExec exec, CUgraph graph, int *result)
{
    NEED(exec_valid(exec) && graph_valid(graph) && result, INVALID_VALUE);
    const struct CUgraphNode_st *a = exec->nodes, *b = graph->nodes;
    while (a && b && a->type == b->type)
        a = a->next, b = b->next;
    *result = a || b ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    NEED(!*result, GRAPH_EXEC_UPDATE_FAILURE);
    struct CUgraphNode_st *nodes;
    CUresult error = nodes_copy(graph->nodes, graph, &nodes);
    if (error)
        return error;
    nodes_free(exec->nodes);
    exec->nodes = nodes;
    return CUDA_SUCCESS;
}
API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, int *result)
{
    BEGIN;
    if (error_node)
        *error_node = NULL;
    return update(exec, graph, result);
}
API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    BEGIN;
    NEED(info, INVALID_VALUE);
    *info = (CUgraphExecUpdateResultInfo){0};
    return update(exec, graph, &info->result);
}

static size_t units(size_t bytes)
{
    return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

void graph_block_freed(struct alloc *alloc, struct CUstream_st *stream)
{
    (void)stream;
    struct device *d = &sim_devices[alloc->device];
    d->graph_used -= units(alloc->size);
    ledger_free(alloc->device, L_GRAPH, alloc->size);
    back_protect((void *)alloc->address, alloc->size, PROT_NONE);
    alloc_forget(alloc);
}

/* Takes the memory of an allocation node: from what the device keeps for graphs, else from the device. */
static CUresult node_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct CUctx_st *ctx)
{
    int device = params->poolProps.location.id;
    struct device *d = &sim_devices[device];
    size_t bytes = units(params->bytesize);
    if (d->graph_used + bytes > d->graph_reserved) {
        size_t more = d->graph_used + bytes - d->graph_reserved;
        if (fail_now() || device_take(device, more)) {
            ledger_fail(device, params->bytesize);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        d->graph_reserved += more;
        if (d->graph_reserved > d->graph_reserved_high)
            d->graph_reserved_high = d->graph_reserved;
    }
    struct alloc *alloc = alloc_add(params->dptr, params->bytesize, A_GRAPH, device, ctx);
    NEED(alloc, INVALID_VALUE);
    alloc->span = 0;
    back_protect((void *)params->dptr, params->bytesize, PROT_READ | PROT_WRITE);
    d->graph_used += bytes;
    if (d->graph_used > d->graph_used_high)
        d->graph_used_high = d->graph_used;
    ledger_alloc(device, L_GRAPH, params->bytesize);
    return CUDA_SUCCESS;
}

static void run_graph_free(struct work *work)
{
    struct alloc *alloc = alloc_base(work->a[0]);
    if (alloc && alloc->kind == A_GRAPH)
        graph_block_freed(alloc, NULL);
}

static CUresult launch(CUgraphExec exec, CUstream handle, int per_thread)
{
    struct CUstream_st *stream;
    CUresult error = stream_of(handle, per_thread, &stream);
    if (error)
        return error;
    NEED(exec_valid(exec), INVALID_VALUE);
    NEED(!stream->capture, STREAM_CAPTURE_UNSUPPORTED);
    /* a launch before this one may still hold its blocks */
    for (const struct CUgraphNode_st *n = exec->nodes; n; n = n->next) {
        struct alloc *alloc = n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? alloc_base(n->alloc.dptr) : NULL;
        if (!alloc)
            continue;
        stream_finish(stream); /* a free may be pending */
        if (!(alloc = alloc_base(n->alloc.dptr)))
            continue;
        NEED(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, INVALID_VALUE);
        graph_block_freed(alloc, stream);
    }
    for (struct CUgraphNode_st *n = exec->nodes; n; n = n->next) {
        struct work work = n->work;
        if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            if ((error = node_alloc(&n->alloc, stream->ctx)))
                return error;
            continue;
        }
        if (n->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
            work = (struct work){.run = run_graph_free, .a = {n->freed}};
        } else if (work.blob) {
            void *blob = malloc(work.blob_bytes);
            NEED(blob, OUT_OF_MEMORY);
            work.blob = memcpy(blob, n->work.blob, work.blob_bytes);
        }
        if ((error = stream_add(stream, &work, 0, NULL)))
            return error;
    }
    return CUDA_SUCCESS;
}
API cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    BEGIN;
    return launch(exec, handle, 0);
}
API cuGraphLaunch_ptsz(CUgraphExec exec, CUstream handle)
{
    BEGIN;
    return launch(exec, handle, 1);
}
API cuGraphUpload(CUgraphExec exec, CUstream handle)
{
    BEGIN_CONTEXT;
    (void)handle;
    NEED(exec_valid(exec), INVALID_VALUE);
    return CUDA_SUCCESS;
}
API cuGraphUpload_ptsz(CUgraphExec exec, CUstream handle)
{
    BEGIN_CONTEXT;
    (void)handle;
    NEED(exec_valid(exec), INVALID_VALUE);
    return CUDA_SUCCESS;
}

API cuGraphExecDestroy(CUgraphExec exec)
{
    BEGIN;
    NEED(exec_valid(exec), INVALID_VALUE);
    for (struct CUgraphExec_st **at = &execs; *at; at = &(*at)->next)
        if (*at == exec) {
            *at = exec->next;
            break;
        }
    nodes_free(exec->nodes);
    free(exec);
    return CUDA_SUCCESS;
}

/* --- what the device keeps for graphs --- */

API cuDeviceGraphMemTrim(CUdevice device)
{
    BEGIN;
    NEED(device_valid(device), INVALID_DEVICE);
    struct device *d = &sim_devices[device];
    device_give(device, d->graph_reserved - d->graph_used);
    d->graph_reserved = d->graph_used;
    return CUDA_SUCCESS;
}
API cuDeviceGetGraphMemAttribute(CUdevice device, int what, void *value)
{
    BEGIN;
    NEED(device_valid(device), INVALID_DEVICE);
    NEED(value && what >= 0 && what <= 3, INVALID_VALUE);
    const struct device *d = &sim_devices[device];
    *(cuuint64_t *)value = what == 0   ? d->graph_used
                           : what == 1 ? d->graph_used_high
                           : what == 2 ? d->graph_reserved
                                       : d->graph_reserved_high;
    return CUDA_SUCCESS;
}
API cuDeviceSetGraphMemAttribute(CUdevice device, int what, void *value)
{
    BEGIN;
    NEED(device_valid(device), INVALID_DEVICE);
    NEED(value && *(cuuint64_t *)value == 0 && (what == 1 || what == 3), INVALID_VALUE);
    struct device *d = &sim_devices[device];
    if (what == 1)
        d->graph_used_high = d->graph_used;
    else
        d->graph_reserved_high = d->graph_reserved;
    return CUDA_SUCCESS;
}
