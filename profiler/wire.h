/*
 * wire.h: the shared memory between libmemprof.so (inside the program) and the collector (outside it).
 * One memfd holds a control page, process slots, ring headers and ring data. Everything in it is written by one side
 * only, as noted at each field. The collector treats every word in it as untrusted; the program side likewise.
 */
#ifndef MEMPROF_WIRE_H
#define MEMPROF_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC 0x31455249574d504dull /* "MPMWIRE1" */
#define WIRE_VERSION 2

/* The launcher sets these in the program's environment; the library reads nothing else of it. */
#define WIRE_ENV_SESSION "MEMPROF_SESSION" /* path to open, "/proc/PID/fd/N" of the collector's memfd */
#define WIRE_ENV_PRELOAD "LD_PRELOAD"
/* ... and has NVTX load the library as its tool; the tool that the user had named stands in the second one. */
#define WIRE_ENV_NVTX "NVTX_INJECTION64_PATH"
#define WIRE_ENV_NVTX_NEXT "MEMPROF_NVTX"

/* Geometry. Ring data is touched page by page, so the virtual size costs nothing. */
#define WIRE_RINGS 8192u            /* threads recorded at the same time, over all processes */
#define WIRE_RING_WORDS (1u << 16)  /* 512 KiB a ring; a power of two */
#define WIRE_PROCS 1024u            /* processes recorded at the same time */
#define WIRE_STACK_MAX 1024u        /* upper bound of control.depth_max: frames in one stack */
#define WIRE_RECORD_MAX (WIRE_STACK_MAX + 1024u) /* words in the longest record */
#define WIRE_COMMAND_MAX 4096u
#define WIRE_PATH_MAX 4096u
#define WIRE_SESSION_MAX 64u

#define WIRE_LINE _Alignas(64)

/* control.flags */
#define WIRE_CLOCK_TSC 1u /* stamps are rdtsc; otherwise CLOCK_MONOTONIC nanoseconds */
#define WIRE_FOLLOW 2u    /* children are recorded too */

/* control.state: collector only */
enum { WIRE_STATE_OFF = 0, WIRE_STATE_ON = 1 };

/* Said by a child that borrows its parent's memory, as vfork's does, and has no ring: its parent's rings are no place for
 * it, as nothing says that the parent waits for it. */
#define WIRE_SPAWNS 64u
struct wire_spawn {
    uint64_t stamp;
    uint64_t who; /* its parent's slot << 32 | its pid; 0: taken */
};

struct wire_control {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;         /* WIRE_CLOCK_TSC | WIRE_FOLLOW */
    uint32_t ring_count;    /* <= WIRE_RINGS */
    uint32_t ring_words;
    uint32_t proc_count;
    uint32_t depth_max;     /* frames kept of a stack; deeper ones are cut with WIRE_STACK_CUT */
    uint64_t sample_interval; /* stamps between two WIRE_HEAP_SAMPLE: 10 ms; 0: none at all */
    uint64_t total_bytes;   /* size of the memfd */
    char library_path[WIRE_PATH_MAX]; /* absolute: what LD_PRELOAD must hold in children */
    char session_path[WIRE_SESSION_MAX]; /* what MEMPROF_SESSION must hold in them */

    /* A robust mutex (pthread_mutex_t) that the collector's main thread holds: the kernel itself marks its first word, a
     * futex, when that thread dies, whatever pid namespace anybody is in. Programs only read: wire_collector_lives */
    WIRE_LINE uint64_t owner[8];
    WIRE_LINE uint32_t state;      /* WIRE_STATE_*; collector only */
    WIRE_LINE uint32_t sleeping;   /* futex word: 1 while the collector sleeps; a program that wakes it sets 0 and calls
                                      FUTEX_WAKE */
    WIRE_LINE uint64_t free_rings; /* head of the list of free rings: tag (32) | index + 1 (32), 0 in the low half:
                                      empty. Programs pop, the collector pushes; the tag counts both */
    WIRE_LINE uint64_t rings_refused; /* threads that found no ring; programs add */
    uint64_t procs_refused;           /* processes that found no slot; programs add */
    uint64_t procs_disowned;          /* processes that found a ring of theirs given back; programs add */
    WIRE_LINE uint64_t spawns_begun;  /* places taken in spawns, which is used in turn; programs add */
    uint64_t spawns_told;             /* places filled; programs add */
    struct wire_spawn spawns[WIRE_SPAWNS];
};

/* A stopped collector lives: its programs wait for it. */
static inline int wire_collector_lives(const struct wire_control *c)
{
    const uint32_t owner_died = 1u << 30, owner = owner_died - 1; /* FUTEX_OWNER_DIED, FUTEX_TID_MASK */
    uint32_t word = __atomic_load_n((const uint32_t *)(const void *)c->owner, __ATOMIC_RELAXED);
    return (word & owner) && !(word & owner_died);
}

/* proc.state: FREE -> CLAIMED by the program (compare and swap), CLAIMED -> LIVE by the program when its fields are
 * written, LIVE -> FREE by the collector once the process is gone and its rings are drained. CLAIMED -> FREE by the
 * collector where the process was killed in between. */
enum { WIRE_PROC_FREE = 0, WIRE_PROC_CLAIMED = 1, WIRE_PROC_LIVE = 2 };
enum { WIRE_START_EXEC = 0, WIRE_START_FORK = 1 };

/* Counters that the program side keeps per process: one row each; the text is what `memprof info` shows. */
#define WIRE_COUNTERS(X)                                                                                    \
    X(stack_cut, "allocations with a stack deeper than the limit, cut")                                                       \
    X(stack_unknown, "allocations with a stack that ends at code without unwind information")                                  \
    X(stack_full_cfi, "frames that needed a full CFI evaluation")                                           \
    X(rule_miss, "unwind rules computed")                                                                   \
    X(nested_skipped, "calls made by an allocator inside its own calls, not blocks of their own")           \
    X(nested_recorded, "events recorded from signal handlers that interrupted an allocator")                \
    X(lost_event, "events not recorded")                                                                    \
    X(stopped, "times that recording stopped in the middle of a process (seccomp, a fork inside a record)") \
    X(wait_count, "times that a thread waited for the collector")                                           \
    X(wait_ns, "nanoseconds that threads waited for the collector")                                         \
    X(early_count, "blocks handed out before the library could start")                                      \
    X(own_malloc, "images that define malloc themselves, so that their heap is not seen")                    \
    X(map_refused, "memory that the library itself could not get")                                          \
    X(heap_sample, "samples of the allocator's reserved bytes")                                             \
    X(python_unknown, "Python interpreters whose frames are not understood: their stacks are native only") \
    X(cuda_untracked, "variants of CUDA driver functions handed out without a hook, so that their calls are not tracked") \
    X(cuda_missed, "programs that used CUDA without reaching a hook")

struct wire_counters {
#define X(name, text) uint64_t name;
    WIRE_COUNTERS(X)
#undef X
};

struct wire_proc {
    WIRE_LINE uint32_t state;
    int32_t pid;          /* first of all, after pid_namespace; 0 by the collector when the slot is given back */
    int32_t parent_pid;   /* fork: of the process that forked, whoever is the parent by now */
    uint32_t parent_slot; /* fork: the slot of the image it came from + 1; 0 otherwise */
    uint32_t start_kind;  /* WIRE_START_* */
    uint32_t command_bytes;
    uint64_t start_stamp;
    uint64_t pid_namespace; /* that pid and parent_pid are of, as /proc/self/ns/pid has it; 0: not known */
    struct wire_counters counters; /* program only, relaxed adds */
    char exe[WIRE_PATH_MAX];         /* NUL-terminated */
    char command[WIRE_COMMAND_MAX];  /* NUL-separated arguments, command_bytes of them, possibly cut */
};

/* ring.state: FREE (on the free list) -> LIVE by the thread that popped it -> CLOSING by that thread when its
 * destructors run (it may still write) -> FREE by the collector once the thread is gone and the ring is drained. */
enum { WIRE_RING_FREE = 0, WIRE_RING_LIVE = 1, WIRE_RING_CLOSING = 2 };

struct wire_ring {
    /* program only. head counts words ever written; a record is visible once head passes it. busy is not 0 from before a
     * record's stamp is taken until head includes it: while busy, an unpublished record may carry any stamp that is not
     * older than the ring's newest one. */
    WIRE_LINE uint64_t head;
    uint32_t busy;
    /* collector only */
    WIRE_LINE uint64_t tail;
    /* program, before state becomes LIVE (state: both, as above) */
    WIRE_LINE uint32_t state;
    uint32_t next_free; /* free list link: index + 1 */
    uint32_t proc_slot;
    int32_t pid;
    int32_t tid;
    uint32_t is_main;   /* the process's first thread */
    uint64_t start_stamp;
};

/*
 * Records. Words of 64 bits, at index (position & (ring_words - 1)); a record may wrap around the ring's end.
 *   word 0  stamp
 *   word 1  op (8) << 56 | hook (8) << 48 | low 48 bits, "a"
 * Stamps of one ring never decrease, but for records written by a signal handler that interrupted a hook: take the
 * larger of a stamp and its predecessor.
 */
#define WIRE_OPS(X)                                                                                          \
    /* op, words (0: variable, in bits 32..47 of word 1), meaning */                                         \
    X(PAD, 2, "nothing")                                                                                     \
    X(ALLOC, 3, "a: address; w2: size (32) << 32 | stack (32)")                                              \
    X(ALLOC_BIG, 4, "a: address; w2: stack; w3: size")                                                       \
    X(FREE, 2, "a: address. Stamped before the real free")                                                   \
    X(REALLOC, 6, "a: old address (0: none); w2: stack; w3: size; w4: new address; w5: stamp after. A moved or resized block") \
    X(OOM, 4, "a: errno; w2: stack; w3: size asked for. A failed allocation; nothing else changed")          \
    X(MAP, 4, "a: address; w2: wire_map flags << 32 | stack; w3: length")                                    \
    X(UNMAP, 4, "a: address; w2: flags << 32; w3: length. Any part of earlier maps. Stamped before")         \
    X(REMAP, 7, "a: old address; w2: flags << 32 | stack; w3: old length; w4: new address; w5: new length; w6: stamp after") \
    X(PROTECT, 4, "a: address; w2: flags << 32 | stack; w3: length: now accessible or not")                  \
    X(BREAK, 4, "a: new break; w2: flags << 32 | stack; w3: old break. The program moved the break itself")  \
    X(HEAP_SAMPLE, 4, "w2: bytes of glibc's arenas (mallinfo2 arena); w3: bytes mapped by it (hblkhd)")      \
    X(STACK, 0, "w1: op << 56 | flags << 48 | words << 32 | id; w2..: return addresses, innermost first; bit 63 set: WIRE_PYTHON_WORD")    \
    X(MODULE_LOAD, 0, "w1: op << 56 | words << 32 | module number; w2: start; w3: end; w4: load bias; w5: build-id bytes << 32 | path bytes; then both, each padded to words") \
    X(MODULE_UNLOAD, 2, "a: module number")                                                                  \
    X(THREAD_NAME, 4, "w2, w3: 16 bytes of name")                                                            \
    X(EXIT, 2, "a: status given to exit: the process is about to end")                                       \
    X(EXEC, 2, "the process is about to replace its image; a failed one is followed by more records")        \
    X(REAP, 3, "a: pid; w2: status as wait4 gives it: a child has ended")                                    \
    X(SPAWN, 2, "a: pid: a child that no fork was seen of is becoming another program")                      \
    X(MARK, 0, "w1: op << 56 | kind << 48 | words << 32 | bytes; w2..: text: a mark or range (wire_mark); START, END: w2 its id") \
    X(CALL, 0, "w1: op << 56 | hook << 48 | words << 32 | stack; w2: flags << 32 | device << 8 | call; w3..: WIRE_CALLS") \
    X(CODE, 0, "w1: op << 56 | words << 32 | id; w2: words before << 32 | words of all; w3..: a part of wire_code and its text")

enum wire_op {
#define X(name, words, text) WIRE_##name,
    WIRE_OPS(X)
#undef X
    WIRE_OP_COUNT
};

#define WIRE_A_MASK 0xffffffffffffull
#define WIRE_WORD1(op, hook, a) ((uint64_t)(op) << 56 | (uint64_t)(hook) << 48 | ((uint64_t)(a) & WIRE_A_MASK))
#define WIRE_OP(w1) ((unsigned)((w1) >> 56))
#define WIRE_HOOK(w1) ((unsigned)((w1) >> 48 & 0xff))
#define WIRE_A(w1) ((w1) & WIRE_A_MASK)
#define WIRE_VAR_WORDS(w1) ((unsigned)((w1) >> 32 & 0xffff))
#define WIRE_VAR_LOW(w1) ((uint32_t)(w1))

/* A Python frame in a STACK: a code object, defined before, and where in it (the interpreter's own unit and origin). */
#define WIRE_PYTHON_WORD(id, offset) (1ull << 63 | (uint64_t)(id) << 32 | (uint32_t)(offset))
#define WIRE_IS_PYTHON(word) ((word) >> 63)
#define WIRE_PYTHON_ID(word) ((uint32_t)((word) >> 32) & 0x7fffffffu)
#define WIRE_PYTHON_OFFSET(word) ((uint32_t)(word))

/* A code object: this, then name, qualified name, file name and line table, each padded to words. Characters are of 1
 * (Latin 1), 2 or 4 bytes. The words are sent in parts of at most WIRE_CODE_PART, in order. */
struct wire_code {
    uint32_t minor;      /* of the interpreter's version: 3.minor */
    uint32_t first_line;
    struct {
        uint32_t character_bytes;
        uint32_t count;
    } name, qualified_name, file, table;
};
#define WIRE_CODE_PART 1024u
#define WIRE_CODE_WORDS_MAX (1u << 17) /* a longer line table is cut */
#define WIRE_CODE_TEXT_MAX 4096u       /* characters of a name; longer ones are cut */

/* flags of STACK */
#define WIRE_STACK_CUT 1u     /* deeper than depth_max */
#define WIRE_STACK_UNKNOWN 2u /* ends where no unwind information is known */

/* flags of MAP, UNMAP, REMAP, PROTECT, BREAK */
#define WIRE_MAP_SEGMENT 1u    /* made inside an allocator's call: a segment of that allocator, not a block */
#define WIRE_MAP_RESERVE 2u    /* not accessible (PROT_NONE): address space only until a PROTECT makes it accessible */
#define WIRE_MAP_FILE 4u       /* backed by a file: not memory that we count, but it replaces what was there (MAP_FIXED) */
#define WIRE_MAP_SHARED 8u
#define WIRE_MAP_KEEP_OLD 16u  /* REMAP with MREMAP_DONTUNMAP */
#define WIRE_MAP_ARENA 32u     /* taken by Python for its small objects: a segment of kind arena, not a block */

/*
 * CALL: what a hooked call of a GPU driver, NVTX, memprof.h or another allocator did; the collector's model (devices.h)
 * makes events of it. Calls that give something are stamped after the real call and written only when it succeeded; calls
 * that take something away (marked <) are stamped and written before it, and an UNDO of the same thread follows when it
 * failed. device: the process's own CUDA ordinal, WIRE_DEVICE_HOST or WIRE_DEVICE_UNKNOWN. The kind of memory is the
 * hook's (WIRE_HOOKS). Text: its length in bytes, then its words. Handles are opaque; 0 is none.
 */
#define WIRE_CALLS(X)                                                                                                  \
    /* name, arguments from w3, meaning */                                                                             \
    X(DEVICE, "total bytes, uuid low, uuid high, text", "a device, before any other call on it")                       \
    X(ALLOC, "address, size, context", "plain, pitched (pitch x height), managed, pinned; arrays: handle for address") \
    X(FREE, "address", "< of an ALLOC, by the hook's kind; context 0: by address alone")                               \
    X(UNDO, "", "the thread's newest < call failed: it changed nothing")                                               \
    X(CONTEXT_END, "context, 1 when all contexts of the device went", "frees every ALLOC of the context")              \
    X(POOL, "pool, flags (wire_pool)", "a stream-ordered pool was created, imported, or first seen")                   \
    X(POOL_END, "pool", "destroyed; it lives until its last block is freed")                                           \
    X(POOL_ALLOC, "address, size, pool, stream", "a block of a pool")                                                  \
    X(POOL_FREE, "address, stream", "< requested now; the block is active until the stream gets there")                \
    X(POOL_STATE, "pool, reserved bytes, used bytes, 1 when all pending frees are done, most reserved bytes so far", "attributes as read just now; the last: 0 or absent where not known") \
    X(SYNC, "context, stream (0: all)", "the host waited: frees requested before on these streams are done")           \
    X(VMM_CREATE, "handle, size, flags (wire_vmm)", "physical memory; imported: foreign; multicast: not memory")       \
    X(VMM_RETAIN, "handle, address in a mapping of it", "one more reference")                                          \
    X(VMM_RELEASE, "handle", "< one reference less")                                                                   \
    X(VMM_MAP, "address, size, offset, handle", "")                                                                    \
    X(VMM_UNMAP, "address, size", "< whole mappings")                                                                  \
    X(VMM_RESERVE, "address, size", "address space only")                                                              \
    X(VMM_UNRESERVE, "address, size", "<")                                                                             \
    X(FOREIGN_OPEN, "address or handle, size (0: unknown)", "IPC, external memory, graphics: another process owns it") \
    X(FOREIGN_CLOSE, "address or handle", "<")                                                                         \
    X(GRAPH_ALLOC_NODE, "graph, address, size", "not live until a launch")                                             \
    X(GRAPH_FREE_NODE, "graph, address", "")                                                                           \
    X(GRAPH_CHILD, "graph, child graph", "a copy of the child's nodes is part of the graph")                           \
    X(GRAPH_INSTANTIATE, "graph, executable graph or clone", "which has the nodes that the graph has now, and no other") \
    X(GRAPH_LAUNCH, "executable graph, stream", "its nodes are done: allocations, frees, copies and fills")             \
    X(GRAPH_END, "graph or executable graph", "<")                                                                     \
    X(GRAPH_STATE, "reserved bytes, used bytes", "the device's graph memory as read just now")                         \
    X(MEMORY_INFO, "free bytes, total bytes", "the driver's own figures")                                              \
    X(OOM, "size asked for, free bytes, total bytes, driver's error", "a failed allocation; nothing else changed")     \
    X(TRANSFER, "bytes, direction (wire_direction), destination, source, graph", "a copy or fill was requested; captured: a node of that graph (0: not known), done at its launches") \
    X(SUB_POOL, "pool, text", "a sub-allocator (NVTX memory heap, memprof.h pool)")                                    \
    X(SUB_POOL_END, "pool", "with its segments and blocks")                                                            \
    X(SUB_SEGMENT, "pool, address, size", "memory that it hands out: what covers it is no block any more")             \
    X(SUB_SEGMENT_END, "pool, address", "")                                                                            \
    X(SUB_ALLOC, "pool, address, size", "one of its blocks; kind sub")                                                 \
    X(SUB_FREE, "pool (0: any), address", "")                                                                          \
    X(SUB_RESIZE, "pool (0: any), address, size", "")                                                                  \
    X(SUB_RESET, "pool", "all its blocks are freed, the segments stay")                                                \
    X(NAME, "address, text", "of a pool, segment or block")                                                            \
    X(UNTRACKED, "version, text", "cuGetProcAddress gave a variant of this function that has no hook: not seen from here on")

enum wire_call {
#define X(name, arguments, text) WIRE_CALL_##name,
    WIRE_CALLS(X)
#undef X
    WIRE_CALL_COUNT
};
#define WIRE_CALL_WORD(call, device, flags) ((uint64_t)(flags) << 32 | (uint64_t)(device) << 8 | (uint64_t)(call))

#define WIRE_DEVICE_HOST 0xffu
#define WIRE_DEVICE_UNKNOWN 0xfeu

/* flags of a CALL */
#define WIRE_CALL_CAPTURED 1u /* made while its stream was capturing: a graph node, nothing else */
#define WIRE_CALL_IMPLICIT 2u /* SUB_ALLOC: of a pool that never says what its segments are: the driver's block under it is one */

enum { WIRE_POOL_DEFAULT = 1, WIRE_POOL_IMPORTED = 2 };
enum { WIRE_VMM_IMPORTED = 1, WIRE_VMM_MULTICAST = 2 };
enum wire_direction {
    WIRE_HTOD, WIRE_DTOH, WIRE_DTOD, WIRE_HTOH, WIRE_PEER, WIRE_FILL,
    WIRE_UNIFIED, /* to be found from both addresses */
};

/* Marks and ranges. The text is the name, or domain, category and name with WIRE_MARK_SEPARATOR between them; of a POP the
 * domain alone, because ranges nest by thread and domain. START and END may come from different threads. */
enum wire_mark { WIRE_MARK_INSTANT, WIRE_MARK_PUSH, WIRE_MARK_POP, WIRE_MARK_START, WIRE_MARK_END };
#define WIRE_MARK_SEPARATOR '\x1f'

/* Where the parts lie in the memfd. */
#define WIRE_PAGE 4096ull
#define WIRE_ROUND(x) (((x) + WIRE_PAGE - 1) / WIRE_PAGE * WIRE_PAGE)
#define WIRE_PROCS_OFFSET WIRE_ROUND(sizeof(struct wire_control))
#define WIRE_HEADERS_OFFSET (WIRE_PROCS_OFFSET + WIRE_ROUND(WIRE_PROCS * sizeof(struct wire_proc)))
#define WIRE_DATA_OFFSET (WIRE_HEADERS_OFFSET + WIRE_ROUND(WIRE_RINGS * sizeof(struct wire_ring)))
#define WIRE_TOTAL_BYTES (WIRE_DATA_OFFSET + (uint64_t)WIRE_RINGS * WIRE_RING_WORDS * 8)

/* Hooked functions: the hook number of a record. One row each; `kind` is what a success allocates. */
#define WIRE_HOOKS(X)                                                                                        \
    X(none, none)                                                                                            \
    X(malloc, heap)                                                                                          \
    X(calloc, heap)                                                                                          \
    X(realloc, heap)                                                                                         \
    X(reallocarray, heap)                                                                                    \
    X(free, heap)                                                                                            \
    X(cfree, heap)                                                                                           \
    X(posix_memalign, heap)                                                                                  \
    X(memalign, heap)                                                                                        \
    X(aligned_alloc, heap)                                                                                   \
    X(valloc, heap)                                                                                          \
    X(pvalloc, heap)                                                                                         \
    X(free_sized, heap)                                                                                      \
    X(free_aligned_sized, heap)                                                                              \
    X(mmap, map)                                                                                             \
    X(mmap64, map)                                                                                           \
    X(munmap, map)                                                                                           \
    X(mremap, map)                                                                                           \
    X(mprotect, map)                                                                                         \
    X(sbrk, map)                                                                                             \
    X(brk, map)                                                                                              \
    /* the CUDA driver, by the names of preload/cuda.def */                                               \
    X(cuMemAlloc, device) X(cuMemAllocPitch, device) X(cuMemAllocManaged, managed) X(cuMemAllocHost, pinned) \
    X(cuMemHostAlloc, pinned) X(cuMemFree, device) X(cuMemFreeHost, pinned) X(cuMemGetInfo, none)            \
    X(cuMemAllocAsync, pool) X(cuMemAllocFromPoolAsync, pool) X(cuMemFreeAsync, pool)                        \
    X(cuMemPoolCreate, pool) X(cuMemPoolDestroy, pool) X(cuMemPoolTrimTo, pool)                              \
    X(cuMemPoolSetAttribute, pool) X(cuMemPoolImportFromShareableHandle, pool)                               \
    X(cuMemPoolImportPointer, pool) X(cuDeviceSetMemPool, pool) X(cuMemSetMemPool, pool)                     \
    X(cuCtxSynchronize, none) X(cuStreamSynchronize, none) X(cuMemAddressReserve, vmm)                       \
    X(cuMemAddressFree, vmm) X(cuMemCreate, vmm) X(cuMemImportFromShareableHandle, vmm)                      \
    X(cuMemRetainAllocationHandle, vmm) X(cuMemRelease, vmm) X(cuMemMap, vmm) X(cuMemUnmap, vmm)             \
    X(cuMulticastCreate, vmm) X(cuArrayCreate, array) X(cuArray3DCreate, array)                              \
    X(cuMipmappedArrayCreate, array) X(cuArrayDestroy, array) X(cuMipmappedArrayDestroy, array)              \
    X(cuIpcOpenMemHandle, none) X(cuIpcCloseMemHandle, none) X(cuImportExternalMemory, none)                 \
    X(cuDestroyExternalMemory, none) X(cuExternalMemoryGetMappedBuffer, none)                                \
    X(cuExternalMemoryGetMappedMipmappedArray, none) X(cuGraphicsMapResources, none)                         \
    X(cuGraphicsUnmapResources, none) X(cuGraphAddMemAllocNode, pool) X(cuGraphAddMemFreeNode, pool)         \
    X(cuGraphAddMemcpyNode, none) X(cuGraphAddMemsetNode, none) X(cuGraphAddNode, pool)                      \
    X(cuGraphAddChildGraphNode, none) X(cuGraphClone, none) X(cuGraphExecUpdate, none)                       \
    X(cuGraphInstantiate, none) X(cuGraphInstantiateWithFlags, none) X(cuGraphInstantiateWithParams, none)   \
    X(cuGraphLaunch, pool) X(cuGraphExecDestroy, none) X(cuGraphDestroy, none) X(cuDeviceGraphMemTrim, none) \
    X(cuCtxDestroy, none) X(cuDevicePrimaryCtxRetain, none) X(cuDevicePrimaryCtxRelease, none)               \
    X(cuDevicePrimaryCtxReset, none) X(cuMemcpy, none) X(cuMemcpyAsync, none) X(cuMemcpyPeer, none)          \
    X(cuMemcpyPeerAsync, none) X(cuMemcpyHtoD, none) X(cuMemcpyHtoDAsync, none) X(cuMemcpyDtoH, none)        \
    X(cuMemcpyDtoHAsync, none) X(cuMemcpyDtoD, none) X(cuMemcpyDtoDAsync, none) X(cuMemcpyDtoA, none)        \
    X(cuMemcpyAtoD, none) X(cuMemcpyHtoA, none) X(cuMemcpyHtoAAsync, none) X(cuMemcpyAtoH, none)             \
    X(cuMemcpyAtoHAsync, none) X(cuMemcpyAtoA, none) X(cuMemcpy2D, none) X(cuMemcpy2DUnaligned, none)        \
    X(cuMemcpy2DAsync, none) X(cuMemcpy3D, none) X(cuMemcpy3DAsync, none) X(cuMemcpy3DPeer, none)            \
    X(cuMemcpy3DPeerAsync, none) X(cuMemcpyBatchAsync, none) X(cuMemcpy3DBatchAsync, none)                   \
    X(cuMemsetD8, none) X(cuMemsetD8Async, none) X(cuMemsetD2D8, none) X(cuMemsetD2D8Async, none)            \
    X(cuMemsetD16, none) X(cuMemsetD16Async, none) X(cuMemsetD2D16, none) X(cuMemsetD2D16Async, none)        \
    X(cuMemsetD32, none) X(cuMemsetD32Async, none) X(cuMemsetD2D32, none) X(cuMemsetD2D32Async, none)                         \
    X(memprof_pool_segment, sub)                                                                             \
    X(memprof_pool_alloc, sub)                                                                               \
    X(nvtxMemHeapRegister, sub)                                                                              \
    X(nvtxMemRegionsRegister, sub)                                                                           \
    X(nvtxMemRegionsResize, sub)                                                                             \
    X(torch_block, sub)

enum wire_hook {
#define X(name, kind) WIRE_HOOK_##name,
    WIRE_HOOKS(X)
#undef X
    WIRE_HOOK_COUNT
};

#endif
