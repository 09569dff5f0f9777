/*
 * cuda.h: the wrappers around the CUDA driver: which real functions there are, what a call under way knows, what it
 * records.
 *
 * A wrapper runs the real function without the thread's guard, so that memory which the driver takes from malloc is
 * recorded as in a plain run; a guard of its own (thread.cuda_sp) keeps out the calls of driver functions that the
 * driver makes itself and those made here to ask it. Nothing here is called while the driver holds locks.
 */
#ifndef MEMPROF_CUDA_H
#define MEMPROF_CUDA_H

#include "../record.h"
#include "cuda_abi.h"

#include <errno.h>

#pragma GCC visibility push(hidden)

/* --- the driver (cuda_bind.c) --- */

enum cuda_symbol {
#define CUDA(symbol, ...)         CUDA_##symbol,
#define CUDA_SPECIAL(symbol, ...) CUDA_##symbol,
#include "cuda.def"
    CUDA_SYMBOLS
};

/* Written while binding only; a driver that is bound stays mapped. NULL: this driver lacks it. */
struct cuda_driver {
    int bound; /* acquire before the rest is read */
    int used;  /* a hook was handed out or called */
    void *symbol[CUDA_SYMBOLS];
    struct {
#define X(name, parameters) int(*name) parameters;
#include "cuda_questions.def"
#undef X
    } ask;
};
extern struct cuda_driver cuda_driver;

struct cuda_row {
    const char *symbol, *name;
    void *hook;
    uint32_t version;
    uint32_t per_thread;
};
extern const struct cuda_row cuda_rows[CUDA_SYMBOLS]; /* hooks_cuda.c */

int cuda_bind_slow(void);
/* 1: the driver is loaded and its functions are known. Not from signal handlers: it calls dlopen once. */
static inline int cuda_bind(void)
{
    return likely(__atomic_load_n(&cuda_driver.bound, __ATOMIC_ACQUIRE)) || cuda_bind_slow();
}
/* The row of this name, or -1. */
int cuda_find(const char *symbol);
/* The hook for what the genuine look-up of a name by dlsym gave; NULL: leave it as it is. */
void *cuda_hook_of(int symbol, const void *genuine);
/* The same for cuGetProcAddress; genuine is not NULL. */
void *cuda_hook_of_name(const char *name, int version, uint64_t flags, void *genuine, uint64_t *untracked);

/* --- a call under way (cuda_call.c) --- */

struct cuda_call {
    struct unwind_state at;
    struct thread *thread;
    uint64_t outer_sp;
    uint16_t hook;
    uint8_t per_thread; /* stream 0 is the thread's own */
    uint8_t taken;      /* a record of what the real call takes away was written */
    uint8_t captured;   /* asked before the call: its stream is capturing */
    uint8_t is_oom;     /* the real call found no memory, of: */
    uint8_t oom_device;
    uint64_t oom_bytes;
    uint32_t frees;   /* cuda_pool_frees before a wait */
    int error_number; /* errno */
};

/* 0: only pass the call on. */
int cuda_enter(struct cuda_call *c);
void cuda_leave(struct cuda_call *c);
/* The real call failed: takes back what was recorded before it, tells a want of memory; size: what it asked for, 0
 * unknown. */
void cuda_failed(struct cuda_call *c, int result, uint64_t size);

void cuda_write(struct cuda_call *c, unsigned call, unsigned device, unsigned flags, uint32_t stack,
                const uint64_t *arguments, unsigned count, const char *text);
uint32_t cuda_stack(struct cuda_call *c);
/* Of what takes memory away: who frees it, and the device that is current then; 0 and unknown where nobody asks. */
uint32_t cuda_free_stack(struct cuda_call *c);
unsigned cuda_free_device(struct cuda_call *c);

#define CUDA_COUNT(...) (sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
/* With and without the calling stack. */
#define CUDA_RECORD(c, call, device, flags, ...)                                                                       \
    cuda_write((c), WIRE_CALL_##call, (device), (flags), cuda_stack(c), (const uint64_t[]){__VA_ARGS__},               \
               CUDA_COUNT(__VA_ARGS__), NULL)
#define CUDA_NOTE(c, call, device, flags, ...)                                                                         \
    cuda_write((c), WIRE_CALL_##call, (device), (flags), 0, (const uint64_t[]){__VA_ARGS__}, CUDA_COUNT(__VA_ARGS__),  \
               NULL)
/* What takes something away: recorded before the real call, with the stack where that is asked for. */
#define CUDA_TAKE(c, call, device, flags, ...)                                                                         \
    do {                                                                                                               \
        cuda_write((c), WIRE_CALL_##call, (device), (flags), cuda_free_stack(c), (const uint64_t[]){__VA_ARGS__},      \
                   CUDA_COUNT(__VA_ARGS__), NULL);                                                                     \
        (c)->taken = 1;                                                                                                \
    } while (0)

/* Announces the device when it is new; -1 and the like: WIRE_DEVICE_UNKNOWN. */
unsigned cuda_device(struct cuda_call *c, int ordinal);
unsigned cuda_device_current(struct cuda_call *c);
unsigned cuda_device_of_hook(struct cuda_call *c); /* the host for pinned memory, else the current context's */
unsigned cuda_device_of(struct cuda_call *c, const struct cu_location *location);
unsigned cuda_device_of_address(struct cuda_call *c, cu_address p);
uint64_t cuda_context_current(void);
/* Streams by a number that no two have at once: the default streams differ by thread or not. */
uint64_t cuda_stream_number(const struct cuda_call *c, cu_handle stream);
/* 1: it is capturing; the graph is *graph where it is known. */
int cuda_capturing(const struct cuda_call *c, cu_handle stream, cu_handle *graph);
uint64_t cuda_range_size(cu_address p);

static inline uint64_t cuda_product(uint64_t a, uint64_t b)
{
    uint64_t bytes;
    return __builtin_mul_overflow(a, b, &bytes) ? UINT64_MAX : bytes;
}

/* --- what the calls mean: cuda_memory.c --- */

void cuda_allocated(struct cuda_call *c, uint64_t p, uint64_t size);
void cuda_freeing(struct cuda_call *c, uint64_t p);
void cuda_memory_info(struct cuda_call *c, uint64_t free, uint64_t total);
uint64_t cuda_array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format, unsigned channels,
                          unsigned flags, unsigned levels);
void cuda_array_created(struct cuda_call *c, cu_handle array, uint64_t size);
void cuda_vmm_reserved(struct cuda_call *c, uint64_t p, uint64_t size);
void cuda_vmm_unreserving(struct cuda_call *c, uint64_t p, uint64_t size);
void cuda_vmm_created(struct cuda_call *c, cu_memory handle, uint64_t size, const struct cu_location *location,
                      unsigned flags);
void cuda_vmm_imported(struct cuda_call *c, cu_memory handle);
void cuda_vmm_retained(struct cuda_call *c, cu_memory handle, uint64_t p);
void cuda_vmm_releasing(struct cuda_call *c, cu_memory handle);
void cuda_vmm_mapped(struct cuda_call *c, uint64_t p, uint64_t size, uint64_t offset, cu_memory handle);
void cuda_vmm_unmapping(struct cuda_call *c, uint64_t p, uint64_t size);
void cuda_foreign(struct cuda_call *c, uint64_t p, uint64_t size);
void cuda_foreign_closing(struct cuda_call *c, uint64_t p);
void cuda_foreign_all(struct cuda_call *c, const cu_handle *resources, unsigned count);
void cuda_foreign_close_all(struct cuda_call *c, const cu_handle *resources, unsigned count);
void cuda_context_ended(struct cuda_call *c, cu_handle context);
void cuda_primary_retained(struct cuda_call *c, cu_handle context, int device);
void cuda_primary_released(struct cuda_call *c, int device);
void cuda_primary_reset(struct cuda_call *c, int device);

/* --- cuda_pool.c: stream-ordered memory --- */

void cuda_pool_allocated(struct cuda_call *c, uint64_t p, uint64_t size, cu_handle pool, cu_handle stream);
void cuda_pool_freeing(struct cuda_call *c, uint64_t p, cu_handle stream);
void cuda_pool_freed(struct cuda_call *c, uint64_t p, cu_handle stream);
void cuda_pool_created(struct cuda_call *c, cu_handle pool, const struct cu_pool_properties *properties);
void cuda_pool_imported(struct cuda_call *c, cu_handle pool);
void cuda_pool_destroying(struct cuda_call *c, cu_handle pool);
void cuda_pool_destroyed(struct cuda_call *c, cu_handle pool);
void cuda_pool_changed(struct cuda_call *c, cu_handle pool);
void cuda_pool_set(struct cuda_call *c, int device, cu_handle pool);
void cuda_waiting(struct cuda_call *c);
void cuda_waited(struct cuda_call *c, cu_handle stream_or_context, int whole_context);

/* --- cuda_graph.c --- */

/* A node that allocates or frees, that copies or fills, was made. */
void cuda_graph_allocates(void);
void cuda_graph_moves(void);
void cuda_graph_alloc(struct cuda_call *c, cu_handle graph, const struct cu_alloc_node *params);
void cuda_graph_free(struct cuda_call *c, cu_handle graph, uint64_t p);
void cuda_graph_node(struct cuda_call *c, cu_handle graph, const struct cu_node *params);
void cuda_graph_child(struct cuda_call *c, cu_handle graph, cu_handle child);
void cuda_graph_instantiated(struct cuda_call *c, cu_handle graph, cu_handle exec);
void cuda_graph_launched(struct cuda_call *c, cu_handle exec, cu_handle stream);
void cuda_graph_ending(struct cuda_call *c, cu_handle graph);
void cuda_graph_state(struct cuda_call *c, int device);

/* --- cuda_move.c: transfers --- */

void cuda_moved(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from);
void cuda_queued(struct cuda_call *c, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from, cu_handle stream);
void cuda_queued_batch(struct cuda_call *c, const cu_address *to, const cu_address *from, const size_t *sizes,
                       size_t count, cu_handle stream);
void cuda_queued_batch3d(struct cuda_call *c, const struct cu_copy3d_batch *copies, size_t count, cu_handle stream);
void cuda_graph_copy(struct cuda_call *c, cu_handle graph, const struct cu_copy3d2 *copy);
void cuda_graph_fill(struct cuda_call *c, cu_handle graph, const struct cu_fill_node *fill);

unsigned cuda_direction(int to_type, int from_type);
/* Bytes, direction, destination, source of a described copy. */
#define CUDA_SIDE(copy, side)                                                                                          \
    ((copy)->side##_type == CU_MEMORY_HOST    ? (uint64_t)(copy)->side##_host                                          \
     : (copy)->side##_type == CU_MEMORY_ARRAY ? (uint64_t)(copy)->side##_array                                         \
                                              : (uint64_t)(copy)->side##_device)
#define CUDA_SIDES(copy) CUDA_SIDE(copy, to), CUDA_SIDE(copy, from)
#define CUDA_COPY2D(copy)                                                                                              \
    cuda_product((copy)->width, (copy)->height), cuda_direction((copy)->to_type, (copy)->from_type), CUDA_SIDES(copy)
#define CUDA_BYTES3D(copy)     cuda_product(cuda_product((copy)->width, (copy)->height), (copy)->depth)
#define CUDA_COPY3D(copy)      CUDA_BYTES3D(copy), cuda_direction((copy)->to_type, (copy)->from_type), CUDA_SIDES(copy)
#define CUDA_COPY3D_PEER(copy) CUDA_BYTES3D(copy), WIRE_PEER, CUDA_SIDES(copy)

#pragma GCC visibility pop

#endif
