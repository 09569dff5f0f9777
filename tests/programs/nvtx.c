/*
 * NVTX version 3 as programs use it: marks, ranges of the thread, of a domain and across threads, registered strings,
 * categories, wide text; a sub-allocator's heap with regions. Built with NVIDIA's headers where they are, else with a
 * stand-in that loads the tool as they do. Prints what the calls gave, so that runs with and without tools compare.
 */
#if defined(REAL_NVTX)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#else
#include "nvtx_standin.inc"
#endif

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nvtxRangeId_t across;

static void *other_thread(void *arg)
{
    (void)arg;
    nvtxRangeEnd(across);
    return NULL;
}

static nvtxEventAttributes_t text(const char *message, unsigned category)
{
    nvtxEventAttributes_t a;
    memset(&a, 0, sizeof a);
    a.version = NVTX_VERSION;
    a.size = sizeof a;
    a.category = category;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = message;
    return a;
}

static void sub_allocator(nvtxDomainHandle_t domain)
{
    char *memory = malloc(1 << 20);
    nvtxMemVirtualRangeDesc_t range = {1 << 20, memory};
    nvtxMemHeapDesc_t heap;
    memset(&heap, 0, sizeof heap);
    heap.extCompatID = NVTX_EXT_COMPATID_MEM;
    heap.structSize = sizeof heap;
    heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    heap.typeSpecificDescSize = sizeof range;
    heap.typeSpecificDesc = &range;
    heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
    heap.message.ascii = "arena";
    nvtxMemHeapHandle_t handle = nvtxMemHeapRegister(domain, &heap);

    nvtxMemVirtualRangeDesc_t blocks[3] = {{1000, memory}, {2000, memory + 4096}, {3000, memory + 8192}};
    nvtxMemRegionHandle_t handles[3];
    nvtxMemRegionsRegisterBatch_t batch = {NVTX_EXT_COMPATID_MEM,
                                           sizeof batch,
                                           NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                           handle,
                                           3,
                                           sizeof blocks[0],
                                           blocks,
                                           handles};
    nvtxMemRegionsRegister(domain, &batch);
    nvtxMemVirtualRangeDesc_t larger = {2500, memory + 4096};
    nvtxMemRegionsResizeBatch_t resize = {NVTX_EXT_COMPATID_MEM, sizeof resize, NVTX_MEM_TYPE_VIRTUAL_ADDRESS, 1,
                                          sizeof larger,         &larger};
    nvtxMemRegionsResize(domain, &resize);
    nvtxMemRegionRef_t refs[2];
    refs[0].pointer = memory;
    refs[1].pointer = memory + 8192;
    nvtxMemRegionsUnregisterBatch_t gone = {NVTX_EXT_COMPATID_MEM, sizeof gone, NVTX_MEM_REGION_REF_TYPE_POINTER, 2,
                                            sizeof refs[0],        refs};
    nvtxMemRegionsUnregister(domain, &gone);
    nvtxMemHeapUnregister(domain, handle);
    free(memory);
}

int main(void)
{
    pthread_t t;
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainNameCategoryA(domain, 7, "io");
    nvtxMarkA("plain");
    nvtxMarkW(L"wide \u00fc\u20ac\U0001f600");
    nvtxEventAttributes_t a = text("with category", 7);
    nvtxDomainMarkEx(domain, &a);
    nvtxRangePushA("forward");
    nvtxEventAttributes_t inner = text("", 0);
    inner.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    inner.message.registered = registered;
    nvtxDomainRangePushEx(domain, &inner);
    nvtxRangePop(); /* of the default domain: forward */
    nvtxDomainRangePop(domain);
    across = nvtxRangeStartA("across");
    pthread_create(&t, NULL, other_thread, NULL);
    pthread_join(t, NULL);
    nvtxRangeStartA("never ended");
    sub_allocator(domain);
    puts("done");
    return 0;
}
