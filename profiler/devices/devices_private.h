/*
 * devices_private.h: what devices.c and device_*.c share, nobody else. They are one thing: devices.c owns the blocks,
 * and hands calls to a file for each sort of memory, which makes and ends blocks. A block's end calls that file again:
 * memory of a pool counts for its pool, a mapping holds its object, and what lies in memory that ends is over.
 */
#ifndef MEMPROF_DEVICES_PRIVATE_H
#define MEMPROF_DEVICES_PRIVATE_H

#include "../../common/array.h"
#include "../../common/map.h"
#include "../../common/range.h"
#include "devices.h"

#include "../../common/kind.h"
#include "../wire.h"

#define DEVICE_IDS 256u

/* Physical memory (cuMemCreate). */
struct vmm_object {
    uint64_t size;
    uint64_t refs; /* handles */
    uint64_t maps;
    uint64_t pins; /* threads that may yet take back the call that ended it */
    uint8_t device_id;
    uint8_t flags;
    uint8_t is_counted; /* its size is in the reserved bytes of its device */
};

struct pool { /* stream-ordered; also the graph memory of a device */
    uint64_t handle;
    uint64_t reserved_bytes, active_bytes;
    uint64_t high_bytes; /* most reserved so far, as sent */
    uint64_t end_bytes;  /* what it held when it was over */
    uint64_t block_count;
    uint64_t pins; /* blocks that the UNDO of a thread may bring back */
    uint8_t device_id;
    uint8_t is_imported, is_ended, is_graph;
};

struct block {
    struct block *next, *previous; /* all blocks, oldest first */
    struct block *next_pending, *previous_pending;
    uint64_t address, size, context, stream, serial;
    struct pool *pool;         /* or NULL */
    struct vmm_object *object; /* of a mapping, or NULL */
    uint32_t stack_id;
    uint32_t free_stack_id;     /* of the call that frees it; 0: not known */
    uint8_t is_freed_elsewhere; /* while another device was current */
    uint8_t kind, device_id;
    uint8_t where;      /* WHERE_* */
    uint8_t in_ranges;  /* WHERE_FOREIGN: found by any address within, too */
    uint8_t is_foreign; /* another process's */
    uint8_t is_segment; /* no block */
    uint8_t is_silent;  /* a mapping of multicast memory: neither */
    uint8_t is_pending;
    uint8_t is_touched; /* an EVENT_TOUCH was sent */
};
enum { WHERE_ADDRESS, WHERE_HANDLE, WHERE_FOREIGN };

/* What the thread's newest < call ended. */
struct graph;
struct undo {
    struct block **blocks;
    size_t block_count, block_capacity;
    struct vmm_object *released; /* a reference of it */
    struct vmm_object **pinned;
    size_t pinned_count, pinned_capacity;
    uint64_t handle;
    uint64_t pending_serial, pending_address; /* 0: none */
    struct graph *graph;
    int is_told; /* that it was refused: there is nothing to take back */
};

/* The newest failure of a thread. */
struct failure {
    uint64_t size;
    unsigned device, kind;
    int has_freed; /* since */
};

struct thread {
    struct undo undo;
    struct failure failure;
};

struct sub_block {
    uint64_t address, size;
    struct sub_pool *pool;
    struct sub_segment *segment;       /* or NULL */
    struct sub_block *next, *previous; /* of its pool */
    uint32_t stack_id;
    uint8_t device_id;
    uint8_t is_segment; /* another sub-allocator's */
    uint8_t is_touched; /* as in struct block */
    uint8_t in_ranges;
};

struct sub_segment {
    uint64_t address, size;
    struct sub_pool *pool;
    struct sub_segment *next, *previous; /* of its pool */
    uint64_t block_count;
    uint8_t device_id;
    uint8_t in_ranges;
    uint8_t is_own; /* in no block that we know: reserved by itself */
};

struct sub_pool {
    uint64_t handle;
    char *name; /* or NULL */
    struct sub_block *blocks;
    struct sub_segment *segments;
};

struct devices {
    const struct devices_sink *sink; /* during a call */
    const struct devices_call *call;
    struct devices_counts counts;
    uint16_t id_of[DEVICE_IDS];                      /* by ordinal; device_id + 1 */
    uint16_t foreign_of[DEVICE_IDS];                 /* by device_id; the same */
    uint64_t reserved_bytes[DEVICE_IDS][KIND_COUNT]; /* sent as samples */
    struct block *first, *last, *first_pending, *last_pending;
    uint64_t serial;
    struct range_map *ranges; /* id: struct block */
    struct map handles;       /* arrays */
    struct map foreign;       /* by address or handle */
    struct map contexts;      /* ordinal + 1 */
    struct map threads;
    struct map pools;
    struct map objects; /* by handle */
    struct map graphs;
    struct map sub_pools, sub_blocks;
    struct map sub_outer; /* blocks that are segments of another sub-allocator */
    struct map sub_segments;
    struct range_map *sub_ranges;       /* id: struct sub_segment; of overlapping ones the first */
    struct range_map *sub_block_ranges; /* id: struct sub_block, of GPUs; of overlapping ones the first */
};

/* devices.c */
unsigned devices_id(struct devices *d, unsigned ordinal); /* device_id; of WIRE_DEVICE_UNKNOWN: the first device's */
unsigned devices_foreign(struct devices *d, unsigned device_id);
void devices_emit(struct devices *d, unsigned op, unsigned device_id, unsigned kind, uint64_t address, uint64_t size,
                  uint32_t stack_id, int is_sampled);
/* A block's death, with who frees it. */
void devices_emit_free(struct devices *d, unsigned op, unsigned device_id, unsigned kind, uint64_t address,
                       uint32_t stack_id, int is_elsewhere);
/* The call under way frees the block, at once or when its stream comes to it. */
void devices_note_free(struct devices *d, struct block *b);
void devices_reserve(struct devices *d, unsigned device_id, unsigned kind, int64_t bytes);
/* The text that begins at a word (its length, then its words), as a copy; NULL: none. */
char *devices_text(const struct devices_call *c, size_t word);
struct thread *devices_thread(struct devices *d);
void devices_undo_clear(struct devices *d, struct undo *u);
void devices_undo_keep(struct undo *u, struct block *b);
void devices_undo_pin(struct undo *u, struct vmm_object *o);
int devices_range_is_bad(uint64_t address, uint64_t size);
struct block *devices_block_new(struct devices *d, uint64_t address, uint64_t size, unsigned device_id);
/* It lives from here on; what it overlaps ends. */
void devices_block_add(struct devices *d, struct block *b);
/* It ends; keep: for that thread's UNDO, or NULL: it is freed. */
void devices_block_end(struct devices *d, struct block *b, struct undo *keep);
struct block *devices_block_at(struct devices *d, uint64_t address);      /* that begins there */
struct block *devices_block_holding(struct devices *d, uint64_t address); /* ... or holds it */
void devices_succeeded(struct devices *d, unsigned kind, uint64_t size);  /* an allocation */
int devices_is_segment_too(const struct block *b);                        /* reserved with it, and not by a sample */
void devices_transfer(struct devices *d, unsigned device_id, uint32_t stack_id, unsigned direction, uint64_t bytes,
                      uint64_t to, uint64_t from);

/* device_touch.c: which blocks copies and fills touch. Addresses of the host, and 0, are no blocks. */
void device_touch(struct devices *d, unsigned direction, uint64_t bytes, uint64_t to, uint64_t from);
/* The same without a look at what was uploaded. */
void device_touch_one(struct devices *d, uint64_t address, uint64_t bytes, unsigned what);
/* The block is gone, or (TOUCH_MOVED) a segment. */
void device_touch_end(struct devices *d, uint8_t *is_touched, unsigned device_id, unsigned kind, uint64_t address,
                      unsigned what);

/* device_pool.c */
int device_pool(struct devices *d);
int device_pool_end(struct devices *d);
int device_pool_alloc(struct devices *d);
int device_pool_free(struct devices *d);
int device_pool_state(struct devices *d);
int device_sync(struct devices *d);
struct pool *device_pool_graph(struct devices *d, unsigned device_id);
void device_pool_born(struct devices *d, const struct block *b); /* before its events */
void device_pool_dies(struct devices *d, struct block *b);       /* after them */
void device_pool_request(struct devices *d, struct block *b, uint64_t stream);
void device_pool_unpend(struct devices *d, struct block *b);
void device_pool_now(struct devices *d, struct pool *pool, uint64_t reserved_bytes);
void device_pool_unpin(struct devices *d, struct pool *pool); /* NULL does nothing */
void device_pools_close(struct devices *d);

/* device_vmm.c */
int device_vmm_create(struct devices *d);
int device_vmm_retain(struct devices *d);
int device_vmm_release(struct devices *d);
int device_vmm_map(struct devices *d);
int device_vmm_unmap(struct devices *d);
void device_vmm_update(struct devices *d,
                       struct vmm_object *o); /* counts or uncounts it; frees it where nothing holds it */
void device_vmm_undo(struct devices *d, struct undo *u);
void device_vmm_close(struct devices *d);

/* device_graph.c */
int device_graph_node(struct devices *d, int is_alloc);
int device_graph_transfer(struct devices *d); /* a captured one */
int device_graph_child(struct devices *d);
int device_graph_instantiate(struct devices *d);
int device_graph_launch(struct devices *d);
int device_graph_end(struct devices *d);
int device_graph_state(struct devices *d);
void device_graph_free(void *graph); /* struct graph; NULL: nothing */
void device_graph_undo(struct devices *d, struct undo *u);
void device_graphs_close(struct devices *d);

/* device_sub.c */
int device_sub_pool(struct devices *d);
int device_sub_pool_end(struct devices *d);
int device_sub_segment(struct devices *d);
int device_sub_segment_end(struct devices *d);
int device_sub_alloc(struct devices *d);
int device_sub_free(struct devices *d);
int device_sub_resize(struct devices *d);
int device_sub_reset(struct devices *d);
void device_sub_memory_ends(struct devices *d, uint64_t address, uint64_t size); /* with the blocks in it */
struct sub_block *device_sub_holding(struct devices *d, uint64_t address);       /* of a GPU; NULL: none */
void device_sub_close(struct devices *d);

#endif
