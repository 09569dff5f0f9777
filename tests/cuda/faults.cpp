/*
 * Programs that misuse the CUDA runtime, or do with it what a profiler may trip over. The first argument chooses; every
 * result is printed, and the ledger of what was really had, so that runs with and without memprof compare.
 */
#include <cuda_runtime.h>

#include "../../samples/ledger.h"

#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, cudaError_t error)
{
    printf("%s: %s\n", what, cudaGetErrorString(error));
    cudaGetLastError();
}

static char *take(int device, size_t bytes)
{
    char *memory = NULL;
    cudaSetDevice(device);
    cudaError_t error = cudaMalloc((void **)&memory, bytes);
    if (error)
        say("cudaMalloc", error);
    else
        ledger_alloc(device, "device", bytes);
    return memory;
}

static void give(int device, char *memory, size_t bytes)
{
    cudaError_t error = cudaFree(memory);
    if (error)
        say("cudaFree", error);
    else
        ledger_free(device, "device", bytes);
}

/* Frees of what is not there. */
static void wrong_free()
{
    char *memory = take(0, 1000);
    say("inside a block", cudaFree(memory + 512));
    say("unknown", cudaFree((void *)0x123456789000));
    say("host memory", cudaFree(&memory));
    say("pinned", cudaFreeHost(memory));
    give(0, memory, 1000);
    say("again", cudaFree(memory));
    say("never in a pool", cudaFreeAsync(memory, nullptr));
}

/* A reset frees what the device holds, and nothing of the other device; it works afterwards. */
static void reset()
{
    for (int i = 1; i <= 3; i++)
        take(0, 1000 * i);
    char *other = take(1, 5000);
    void *pinned, *managed;
    cudaSetDevice(0);
    say("pinned", cudaMallocHost(&pinned, 3000));
    ledger_alloc(-1, "pinned", 3000);
    say("managed", cudaMallocManaged(&managed, 7000, cudaMemAttachGlobal));
    ledger_alloc(0, "managed", 7000);
    say("reset", cudaDeviceReset());
    for (int i = 1; i <= 3; i++)
        ledger_free(0, "device", 1000 * i);
    ledger_free(-1, "pinned", 3000);
    ledger_free(0, "managed", 7000);
    char *after = take(0, 4000);
    give(0, after, 4000);
    cudaSetDevice(1);
    give(1, other, 5000);
}

/* Pools that end before their blocks do. */
static void pending()
{
    struct cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaStream_t stream;
    say("stream", cudaStreamCreate(&stream));
    for (int i = 0; i < 4; i++) {
        cudaMemPool_t pool;
        void *memory[5];
        say("pool", cudaMemPoolCreate(&pool, &props));
        for (int k = 0; k < 5; k++) {
            cudaError_t error = cudaMallocFromPoolAsync(&memory[k], 100000, pool, stream);
            if (error)
                say("take", error);
            ledger_alloc(0, "pool", 100000);
        }
        if (i % 2)
            say("destroy early", cudaMemPoolDestroy(pool));
        for (int k = 0; k < 5; k++) {
            cudaError_t error = cudaFreeAsync(memory[k], stream);
            if (error)
                say("free", error);
            ledger_pending(0, "pool", 100000);
        }
        if (i % 2 == 0)
            say("destroy", cudaMemPoolDestroy(pool));
        say("destroy again", cudaMemPoolDestroy(pool));
        if (i >= 2) {
            say("synchronize", cudaStreamSynchronize(stream));
            ledger_synchronized(0, "pool");
        }
    }
    say("end", cudaStreamDestroy(stream));
}

/* A child after the driver was initialized cannot use it; the parent goes on. */
static void forked()
{
    char *memory = take(0, 2000);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        void *more;
        say("child", cudaMalloc(&more, 10));
        say("child frees", cudaFree(memory));
        fflush(stdout);
        _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child ended with %d\n", WEXITSTATUS(status));
    give(0, memory, 2000);
}

/* A graph that holds memory between its launches. */
static void graph()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *memory;
    unsigned long long reserved = 0;
    say("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    say("begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    say("take", cudaMallocAsync(&memory, 3 << 20, stream));
    say("fill", cudaMemsetAsync(memory, 1, 3 << 20, stream));
    say("free", cudaFreeAsync(memory, stream));
    say("end", cudaStreamEndCapture(stream, &graph));
    say("instantiate", cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        say("launch", cudaGraphLaunch(exec, stream));
        say("synchronize", cudaStreamSynchronize(stream));
        ledger_alloc(0, "pool", 3 << 20);
        ledger_free(0, "pool", 3 << 20);
    }
    say("kept", cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
    printf("kept %llu\n", reserved);
    say("trim", cudaDeviceGraphMemTrim(0));
    say("exec", cudaGraphExecDestroy(exec));
    say("graph", cudaGraphDestroy(graph));
    say("stream", cudaStreamDestroy(stream));
}

/* Memory of one process in another: `ipc` starts itself again with the handle. */
static void ipc(const char *self)
{
    char *memory = take(0, 1 << 20);
    cudaIpcMemHandle_t handle;
    char text[2 * sizeof handle + 1];
    say("fill", cudaMemset(memory, 42, 1 << 20));
    say("handle", cudaIpcGetMemHandle(&handle, memory));
    for (size_t i = 0; i < sizeof handle; i++)
        snprintf(text + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, "ipc_child", text, (char *)NULL);
        _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child ended with %d\n", WEXITSTATUS(status));
    give(0, memory, 1 << 20);
}
static int ipc_child(const char *text)
{
    cudaIpcMemHandle_t handle;
    void *memory = NULL;
    unsigned char first = 0;
    for (size_t i = 0; i < sizeof handle; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    say("open", cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
    say("read", cudaMemcpy(&first, memory, 1, cudaMemcpyDeviceToHost));
    say("close", cudaIpcCloseMemHandle(memory));
    return first;
}

/* Blocks that nobody frees. */
static void leak()
{
    for (int i = 0; i < 5; i++)
        take(i % 2, 10000);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "ipc_child") && argc > 2)
        return ipc_child(argv[2]);
    if (!strcmp(what, "wrong_free"))
        wrong_free();
    else if (!strcmp(what, "reset"))
        reset();
    else if (!strcmp(what, "pending"))
        pending();
    else if (!strcmp(what, "forked"))
        forked();
    else if (!strcmp(what, "graph"))
        graph();
    else if (!strcmp(what, "ipc"))
        ipc(argv[0]);
    else if (!strcmp(what, "leak"))
        leak();
    else
        return 2;
    ledger_print();
    return 0;
}
