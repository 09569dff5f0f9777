/*
 * Virtual memory management: physical memory with handles, reserved addresses, mappings. Physical memory lives until
 * its handles' references and its mappings are all gone. A multicast object is a handle without memory of its own.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRANULARITY = 2 * 1024 * 1024 };

struct physical {
    int fd, device; /* -1: host, or another process's */
    size_t size;
    unsigned handles, mappings;
    int multicast, charged;
    CUmemAllocationProp prop;
    struct physical *next;
};
struct handle {
    CUmemGenericAllocationHandle id;
    struct physical *physical;
    unsigned references;
    struct handle *next;
};
struct reserved {
    CUdeviceptr address;
    size_t size;
    struct reserved *next;
};
static struct physical *physicals;
static struct handle *handles;
static struct reserved *ranges;
static uint64_t last_id = 0x7000;

static struct handle *handle_of(CUmemGenericAllocationHandle id)
{
    for (struct handle *h = handles; h; h = h->next)
        if (h->id == id)
            return h;
    return NULL;
}

static CUresult handle_new(struct physical *physical, CUmemGenericAllocationHandle *out)
{
    struct handle *h = calloc(1, sizeof *h);
    NEED(h, OUT_OF_MEMORY);
    h->id = last_id += 16;
    h->physical = physical;
    h->references = 1;
    h->next = handles;
    handles = h;
    physical->handles++;
    *out = h->id;
    return CUDA_SUCCESS;
}

static void physical_end_if_unused(struct physical *physical)
{
    if (physical->handles || physical->mappings)
        return;
    for (struct physical **at = &physicals; *at; at = &(*at)->next)
        if (*at == physical) {
            *at = physical->next;
            break;
        }
    if (physical->charged) {
        device_give(physical->device, physical->size);
        ledger_free(physical->device, L_VMM, physical->size);
    }
    close(physical->fd);
    free(physical);
}

static struct physical *physical_new(int fd, size_t size, const CUmemAllocationProp *prop)
{
    struct physical *physical = calloc(1, sizeof *physical);
    if (!physical)
        return NULL;
    physical->fd = fd;
    physical->size = size;
    physical->prop = *prop;
    physical->device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
    physical->next = physicals;
    physicals = physical;
    return physical;
}

static CUresult prop_check(const CUmemAllocationProp *prop)
{
    NEED(prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED, INVALID_VALUE);
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        NEED(device_valid(prop->location.id), INVALID_DEVICE);
    else
        NEED(prop->location.type > CU_MEM_LOCATION_TYPE_DEVICE &&
                 prop->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
             INVALID_VALUE);
    return CUDA_SUCCESS;
}

API cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop, int option)
{
    BEGIN;
    CUresult error = prop_check(prop);
    if (error)
        return error;
    NEED(out && option >= 0 && option <= 1, INVALID_VALUE);
    *out = GRANULARITY;
    return CUDA_SUCCESS;
}

API cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                unsigned long long flags)
{
    BEGIN;
    CUresult error = prop_check(prop);
    if (error)
        return error;
    NEED(out && size && size % GRANULARITY == 0 && !flags, INVALID_VALUE);
    int device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
    if (fail_now() || (device >= 0 && device_take(device, size))) {
        ledger_fail(device, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    int fd = back_file(size);
    struct physical *physical = fd >= 0 ? physical_new(fd, size, prop) : NULL;
    if (!physical) {
        if (fd >= 0)
            close(fd);
        if (device >= 0)
            device_give(device, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->charged = device >= 0;
    if (device >= 0)
        ledger_alloc(device, L_VMM, size);
    error = handle_new(physical, out);
    if (error)
        physical_end_if_unused(physical);
    return error;
}

API cuMemRelease(CUmemGenericAllocationHandle id)
{
    BEGIN;
    struct handle *h = handle_of(id);
    NEED(h && h->references, INVALID_VALUE);
    if (--h->references)
        return CUDA_SUCCESS;
    struct physical *physical = h->physical;
    if (physical->mappings) /* the handle's number stays known to cuMemRetainAllocationHandle, as long as something is
                               mapped */
        return CUDA_SUCCESS;
    for (struct handle **at = &handles; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    free(h);
    physical->handles--;
    physical_end_if_unused(physical);
    return CUDA_SUCCESS;
}

/* Handles without references that only mappings kept. */
static void handles_drop_unused(struct physical *physical)
{
    if (physical->mappings)
        return;
    for (struct handle **at = &handles; *at;) {
        struct handle *h = *at;
        if (h->physical == physical && !h->references) {
            *at = h->next;
            free(h);
            physical->handles--;
        } else {
            at = &h->next;
        }
    }
    physical_end_if_unused(physical);
}

API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    BEGIN;
    struct alloc *mapping = alloc_at((CUdeviceptr)address);
    NEED(out && mapping && mapping->kind == A_MAPPING, INVALID_VALUE);
    struct handle *h = mapping->owner;
    h->references++;
    *out = h->id;
    return CUDA_SUCCESS;
}

API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle id)
{
    BEGIN;
    struct handle *h = handle_of(id);
    NEED(out && h && h->references, INVALID_VALUE);
    *out = h->physical->prop;
    return CUDA_SUCCESS;
}

/* --- addresses --- */

API cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr where, unsigned long long flags)
{
    BEGIN;
    NEED(out && size && size % GRANULARITY == 0 && !flags && (alignment & (alignment - 1)) == 0, INVALID_VALUE);
    struct reserved *range = calloc(1, sizeof *range);
    void *address = range ? back_reserve(size, (void *)where, alignment) : NULL;
    if (!address) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *range = (struct reserved){(CUdeviceptr)address, size, ranges};
    ranges = range;
    *out = range->address;
    return CUDA_SUCCESS;
}

static struct reserved *range_of(CUdeviceptr address, size_t size)
{
    for (struct reserved *r = ranges; r; r = r->next)
        if (address >= r->address && size <= r->size && address - r->address <= r->size - size)
            return r;
    return NULL;
}

API cuMemAddressFree(CUdeviceptr address, size_t size)
{
    BEGIN;
    for (struct reserved **at = &ranges; *at; at = &(*at)->next)
        if ((*at)->address == address && (*at)->size == size) {
            NEED(!alloc_overlaps(address, size), INVALID_VALUE); /* something is mapped there */
            struct reserved *range = *at;
            *at = range->next;
            back_unmap((void *)address, size);
            free(range);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

API cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle id, unsigned long long flags)
{
    BEGIN;
    struct handle *h = handle_of(id);
    NEED(h && h->references && !flags && size && size % GRANULARITY == 0 && address % GRANULARITY == 0, INVALID_VALUE);
    NEED(offset <= h->physical->size && size <= h->physical->size - offset, INVALID_VALUE);
    NEED(range_of(address, size) && !alloc_overlaps(address, size), INVALID_VALUE);
    NEED(back_map_file(h->physical->fd, size, offset, (void *)address, PROT_NONE), OUT_OF_MEMORY);
    struct alloc *mapping = alloc_add(address, size, A_MAPPING, h->physical->device, NULL);
    NEED(mapping, OUT_OF_MEMORY);
    mapping->owner = h;
    mapping->offset = offset;
    mapping->span = 0;
    h->physical->mappings++;
    return CUDA_SUCCESS;
}

/* Calls visit for each mapping of the range, which they must cover wholly. */
static CUresult each_mapping(CUdeviceptr address, size_t size, void (*visit)(struct alloc *mapping, int data), int data)
{
    CUdeviceptr at = address;
    for (; at < address + size;) { /* first look, then act */
        struct alloc *mapping = alloc_base(at);
        NEED(mapping && mapping->kind == A_MAPPING && mapping->size <= address + size - at, INVALID_VALUE);
        at += mapping->size;
    }
    for (at = address; at < address + size;) {
        struct alloc *mapping = alloc_base(at);
        at += mapping->size;
        visit(mapping, data);
    }
    return CUDA_SUCCESS;
}

static void unmap_one(struct alloc *mapping, int data)
{
    (void)data;
    struct physical *physical = ((struct handle *)mapping->owner)->physical;
    back_unmap((void *)mapping->address, mapping->size);
    back_reserve(mapping->size, (void *)mapping->address, 0);
    alloc_forget(mapping);
    physical->mappings--;
    handles_drop_unused(physical);
}

API cuMemUnmap(CUdeviceptr address, size_t size)
{
    BEGIN;
    NEED(size, INVALID_VALUE);
    sim_finish_all();
    return each_mapping(address, size, unmap_one, 0);
}

static void protect_one(struct alloc *mapping, int access)
{
    mapping->flags = (unsigned)access;
    back_protect((void *)mapping->address, mapping->size, access);
}

API cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)
{
    BEGIN;
    NEED(access && count && size, INVALID_VALUE);
    int host_access = PROT_NONE; /* a host cannot tell one device from another */
    for (size_t i = 0; i < count; i++) {
        NEED(access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || device_valid(access[i].location.id),
             INVALID_DEVICE);
        if (access[i].flags)
            host_access |= access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    }
    return each_mapping(address, size, protect_one, host_access);
}

API cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    BEGIN;
    struct alloc *mapping = alloc_at(address);
    NEED(flags && location && mapping && mapping->kind == A_MAPPING, INVALID_VALUE);
    *flags = mapping->flags & PROT_WRITE ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : mapping->flags            ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                         : 0;
    return CUDA_SUCCESS;
}

/* --- sharing --- */

API cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle id, int type, unsigned long long flags)
{
    BEGIN;
    struct handle *h = handle_of(id);
    NEED(out && h && h->references && !flags && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    NEED(h->physical->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    int fd = dup(h->physical->fd);
    NEED(fd >= 0, OPERATING_SYSTEM);
    *(int *)out = fd;
    return CUDA_SUCCESS;
}

CUresult vmm_import_fd(int fd, CUmemGenericAllocationHandle *out)
{
    struct stat theirs, ours;
    NEED(!fstat(fd, &theirs) && theirs.st_size > 0, INVALID_VALUE);
    for (struct physical *p = physicals; p; p = p->next) /* this process's own */
        if (!fstat(p->fd, &ours) && ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev)
            return handle_new(p, out);
    int copy = dup(fd);
    NEED(copy >= 0, OPERATING_SYSTEM);
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct physical *physical = physical_new(copy, (size_t)theirs.st_size, &prop);
    if (!physical) {
        close(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return handle_new(physical, out);
}

API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle, int type)
{
    BEGIN;
    NEED(out && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    return vmm_import_fd((int)(intptr_t)os_handle, out);
}

API cuMemGetHandleForAddressRange(void *out, CUdeviceptr address, size_t size, int type, unsigned long long flags)
{
    BEGIN;
    NEED(out && type == 1 && !flags && size % 4096 == 0 && address % 4096 == 0 && alloc_at(address), INVALID_VALUE);
    return CUDA_ERROR_NOT_SUPPORTED; /* no dma-buf */
}

/* --- multicast --- */

static CUresult multicast_prop(const CUmulticastObjectProp *prop)
{
    NEED(prop && prop->numDevices > 1 && (int)prop->numDevices <= sim_config.device_count && !prop->flags,
         INVALID_VALUE);
    return CUDA_SUCCESS;
}

API cuMulticastGetGranularity(size_t *out, const CUmulticastObjectProp *prop, int option)
{
    BEGIN;
    NEED(out && option >= 0 && option <= 1, INVALID_VALUE);
    CUresult error = multicast_prop(prop);
    if (!error)
        *out = GRANULARITY;
    return error;
}

API cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
    BEGIN;
    CUresult error = multicast_prop(prop);
    if (error)
        return error;
    NEED(out && prop->size && prop->size % GRANULARITY == 0, INVALID_VALUE);
    int fd = back_file(prop->size);
    NEED(fd >= 0, OUT_OF_MEMORY);
    const CUmemAllocationProp memory = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct physical *physical = physical_new(fd, prop->size, &memory);
    if (!physical) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->multicast = 1;
    return handle_new(physical, out);
}

static struct physical *multicast_of(CUmemGenericAllocationHandle id)
{
    struct handle *h = handle_of(id);
    return h && h->references && h->physical->multicast ? h->physical : NULL;
}

API cuMulticastAddDevice(CUmemGenericAllocationHandle id, CUdevice device)
{
    BEGIN;
    NEED(multicast_of(id), INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    return CUDA_SUCCESS;
}
API cuMulticastBindMem(CUmemGenericAllocationHandle id, size_t offset, CUmemGenericAllocationHandle memory,
                       size_t memory_offset, size_t size, unsigned long long flags)
{
    BEGIN;
    struct physical *multicast = multicast_of(id);
    struct handle *h = handle_of(memory);
    NEED(multicast && h && h->references && !h->physical->multicast && !flags, INVALID_VALUE);
    NEED(size && offset + size <= multicast->size && memory_offset + size <= h->physical->size, INVALID_VALUE);
    return CUDA_SUCCESS;
}
API cuMulticastBindAddr(CUmemGenericAllocationHandle id, size_t offset, CUdeviceptr address, size_t size,
                        unsigned long long flags)
{
    BEGIN;
    struct physical *multicast = multicast_of(id);
    NEED(multicast && !flags && size && offset + size <= multicast->size, INVALID_VALUE);
    return pointer_info(address, size, NULL);
}
API cuMulticastUnbind(CUmemGenericAllocationHandle id, CUdevice device, size_t offset, size_t size)
{
    BEGIN;
    struct physical *multicast = multicast_of(id);
    NEED(multicast && device_valid(device) && offset + size <= multicast->size, INVALID_VALUE);
    return CUDA_SUCCESS;
}
