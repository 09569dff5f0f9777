/*
 * cuda_abi.h: what the wrappers need of the CUDA driver's documented ABI, so that the build needs no CUDA toolkit.
 * Handles are void pointers here, results ints. tests/cuda/abi.c compares this with cuda.h where there is one.
 */
#ifndef MEMPROF_CUDA_ABI_H
#define MEMPROF_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cu_address;  /* CUdeviceptr */
typedef uint32_t cu_address1; /* CUdeviceptr before 3.2: 32 bits, as all sizes were */
typedef uint64_t cu_memory;   /* CUmemGenericAllocationHandle */
typedef void *cu_handle;      /* CUcontext, CUstream, CUarray, CUgraph, CUmemoryPool, ... */

enum {
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_SYMBOL_NOT_FOUND = 302,
};

enum { CU_LEGACY_STREAM = 1, CU_THREAD_STREAM = 2 };
enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2, CU_MEMORY_ARRAY = 3, CU_MEMORY_UNIFIED = 4 };
enum { CU_LOCATION_DEVICE = 1, CU_LOCATION_HOST = 2, CU_LOCATION_HOST_NUMA = 3, CU_LOCATION_HOST_NUMA_CURRENT = 4 };
enum { CU_POOL_RESERVED_CURRENT = 5, CU_POOL_RESERVED_HIGH = 6, CU_POOL_USED_CURRENT = 7 };
enum { CU_GRAPH_MEMORY_USED_CURRENT = 0, CU_GRAPH_MEMORY_RESERVED_CURRENT = 2 };
enum { CU_POINTER_DEVICE_ORDINAL = 9, CU_POINTER_POOL = 17 };
enum { CU_NODE_COPY = 1, CU_NODE_FILL = 2, CU_NODE_GRAPH = 4, CU_NODE_ALLOC = 10, CU_NODE_FREE = 11 };
enum { CU_PROC_PER_THREAD_STREAM = 2 };
enum { CU_ARRAY_CUBEMAP = 4, CU_ARRAY_SPARSE = 0x40, CU_ARRAY_DEFERRED = 0x80 };

struct cu_location {
    int type;
    int id;
};

struct cu_memory_properties { /* CUmemAllocationProp */
    int type;
    int handle_types;
    struct cu_location location;
    void *win32_meta;
    unsigned char flags[8];
};

struct cu_multicast_properties { /* CUmulticastObjectProp */
    unsigned device_count;
    size_t size;
    unsigned long long handle_types;
    unsigned long long flags;
};

struct cu_pool_properties { /* CUmemPoolProps */
    int type;
    int handle_types;
    struct cu_location location;
    void *win32_security;
    size_t max_size;
    unsigned short usage;
    unsigned char reserved[54];
};

struct cu_alloc_node { /* CUDA_MEM_ALLOC_NODE_PARAMS */
    struct cu_pool_properties pool;
    const void *access;
    size_t access_count;
    size_t size;
    cu_address address;
};

struct cu_ipc_handle {
    char reserved[64];
};

struct cu_external_handle { /* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
    int type;
    union {
        int fd;
        void *pointers[2];
    } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};

struct cu_array1 { /* CUDA_ARRAY_DESCRIPTOR_v1 */
    unsigned width, height;
    int format;
    unsigned channels;
};
struct cu_array2 { /* ..._v2 */
    size_t width, height;
    int format;
    unsigned channels;
};
struct cu_array3d1 { /* CUDA_ARRAY3D_DESCRIPTOR_v1 */
    unsigned width, height, depth;
    int format;
    unsigned channels;
    unsigned flags;
};
struct cu_array3d2 { /* ..._v2 */
    size_t width, height, depth;
    int format;
    unsigned channels;
    unsigned flags;
};
struct cu_array_requirements { /* CUDA_ARRAY_MEMORY_REQUIREMENTS */
    size_t size, alignment;
    unsigned reserved[4];
};

/* One side of a copy; `number` is unsigned before 3.2 and size_t since. */
#define CU_SIDE2(side, number, address)                                                                                \
    number side##_x, side##_y;                                                                                         \
    int side##_type;                                                                                                   \
    void *side##_host;                                                                                                 \
    address side##_device;                                                                                             \
    cu_handle side##_array;                                                                                            \
    number side##_pitch
#define CU_SIDE3(side, number, address)                                                                                \
    number side##_x, side##_y, side##_z, side##_lod;                                                                   \
    int side##_type;                                                                                                   \
    void *side##_host;                                                                                                 \
    address side##_device;                                                                                             \
    cu_handle side##_array;                                                                                            \
    void *side##_context; /* reserved but in a peer copy */                                                            \
    number side##_pitch, side##_height

struct cu_copy2d1 { /* CUDA_MEMCPY2D_v1 */
    CU_SIDE2(from, unsigned, cu_address1);
    CU_SIDE2(to, unsigned, cu_address1);
    unsigned width, height;
};
struct cu_copy2d2 { /* CUDA_MEMCPY2D_v2 */
    CU_SIDE2(from, size_t, cu_address);
    CU_SIDE2(to, size_t, cu_address);
    size_t width, height;
};
struct cu_copy3d1 { /* CUDA_MEMCPY3D_v1 */
    CU_SIDE3(from, unsigned, cu_address1);
    CU_SIDE3(to, unsigned, cu_address1);
    unsigned width, height, depth;
};
struct cu_copy3d2 { /* CUDA_MEMCPY3D_v2, CUDA_MEMCPY3D_PEER */
    CU_SIDE3(from, size_t, cu_address);
    CU_SIDE3(to, size_t, cu_address);
    size_t width, height, depth;
};

struct cu_operand { /* CUmemcpy3DOperand */
    int type;       /* 1: a pointer, 2: an array */
    union {
        struct {
            cu_address address;
            size_t row_length, layer_height;
            struct cu_location hint;
        } pointer;
        struct {
            cu_handle array;
            size_t x, y, z;
        } array;
    } at;
};
struct cu_copy3d_batch { /* CUDA_MEMCPY3D_BATCH_OP */
    struct cu_operand from, to;
    size_t width, height, depth;
    int order;
    unsigned flags;
};

struct cu_fill_node { /* CUDA_MEMSET_NODE_PARAMS */
    cu_address to;
    size_t pitch;
    unsigned value;
    unsigned element_size;
    size_t width, height;
};

struct cu_node { /* CUgraphNodeParams */
    int type;
    int reserved[3];
    union {
        long long words[29];
        struct cu_alloc_node alloc;
        cu_address free;
        cu_handle graph; /* of a node that is a graph; more follows */
        struct cu_fill_node fill;
        struct {
            int flags;
            int reserved;
            cu_handle context;
            struct cu_copy3d2 params;
        } copy;
    } is;
    long long reserved2;
};

#endif
