/* Graphs: their nodes that allocate, free, copy and fill, and the launches that do it. */
#include "cuda.h"

/* Graphs without such nodes concern nobody here: launches are many. */
static uint32_t has_nodes;  /* 1: some graph has one, so that launches matter */
static uint32_t has_memory; /* ... that allocates, so that the device's graph memory matters */

void cuda_graph_allocates(void)
{
    has_nodes = has_memory = 1;
}

void cuda_graph_moves(void)
{
    has_nodes = 1;
}

void cuda_graph_alloc(struct cuda_call *c, cu_handle graph, const struct cu_alloc_node *params)
{
    cuda_graph_allocates();
    CUDA_RECORD(c, GRAPH_ALLOC_NODE, cuda_device_of(c, &params->pool.location), 0, (uint64_t)graph, params->address,
                params->size);
}

void cuda_graph_free(struct cuda_call *c, cu_handle graph, uint64_t p)
{
    cuda_graph_allocates();
    CUDA_RECORD(c, GRAPH_FREE_NODE, cuda_device_current(c), 0, (uint64_t)graph, p);
}

void cuda_graph_node(struct cuda_call *c, cu_handle graph, const struct cu_node *params)
{
    switch (params->type) {
    case CU_NODE_ALLOC:
        cuda_graph_alloc(c, graph, &params->is.alloc);
        break;
    case CU_NODE_FREE:
        cuda_graph_free(c, graph, params->is.free);
        break;
    case CU_NODE_COPY:
        cuda_graph_copy(c, graph, &params->is.copy.params);
        break;
    case CU_NODE_FILL:
        cuda_graph_fill(c, graph, &params->is.fill);
        break;
    case CU_NODE_GRAPH:
        cuda_graph_child(c, graph, params->is.graph);
        break;
    }
}

void cuda_graph_child(struct cuda_call *c, cu_handle graph, cu_handle child)
{
    if (has_nodes)
        CUDA_NOTE(c, GRAPH_CHILD, WIRE_DEVICE_UNKNOWN, 0, (uint64_t)graph, (uint64_t)child);
}

void cuda_graph_instantiated(struct cuda_call *c, cu_handle graph, cu_handle exec)
{
    if (has_nodes)
        CUDA_RECORD(c, GRAPH_INSTANTIATE, cuda_device_current(c), 0, (uint64_t)graph, (uint64_t)exec);
}

void cuda_graph_launched(struct cuda_call *c, cu_handle exec, cu_handle stream)
{
    cu_handle graph = NULL;
    if (!has_nodes)
        return;
    if (unlikely(cuda_capturing(c, stream, &graph))) {
        cuda_graph_child(c, graph, exec);
        return;
    }
    CUDA_NOTE(c, GRAPH_LAUNCH, cuda_device_current(c), 0, (uint64_t)exec, cuda_stream_number(c, stream));
    cuda_graph_state(c, -1);
}

void cuda_graph_ending(struct cuda_call *c, cu_handle graph)
{
    if (has_nodes)
        CUDA_TAKE(c, GRAPH_END, WIRE_DEVICE_UNKNOWN, 0, (uint64_t)graph);
}

void cuda_graph_state(struct cuda_call *c, int device)
{
    uint64_t reserved = 0, used = 0;
    int (*ask)(int, int, void *) = cuda_driver.ask.cuDeviceGetGraphMemAttribute;
    if (!has_memory)
        return;
    if (device < 0) {
        unsigned current = cuda_device_current(c);
        if (current >= WIRE_DEVICE_UNKNOWN)
            return;
        device = (int)current;
    }
    if (ask && ask(device, CU_GRAPH_MEMORY_RESERVED_CURRENT, &reserved) == 0 &&
        ask(device, CU_GRAPH_MEMORY_USED_CURRENT, &used) == 0)
        CUDA_NOTE(c, GRAPH_STATE, cuda_device(c, device), 0, reserved, used);
}
