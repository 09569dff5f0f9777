/* Transfers, as they are requested: bytes, direction, both addresses. */
#include "cuda.h"

static void transfer(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from, int captured)
{
    if (!bytes)
        return;
    unsigned device = cuda_device_current(c);
    CUDA_RECORD(c, TRANSFER, device, captured ? WIRE_CALL_CAPTURED : 0, bytes, direction, to, from);
}

void cuda_moved(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from)
{
    transfer(c, bytes, direction, to, from, 0);
}

void cuda_queued(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from, cu_handle stream)
{
    transfer(c, bytes, direction, to, from, cuda_capturing(c, stream, NULL));
}

void cuda_queued_batch(struct cuda_call *c, const cu_address *to, const cu_address *from, const size_t *sizes,
                       size_t count, cu_handle stream)
{
    int captured = cuda_capturing(c, stream, NULL);
    for (size_t i = 0; i < count; i++)
        transfer(c, sizes[i], WIRE_UNIFIED, to[i], from[i], captured);
}

static uint64_t operand(const struct cu_operand *o)
{
    return o->type == 2 ? (uint64_t)o->at.array.array : o->at.pointer.address;
}

void cuda_queued_batch3d(struct cuda_call *c, const struct cu_copy3d_batch *copies, size_t count, cu_handle stream)
{
    int captured = cuda_capturing(c, stream, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct cu_copy3d_batch *b = &copies[i];
        transfer(c, CUDA_BYTES3D(b), WIRE_UNIFIED, operand(&b->to), operand(&b->from), captured);
    }
}

void cuda_graph_copy(struct cuda_call *c, const struct cu_copy3d2 *copy)
{
    uint64_t bytes = CUDA_BYTES3D(copy);
    transfer(c, bytes, cuda_direction(copy->to_type, copy->from_type), CUDA_SIDE(copy, to), CUDA_SIDE(copy, from), 1);
}

void cuda_graph_fill(struct cuda_call *c, const struct cu_fill_node *fill)
{
    transfer(c, cuda_product(cuda_product(fill->width, fill->height), fill->element_size), WIRE_FILL, fill->to, 0, 1);
}

unsigned cuda_direction(int to_type, int from_type)
{
    int to_host = to_type == CU_MEMORY_HOST, from_host = from_type == CU_MEMORY_HOST;
    if (to_type == CU_MEMORY_UNIFIED || from_type == CU_MEMORY_UNIFIED)
        return WIRE_UNIFIED;
    return to_host ? (from_host ? WIRE_HTOH : WIRE_DTOH) : (from_host ? WIRE_HTOD : WIRE_DTOD);
}
