/*
 * sim.h: what the files of the simulated driver share. One lock (sim_enter) guards all of it. Device memory is host
 * memory; work on streams is queued and done when somebody waits for it, so that a stream-ordered free is really
 * pending until then. Every function here expects the lock to be held. Errors are the driver's own.
 */
#ifndef MEMPROF_TESTS_SIM_H
#define MEMPROF_TESTS_SIM_H

#include "../include/cuda_abi.h"

#define API         __attribute__((visibility("default"))) CUresult
#define SIM_DEVICES 16
#define SIM_STACK   64
#define MIB         (1ull << 20)

/* --- configuration, from the environment; see docs/testing.md --- */
struct sim_config {
    int device_count;
    size_t device_bytes[SIM_DEVICES];
    size_t context_bytes; /* what a context itself takes */
    size_t pool_chunk;    /* what a pool asks the device for */
    unsigned fail_every;  /* every Nth allocation is out of memory; 0: none */
    unsigned fail_at;     /* the Nth one is; 0: none */
    int init_error;       /* what cuInit returns */
    int version;
};
extern struct sim_config sim_config;
extern const int sim_built_version;

/* --- entering and leaving --- */
struct sim_guard {
    CUresult error;
    int locked, entered;
};
struct sim_guard sim_enter(int needs_init);
void sim_leave(struct sim_guard *guard);
#define PASS_ON(error)                                                                                                 \
    do {                                                                                                               \
        if (error)                                                                                                     \
            return error;                                                                                              \
    } while (0)
#define BEGIN_ANY                                                                                                      \
    struct sim_guard guard_ __attribute__((cleanup(sim_leave))) = sim_enter(0);                                        \
    (void)guard_
#define BEGIN                                                                                                          \
    struct sim_guard guard_ __attribute__((cleanup(sim_leave))) = sim_enter(1);                                        \
    PASS_ON(guard_.error)
#define BEGIN_CONTEXT                                                                                                  \
    BEGIN;                                                                                                             \
    struct CUctx_st *ctx;                                                                                              \
    CUresult context_error_ = context_current(&ctx);                                                                   \
    PASS_ON(context_error_)
#define NEED(condition, error)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return CUDA_ERROR_##error;                                                                                 \
    } while (0)

/* --- devices --- */
struct device {
    size_t total, used;
    size_t peak;
    struct CUctx_st *primary; /* never freed */
    struct CUmemPoolHandle_st *default_pool, *pool;
    size_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
};
extern struct device sim_devices[SIM_DEVICES];
int device_valid(int device);
/* Takes bytes of the device's memory: 0, or out of memory. */
CUresult device_take(int device, size_t bytes);
void device_give(int device, size_t bytes);
size_t device_used(int device); /* by all processes that share a file of SIM_CUDA_STATE */
/* Failure injection: counts an allocation call, and says whether it must fail. */
int fail_now(void);

/* --- checkpoint.c: what processes share; the gate of each call --- */
void shared_open(void);
void shared_join(void);
void shared_forked(void);
void shared_add(int device, int64_t bytes);
void shared_uncarried(int difference); /* blocks that no checkpoint carries */
void shared_enter(void);               /* waits while the process is locked */
void shared_leave(void);

/* --- host memory behind device memory; system calls, so that nobody's mmap hook counts it --- */
void *back_map(size_t bytes, int low); /* NULL: none. low: under 4 GiB, for the oldest entry points */
void *back_reserve(size_t bytes, void *address, size_t alignment); /* no access */
void back_unmap(void *address, size_t bytes);
int back_protect(void *address, size_t bytes, int access);
int back_file(size_t bytes);                                                       /* a memfd, or -1 */
void *back_map_file(int fd, size_t bytes, size_t offset, void *fixed, int access); /* fixed NULL: anywhere */
size_t page_round(size_t bytes);

/* --- contexts --- */
struct CUctx_st {
    uint64_t id;
    int device;
    int is_primary, active;
    unsigned retained, flags, version;
    struct CUctx_st *next;
    struct CUstream_st *legacy;
    uint64_t peers; /* devices with peer access enabled */
};
CUresult context_current(struct CUctx_st **ctx); /* of this thread, usable */
int context_valid(const struct CUctx_st *ctx);
void context_end(struct CUctx_st *ctx);   /* frees all that it owns */
struct CUctx_st *context_any(int device); /* a usable context of the device, or NULL */

/* --- allocations by address: no two overlap --- */
enum alloc_kind { A_PLAIN, A_MANAGED, A_HOST, A_REGISTERED, A_POOL, A_GRAPH, A_FOREIGN, A_MAPPING, A_KINDS };
struct alloc {
    CUdeviceptr address;
    size_t size, span; /* asked for, backed */
    enum alloc_kind kind;
    int device; /* -1: host */
    size_t charged;
    struct CUctx_st *ctx;
    unsigned flags;
    int fd;      /* shared by IPC: the memfd behind it, else -1 */
    void *owner; /* pool block, VMM handle, graph node */
    struct CUmemPoolHandle_st *pool;
    size_t offset; /* of a mapping */
    int pins;      /* opens of an IPC handle */
    uint64_t buffer_id;
};
struct alloc *alloc_add(CUdeviceptr address, size_t size, enum alloc_kind kind, int device, struct CUctx_st *ctx);
struct alloc *alloc_at(CUdeviceptr address);   /* the one that contains it, or NULL */
struct alloc *alloc_base(CUdeviceptr address); /* ... that begins there */
void alloc_forget(struct alloc *alloc);        /* out of the index, freed */
void alloc_release(struct alloc *alloc);       /* ... with its memory */
void alloc_each(int (*visit)(struct alloc *alloc, void *data),
                void *data); /* visit may forget or release it; stops on non-zero */
int alloc_overlaps(CUdeviceptr address, size_t size);
void alloc_end_context(struct CUctx_st *ctx);
void array_end_context(struct CUctx_st *ctx);
CUresult pointer_info(CUdeviceptr address, size_t bytes, struct alloc **out); /* inside one allocation? */
CUresult pointer_usable(CUdeviceptr address, size_t bytes,
                        int later); /* ... or, later, in a block that a graph will have? */
extern uint64_t sim_ids;

/* --- work --- */
struct work {
    void (*run)(struct work *work);
    uint64_t a[14];
    void *blob; /* malloc'ed, owned */
    size_t blob_bytes;
};
struct op {
    uint64_t seq;
    struct work work;
    struct op *next;
};
struct CUstream_st {
    struct CUctx_st *ctx;
    unsigned flags;
    int priority;
    uint64_t id;
    int is_legacy;
    long per_thread; /* thread id of a per-thread default stream, 0 otherwise */
    struct op *head, **tail;
    struct CUgraph_st *capture;
    struct CUstream_st *capture_origin;
    CUgraph capture_joined; /* capturing because it waited for an event of a capturing stream */
    int capture_mode, capture_broken;
    uint64_t capture_id;
    struct CUstream_st *next;
};
/* The stream of a handle: NULL and 1 the context's legacy one, 2 (and NULL when per_thread) the thread's own. */
CUresult stream_of(CUstream handle, int per_thread, struct CUstream_st **out);
/* Queues work, or adds it to the graph that the stream is capturing. Owns work->blob. seq may be NULL. */
CUresult stream_add(struct CUstream_st *stream, const struct work *work, int node_type, uint64_t *seq);
int stream_done(struct CUstream_st *stream, uint64_t seq);
void stream_run(struct CUstream_st *stream, uint64_t seq); /* all work up to seq */
void stream_finish(struct CUstream_st *stream);
void context_finish(struct CUctx_st *ctx); /* all work of the context */
void sim_finish_all(void);
void stream_end_context(struct CUctx_st *ctx);
int stream_live(const struct CUstream_st *stream);
/* A synchronous call must not touch a legacy stream while a capture is on it. */
CUresult capture_forbids(struct CUctx_st *ctx);
extern uint64_t sim_seq;

/* --- pools --- */
CUresult pool_alloc(CUdeviceptr *out, size_t size, struct CUmemPoolHandle_st *pool, struct CUstream_st *stream);
CUresult pool_free(struct alloc *alloc, struct CUstream_st *stream); /* stream NULL: now */
void pool_trim_device(int device); /* what a synchronization does: down to the release threshold */
struct CUmemPoolHandle_st *pool_default(int device);
int pool_valid(const struct CUmemPoolHandle_st *pool);
int pool_device(const struct CUmemPoolHandle_st *pool);

/* --- graphs --- */
struct CUgraphNode_st {
    int type;
    struct work work;
    struct CUgraph_st *graph;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc; /* MEM_ALLOC: dptr is set */
    CUdeviceptr freed;                /* MEM_FREE */
    struct CUgraphNode_st *next;
};
struct CUgraphNode_st *graph_add(struct CUgraph_st *graph, int type, const struct work *work);
CUresult graph_add_alloc(struct CUgraph_st *graph, CUDA_MEM_ALLOC_NODE_PARAMS *params, struct CUgraphNode_st **out);
CUresult graph_add_free(struct CUgraph_st *graph, CUdeviceptr address, struct CUgraphNode_st **out);
struct CUgraph_st *graph_new(void);
int graph_will_have(CUdeviceptr address, size_t bytes);
void graph_block_freed(struct alloc *alloc, struct CUstream_st *stream); /* a graph's block freed outside it */

/* --- VMM --- */
CUresult vmm_import_fd(int fd, CUmemGenericAllocationHandle *out);

/* --- copies --- */
struct CUarray_st {
    CUDA_ARRAY3D_DESCRIPTOR desc;
    size_t element_bytes, row_bytes, bytes;
    unsigned char *memory;
    int device;
    struct CUctx_st *ctx;
    int is_level, is_3d;
    struct CUmipmappedArray_st *mipmap;
    struct CUarray_st *next;
};
int array_valid(const struct CUarray_st *array);
CUresult copy_3d(const CUDA_MEMCPY3D *copy, struct CUstream_st *stream, int wait);
CUresult copy_work(const CUDA_MEMCPY3D *copy, struct work *work, int *pageable, int later); /* later: for a graph */
void fill_work(struct work *work, CUdeviceptr address, size_t pitch, unsigned value, unsigned element, size_t width,
               size_t height);

/* the driver's own account, written to SIM_CUDA_LEDGER at the end */
enum ledger_what { L_PLAIN, L_MANAGED, L_HOST, L_ARRAY, L_POOL, L_VMM, L_GRAPH, L_KINDS };
void ledger_alloc(int device, enum ledger_what what, size_t bytes);
void ledger_free(int device, enum ledger_what what, size_t bytes);
void ledger_fail(int device, size_t bytes);

#endif
