/*
 * nvtx.h: the parts of NVTX version 3's tool interface that we take part in, after its published headers
 * (nvToolsExt.h, nvToolsExtMem.h, nvtxDetail/nvtxTypes.h, nvtxExtTypes.h). A test compares them where the headers are.
 */
#ifndef MEMPROF_NVTX_H
#define MEMPROF_NVTX_H

#include <stddef.h>
#include <stdint.h>

typedef const void *nvtx_export_table(uint32_t id);
typedef void (*nvtx_function)(void);

#define NVTX_TABLE_CALLBACKS 1u
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

struct nvtx_callbacks {
    size_t struct_size;
    int (*module_table)(int module, nvtx_function ***table, unsigned *size);
};

enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

#define NVTX_EXTENSION_MEMORY  1u
#define NVTX_MEMORY_COMPATIBLE 0x102u

struct nvtx_segment {
    size_t id, slot_count;
    intptr_t *slots;
};

struct nvtx_extension {
    uint16_t version, struct_size, module, compatible;
    size_t segment_count;
    struct nvtx_segment *segments;
    void *export_function;
    const void *info;
};

/* slots of the memory extension */
enum {
    NVTX_HEAP_REGISTER,
    NVTX_HEAP_UNREGISTER,
    NVTX_HEAP_RESET,
    NVTX_REGIONS_REGISTER,
    NVTX_REGIONS_RESIZE,
    NVTX_REGIONS_UNREGISTER,
    NVTX_REGIONS_NAME,
    NVTX_MEMORY_SLOTS,
};

enum { NVTX_HEAP_SUB_ALLOCATOR = 1 };
enum { NVTX_TYPE_VIRTUAL_ADDRESS = 1 };
enum { NVTX_REF_POINTER = 1, NVTX_REF_HANDLE = 2 };

struct nvtx_range {
    size_t size_bytes;
    const void *address;
};

struct nvtx_heap {
    uint16_t compatible, struct_size;
    uint32_t reserved;
    uint32_t usage, type;
    size_t range_bytes;
    const struct nvtx_range *range;
    uint32_t category, message_type;
    const void *message;
};

struct nvtx_regions { /* to register */
    uint16_t compatible, struct_size;
    uint32_t type;
    uint64_t heap;
    size_t count, element_bytes;
    const void *elements;
    uint64_t *handles; /* may be NULL */
};

struct nvtx_resize {
    uint16_t compatible, struct_size;
    uint32_t type;
    size_t count, element_bytes;
    const void *elements;
};

struct nvtx_refs { /* to unregister: addresses or handles; ours are the addresses */
    uint16_t compatible, struct_size;
    uint32_t ref_type;
    size_t count, element_bytes;
    const void *elements;
};

struct nvtx_region_name {
    uint32_t ref_type, message_type;
    uint64_t region;
    const void *message;
    uint32_t category, reserved;
};

struct nvtx_names {
    uint16_t compatible, struct_size;
    uint32_t reserved;
    size_t count, element_bytes;
    const void *elements;
    size_t reserved_too;
};

#endif
