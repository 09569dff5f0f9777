/*
 * A CUPTI user: subscribes to the runtime's callbacks and counts what it sees of cudaMalloc, cudaFree and kernels.
 * There is one subscriber a process: a profiler that took it would make this fail.
 */
#include <cuda_runtime.h>
#include <cupti.h>

#include <stdio.h>
#include <string.h>

static unsigned mallocs, frees, launches;

static void CUPTIAPI seen(void *, CUpti_CallbackDomain domain, CUpti_CallbackId, const void *data)
{
    const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API || call->callbackSite != CUPTI_API_ENTER)
        return;
    mallocs += !strncmp(call->functionName, "cudaMalloc", 10);
    frees += !strncmp(call->functionName, "cudaFree", 8);
    launches += !strncmp(call->functionName, "cudaLaunchKernel", 16);
}

__global__ void nothing()
{
}

int main()
{
    CUpti_SubscriberHandle subscriber;
    CUptiResult error = cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)seen, NULL);
    if (!error)
        error = cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    if (error) {
        printf("cupti error %d\n", (int)error);
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        void *memory;
        if (cudaMalloc(&memory, 1000))
            return 1;
        nothing<<<1, 1>>>();
        cudaFree(memory);
    }
    cudaDeviceSynchronize();
    cuptiUnsubscribe(subscriber);
    printf("cupti saw %u mallocs %u frees %u launches\n", mallocs, frees, launches);
    return mallocs == 10 && frees == 10 && launches == 10 ? 0 : 1;
}
