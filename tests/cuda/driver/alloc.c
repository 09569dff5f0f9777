/* The index of allocations by address. */
#include "sim.h"

#include <search.h>
#include <stdlib.h>
#include <unistd.h>

static void *tree;

/* Ranges that overlap are equal, so that a search for one byte finds what contains it. */
static int compare(const void *left, const void *right)
{
    const struct alloc *a = left, *b = right;
    size_t a_size = a->size ? a->size : 1, b_size = b->size ? b->size : 1;
    return a->address + a_size <= b->address ? -1 : b->address + b_size <= a->address;
}

static int is_uncarried(enum alloc_kind kind)
{
    return kind == A_MANAGED || kind == A_FOREIGN;
}

struct alloc *alloc_add(CUdeviceptr address, size_t size, enum alloc_kind kind, int device, struct CUctx_st *ctx)
{
    struct alloc *alloc = calloc(1, sizeof *alloc);
    if (!alloc)
        return NULL;
    *alloc = (struct alloc){.address = address,
                            .size = size,
                            .span = page_round(size),
                            .kind = kind,
                            .device = device,
                            .ctx = ctx,
                            .fd = -1,
                            .buffer_id = sim_ids++};
    struct alloc **node = tsearch(alloc, &tree, compare);
    if (node && *node == alloc) {
        shared_uncarried(is_uncarried(kind));
        return alloc;
    }
    free(alloc);
    return NULL;
}

struct alloc *alloc_at(CUdeviceptr address)
{
    const struct alloc key = {.address = address, .size = 1};
    struct alloc **node = tfind(&key, &tree, compare);
    return node ? *node : NULL;
}

struct alloc *alloc_base(CUdeviceptr address)
{
    struct alloc *alloc = alloc_at(address);
    return alloc && alloc->address == address ? alloc : NULL;
}

int alloc_overlaps(CUdeviceptr address, size_t size)
{
    const struct alloc key = {.address = address, .size = size};
    return tfind(&key, &tree, compare) != NULL;
}

CUresult pointer_info(CUdeviceptr address, size_t bytes, struct alloc **out)
{
    struct alloc *alloc = alloc_at(address);
    if (!alloc)
        return CUDA_ERROR_INVALID_VALUE;
    size_t end;
    if (__builtin_add_overflow((size_t)(address - alloc->address), bytes, &end))
        return CUDA_ERROR_INVALID_VALUE;
    if (out)
        *out = alloc;
    /* neighbouring mappings of one reserved range may be used as one */
    while (end > alloc->size) {
        if (alloc->kind != A_MAPPING)
            return CUDA_ERROR_INVALID_VALUE;
        end -= alloc->size;
        struct alloc *next = alloc_base(alloc->address + alloc->size);
        if (!next || next->kind != A_MAPPING)
            return CUDA_ERROR_INVALID_VALUE;
        alloc = next;
    }
    return CUDA_SUCCESS;
}

CUresult pointer_usable(CUdeviceptr address, size_t bytes, int later)
{
    return later && graph_will_have(address, bytes) ? CUDA_SUCCESS : pointer_info(address, bytes, NULL);
}

void alloc_forget(struct alloc *alloc)
{
    shared_uncarried(-is_uncarried(alloc->kind));
    tdelete(alloc, &tree, compare);
    free(alloc);
}

void alloc_release(struct alloc *alloc)
{
    static const enum ledger_what kinds[A_KINDS] = {[A_PLAIN] = L_PLAIN, [A_MANAGED] = L_MANAGED, [A_HOST] = L_HOST};
    if (alloc->kind == A_PLAIN || alloc->kind == A_MANAGED || alloc->kind == A_HOST)
        ledger_free(alloc->device, kinds[alloc->kind], alloc->size);
    if (alloc->charged)
        device_give(alloc->device, alloc->charged);
    if (alloc->span && alloc->kind != A_REGISTERED)
        back_unmap((void *)alloc->address, alloc->span);
    if (alloc->fd >= 0)
        close(alloc->fd);
    alloc_forget(alloc);
}

struct list {
    struct alloc **items;
    size_t count, room;
};
static void collect(const void *node, VISIT visit, void *data)
{
    struct list *list = data;
    if (visit != postorder && visit != leaf)
        return;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct alloc **items = realloc(list->items, room * sizeof *items);
        if (!items)
            return;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = *(struct alloc *const *)node;
}

void alloc_each(int (*visit)(struct alloc *alloc, void *data), void *data)
{
    struct list list = {0};
    twalk_r(tree, collect, &list);
    for (size_t i = 0; i < list.count; i++)
        if (visit(list.items[i], data))
            break;
    free(list.items);
}

static int end_one(struct alloc *alloc, void *ctx)
{
    if (alloc->ctx == ctx && (alloc->kind == A_PLAIN || alloc->kind == A_MANAGED || alloc->kind == A_HOST ||
                              alloc->kind == A_REGISTERED || alloc->kind == A_FOREIGN))
        alloc_release(alloc);
    return 0;
}

void alloc_end_context(struct CUctx_st *ctx)
{
    alloc_each(end_one, ctx);
}
