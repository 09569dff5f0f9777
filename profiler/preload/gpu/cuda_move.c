/* Transfers, as they are requested: bytes, direction, both addresses. */
#include "cuda.h"

static void transfer(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from)
{
    if (bytes)
        CUDA_RECORD(c, TRANSFER, cuda_device_current(c), 0, bytes, direction, to, from);
}

/* A node of a graph: done at its launches. */
static void transfer_later(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from,
                           cu_handle graph)
{
    if (!bytes)
        return;
    cuda_graph_moves();
    CUDA_RECORD(c, TRANSFER, cuda_device_current(c), WIRE_CALL_CAPTURED, bytes, direction, to, from, (uint64_t)graph);
}

void cuda_moved(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from)
{
    transfer(c, bytes, direction, to, from);
}

void cuda_queued(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from, cu_handle stream)
{
    cu_handle graph = NULL;
    if (unlikely(cuda_capturing(c, stream, &graph)))
        transfer_later(c, bytes, direction, to, from, graph);
    else
        transfer(c, bytes, direction, to, from);
}

void cuda_queued_batch(struct cuda_call *c, const cu_address *to, const cu_address *from, const size_t *sizes,
                       size_t count, cu_handle stream)
{
    cu_handle graph = NULL;
    int captured = cuda_capturing(c, stream, &graph);
    for (size_t i = 0; i < count; i++)
        if (captured)
            transfer_later(c, sizes[i], WIRE_UNIFIED, to[i], from[i], graph);
        else
            transfer(c, sizes[i], WIRE_UNIFIED, to[i], from[i]);
}

static uint64_t operand(const struct cu_operand *o)
{
    return o->type == 2 ? (uint64_t)o->at.array.array : o->at.pointer.address;
}

void cuda_queued_batch3d(struct cuda_call *c, const struct cu_copy3d_batch *copies, size_t count, cu_handle stream)
{
    cu_handle graph = NULL;
    int captured = cuda_capturing(c, stream, &graph);
    for (size_t i = 0; i < count; i++) {
        const struct cu_copy3d_batch *b = &copies[i];
        if (captured)
            transfer_later(c, CUDA_BYTES3D(b), WIRE_UNIFIED, operand(&b->to), operand(&b->from), graph);
        else
            transfer(c, CUDA_BYTES3D(b), WIRE_UNIFIED, operand(&b->to), operand(&b->from));
    }
}

void cuda_graph_copy(struct cuda_call *c, cu_handle graph, const struct cu_copy3d2 *copy)
{
    transfer_later(c, CUDA_COPY3D(copy), graph);
}

void cuda_graph_fill(struct cuda_call *c, cu_handle graph, const struct cu_fill_node *fill)
{
    uint64_t bytes = cuda_product(cuda_product(fill->width, fill->height), fill->element_size);
    transfer_later(c, bytes, WIRE_FILL, fill->to, 0, graph);
}

unsigned cuda_direction(int to_type, int from_type)
{
    int to_host = to_type == CU_MEMORY_HOST, from_host = from_type == CU_MEMORY_HOST;
    if (to_type == CU_MEMORY_UNIFIED || from_type == CU_MEMORY_UNIFIED)
        return WIRE_UNIFIED;
    return to_host ? (from_host ? WIRE_HTOH : WIRE_DTOH) : (from_host ? WIRE_HTOD : WIRE_DTOD);
}
