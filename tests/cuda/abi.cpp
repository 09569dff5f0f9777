// Compares preload/cuda_abi.h and the parameters in cuda.def with NVIDIA's cuda.h: sizes, offsets, and what registers
// each argument takes. Compiling is the test.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

#include "../../profiler/preload/gpu/cuda_abi.h"

template <class A, class B> constexpr bool passed_alike()
{
    return sizeof(A) == sizeof(B) && std::is_class<A>::value == std::is_class<B>::value &&
           (std::is_class<A>::value || std::is_floating_point<A>::value == std::is_floating_point<B>::value);
}
template <class A, class B> struct alike;
template <class R1, class... P1, class R2, class... P2> struct alike<R1(P1...), R2(P2...)> {
    static constexpr bool value()
    {
        if constexpr (sizeof...(P1) == sizeof...(P2))
            return (passed_alike<P1, P2>() && ... && true);
        else
            return false;
    }
};

#define CUDA(symbol, name, version, per_thread, parameters, ...)                                                       \
    typedef int our_##symbol parameters;                                                                               \
    static_assert(alike<our_##symbol, std::remove_pointer_t<decltype(&symbol)>>::value(), #symbol);
#include "../../profiler/preload/gpu/cuda.def"

#define SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define FIELD(ours, field, theirs, their_field)                                                                        \
    static_assert(offsetof(ours, field) == offsetof(theirs, their_field), #theirs "." #their_field);                   \
    static_assert(sizeof(ours::field) == sizeof(theirs::their_field), #theirs "." #their_field)

SIZE(cu_location, CUmemLocation);
FIELD(cu_location, id, CUmemLocation, id);
SIZE(cu_memory_properties, CUmemAllocationProp);
FIELD(cu_memory_properties, location, CUmemAllocationProp, location);
SIZE(cu_multicast_properties, CUmulticastObjectProp);
FIELD(cu_multicast_properties, size, CUmulticastObjectProp, size);
SIZE(cu_pool_properties, CUmemPoolProps);
FIELD(cu_pool_properties, location, CUmemPoolProps, location);
SIZE(cu_alloc_node, CUDA_MEM_ALLOC_NODE_PARAMS_v1);
SIZE(cu_alloc_node, CUDA_MEM_ALLOC_NODE_PARAMS_v2);
FIELD(cu_alloc_node, size, CUDA_MEM_ALLOC_NODE_PARAMS_v1, bytesize);
FIELD(cu_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS_v1, dptr);
FIELD(cu_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr);
SIZE(cu_ipc_handle, CUipcMemHandle);
SIZE(cu_external_handle, CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
FIELD(cu_external_handle, size, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
SIZE(cu_array_requirements, CUDA_ARRAY_MEMORY_REQUIREMENTS);
FIELD(cu_array_requirements, size, CUDA_ARRAY_MEMORY_REQUIREMENTS, size);
#define ARRAY2(ours, theirs)                                                                                           \
    SIZE(ours, theirs);                                                                                                \
    FIELD(ours, width, theirs, Width);                                                                                 \
    FIELD(ours, height, theirs, Height);                                                                               \
    FIELD(ours, format, theirs, Format);                                                                               \
    FIELD(ours, channels, theirs, NumChannels)
ARRAY2(cu_array1, CUDA_ARRAY_DESCRIPTOR_v1);
ARRAY2(cu_array2, CUDA_ARRAY_DESCRIPTOR_v2);
ARRAY2(cu_array3d1, CUDA_ARRAY3D_DESCRIPTOR_v1);
ARRAY2(cu_array3d2, CUDA_ARRAY3D_DESCRIPTOR_v2);
FIELD(cu_array3d1, depth, CUDA_ARRAY3D_DESCRIPTOR_v1, Depth);
FIELD(cu_array3d1, flags, CUDA_ARRAY3D_DESCRIPTOR_v1, Flags);
FIELD(cu_array3d2, depth, CUDA_ARRAY3D_DESCRIPTOR_v2, Depth);
FIELD(cu_array3d2, flags, CUDA_ARRAY3D_DESCRIPTOR_v2, Flags);
#define SIDE(ours, theirs, our, their)                                                                                 \
    FIELD(ours, our##_type, theirs, their##MemoryType);                                                                \
    FIELD(ours, our##_host, theirs, their##Host);                                                                      \
    FIELD(ours, our##_device, theirs, their##Device);                                                                  \
    FIELD(ours, our##_array, theirs, their##Array);                                                                    \
    FIELD(ours, our##_pitch, theirs, their##Pitch)
#define COPY(ours, theirs)                                                                                             \
    SIZE(ours, theirs);                                                                                                \
    SIDE(ours, theirs, from, src);                                                                                     \
    SIDE(ours, theirs, to, dst);                                                                                       \
    FIELD(ours, width, theirs, WidthInBytes);                                                                          \
    FIELD(ours, height, theirs, Height)
COPY(cu_copy2d1, CUDA_MEMCPY2D_v1);
COPY(cu_copy2d2, CUDA_MEMCPY2D_v2);
COPY(cu_copy3d1, CUDA_MEMCPY3D_v1);
COPY(cu_copy3d2, CUDA_MEMCPY3D_v2);
COPY(cu_copy3d2, CUDA_MEMCPY3D_PEER);
FIELD(cu_copy3d1, depth, CUDA_MEMCPY3D_v1, Depth);
FIELD(cu_copy3d2, depth, CUDA_MEMCPY3D_v2, Depth);
FIELD(cu_copy3d2, depth, CUDA_MEMCPY3D_PEER, Depth);
FIELD(cu_copy3d2, to_context, CUDA_MEMCPY3D_PEER, dstContext);
SIZE(cu_operand, CUmemcpy3DOperand);
FIELD(cu_operand, at.pointer.address, CUmemcpy3DOperand, op.ptr.ptr);
FIELD(cu_operand, at.array.array, CUmemcpy3DOperand, op.array.array);
SIZE(cu_copy3d_batch, CUDA_MEMCPY3D_BATCH_OP);
FIELD(cu_copy3d_batch, to, CUDA_MEMCPY3D_BATCH_OP, dst);
FIELD(cu_copy3d_batch, width, CUDA_MEMCPY3D_BATCH_OP, extent.width);
SIZE(cu_fill_node, CUDA_MEMSET_NODE_PARAMS_v1);
FIELD(cu_fill_node, element_size, CUDA_MEMSET_NODE_PARAMS_v1, elementSize);
FIELD(cu_fill_node, width, CUDA_MEMSET_NODE_PARAMS_v1, width);
FIELD(cu_fill_node, height, CUDA_MEMSET_NODE_PARAMS_v1, height);
SIZE(cu_node, CUgraphNodeParams);
FIELD(cu_node, is.alloc.address, CUgraphNodeParams, alloc.dptr);
FIELD(cu_node, is.free, CUgraphNodeParams, free.dptr);
FIELD(cu_node, is.graph, CUgraphNodeParams, graph.graph);
FIELD(cu_node, is.copy.params, CUgraphNodeParams, memcpy.copyParams);
FIELD(cu_node, is.fill.width, CUgraphNodeParams, memset.width);

static_assert(CU_OUT_OF_MEMORY == CUDA_ERROR_OUT_OF_MEMORY && CU_NOT_INITIALIZED == CUDA_ERROR_NOT_INITIALIZED &&
              CU_SYMBOL_NOT_FOUND == CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
static_assert(CU_MEMORY_HOST == CU_MEMORYTYPE_HOST && CU_MEMORY_DEVICE == CU_MEMORYTYPE_DEVICE &&
              CU_MEMORY_ARRAY == CU_MEMORYTYPE_ARRAY && CU_MEMORY_UNIFIED == CU_MEMORYTYPE_UNIFIED);
static_assert(CU_LOCATION_DEVICE == CU_MEM_LOCATION_TYPE_DEVICE && CU_LOCATION_HOST == CU_MEM_LOCATION_TYPE_HOST &&
              CU_LOCATION_HOST_NUMA == CU_MEM_LOCATION_TYPE_HOST_NUMA &&
              CU_LOCATION_HOST_NUMA_CURRENT == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
static_assert(CU_POOL_RESERVED_CURRENT == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT &&
              CU_POOL_RESERVED_HIGH == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH &&
              CU_POOL_USED_CURRENT == CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
static_assert(CU_GRAPH_MEMORY_USED_CURRENT == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT &&
              CU_GRAPH_MEMORY_RESERVED_CURRENT == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
static_assert(CU_POINTER_DEVICE_ORDINAL == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL &&
              CU_POINTER_POOL == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
static_assert(CU_NODE_COPY == CU_GRAPH_NODE_TYPE_MEMCPY && CU_NODE_FILL == CU_GRAPH_NODE_TYPE_MEMSET &&
              CU_NODE_GRAPH == CU_GRAPH_NODE_TYPE_GRAPH && CU_NODE_ALLOC == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
              CU_NODE_FREE == CU_GRAPH_NODE_TYPE_MEM_FREE);
static_assert(CU_PROC_PER_THREAD_STREAM == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
static_assert(CU_ARRAY_CUBEMAP == CUDA_ARRAY3D_CUBEMAP && CU_ARRAY_SPARSE == CUDA_ARRAY3D_SPARSE &&
              CU_ARRAY_DEFERRED == CUDA_ARRAY3D_DEFERRED_MAPPING);
