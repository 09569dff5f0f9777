/*
 * wire.h: the shared memory between libmemprof.so (inside the program) and the collector (outside it).
 * One memfd holds a control page, process slots, ring headers and ring data. Everything in it is written by one side
 * only, as noted at each field. The collector treats every word in it as untrusted; the program side likewise.
 */
#ifndef MEMPROF_WIRE_H
#define MEMPROF_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC   0x31455249574d504dull /* "MPMWIRE1" */
#define WIRE_VERSION 20

/* The launcher sets these in the program's environment; the library reads nothing else of it. */
#define WIRE_ENV_SESSION "MEMPROF_SESSION" /* path to open, "/proc/PID/fd/N" of the collector's memfd */
#define WIRE_ENV_PRELOAD "LD_PRELOAD"
/* ... and has NVTX load the library as its tool; the tool that the user had named stands in the second one. */
#define WIRE_ENV_NVTX      "NVTX_INJECTION64_PATH"
#define WIRE_ENV_NVTX_NEXT "MEMPROF_NVTX"

/* Geometry. Ring data is touched page by page, so the virtual size costs nothing. */
#define WIRE_RINGS       8192u                    /* threads recorded at the same time, over all processes */
#define WIRE_RING_WORDS  (1u << 16)               /* 512 KiB a ring; a power of two */
#define WIRE_PROCS       1024u                    /* processes recorded at the same time */
#define WIRE_STACK_MAX   1024u                    /* upper bound of control.depth_max: frames in one stack */
#define WIRE_RECORD_MAX  (WIRE_STACK_MAX + 1024u) /* words in the longest record */
#define WIRE_COMMAND_MAX 4096u
#define WIRE_PATH_MAX    4096u
#define WIRE_TITLE_MAX   256u
#define WIRE_TARGET_MAX  256u
#define WIRE_SESSION_MAX 64u
#define WIRE_FIGURES     64u /* rows of the desk */
#define WIRE_NAME_BYTES  16u /* of a device's name, with NULs behind it */
#define WIRE_REQUESTS    16u /* from outside, at the same time */
#define WIRE_TEXT_MAX    1000u
#define WIRE_HOLDINGS    32u   /* GPUs of one process that a request is answered about */
#define WIRE_ORDERS      16u   /* of a process, at the same time */
#define WIRE_POLICY_MAX  8000u /* bytes of a POLICY's text */

#define WIRE_LINE _Alignas(64)

/* A sampled recording: a heap block of s bytes is recorded with probability 1 - exp(-s / sample_bytes), one of at least
 * this many bytes always. */
static inline uint64_t wire_sample_always(uint64_t sample_bytes)
{
    return sample_bytes * 8;
}
#define WIRE_SAMPLE_MOST (1ull << 32) /* of sample_bytes */

/* control.flags */
#define WIRE_CLOCK_TSC   1u /* stamps are rdtsc; otherwise CLOCK_MONOTONIC nanoseconds */
#define WIRE_FOLLOW      2u /* children are recorded too */
#define WIRE_FREE_STACKS 4u /* who frees is recorded too */
#define WIRE_ATTACHED    8u /* to a process that ran already: a signal for the collector is not the program's */

/* control.state: collector only */
enum { WIRE_STATE_OFF = 0, WIRE_STATE_ON = 1 };

/* Said by a child that borrows its parent's memory, as vfork's does, and has no ring: its parent's rings are no place
 * for it, as nothing says that the parent waits for it. */
#define WIRE_SPAWNS 64u
struct wire_spawn {
    uint64_t stamp;
    uint64_t who;                 /* its parent's slot << 32 | its pid; 0: taken */
    uint32_t reach;               /* enum wire_reach */
    char target[WIRE_TARGET_MAX]; /* as that of WIRE_EXEC, NUL-terminated */
};

/* Whether a program about to be executed will reach the recording, by the rights and the root directory of now. */
enum wire_reach {
    WIRE_REACH_YES,
    WIRE_REACH_DENIED,     /* as another user */
    WIRE_REACH_NO_SESSION, /* there is no such path: another root or /proc */
    WIRE_REACH_NO_LIBRARY, /* the same of the library, which is then taken out of its LD_PRELOAD */
    WIRE_REACH_FAILED,     /* a wire_spawn only: nothing was executed after all */
    WIRE_REACH_APART,      /* its environment says that it is no part of the recording: an empty WIRE_ENV_SESSION */
    /* what may keep it from there, for all that is known before */
    WIRE_REACH_SECURE,       /* its real user or group is another one than that in effect: then nothing is preloaded */
    WIRE_REACH_CAPABILITIES, /* it will lack some that the collector has, and not be let at the collector's files */
    WIRE_REACH_ADDRESSES,    /* a low limit of them: there may be no room for the library */
};

/* Which memprof a libmemprof.so is of. */
struct wire_library {
    uint32_t wire_version; /* of what it shares with a collector: WIRE_VERSION */
    char version[28];      /* NUL-terminated */
};

struct wire_control {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;      /* WIRE_CLOCK_TSC | WIRE_FOLLOW | WIRE_FREE_STACKS */
    uint32_t ring_count; /* <= WIRE_RINGS */
    uint32_t ring_words;
    uint32_t proc_count;
    uint32_t depth_max;        /* frames kept of a stack; deeper ones are cut with WIRE_STACK_CUT */
    uint64_t sample_interval;  /* stamps between two WIRE_HEAP_SAMPLE: 10 ms; 0: none at all */
    uint64_t free_least_bytes; /* WIRE_FREE_STACKS: of a heap's blocks, those that can hold so many */
    uint64_t total_bytes;      /* size of the memfd */
    uint32_t uid;              /* that the collector runs as */
    uint64_t capabilities;     /* that it may use, a bit each */
    uint64_t sample_bytes;     /* the mean between two sampled blocks of the heap; 0: all are recorded */
    uint64_t least_bytes;      /* smaller blocks of the heap are not recorded, but counted (wire_left) */
    uint64_t sample_seed;
    char library_path[WIRE_PATH_MAX];    /* absolute: what LD_PRELOAD must hold in children */
    char session_path[WIRE_SESSION_MAX]; /* what MEMPROF_SESSION must hold in them */

    /* A robust mutex (pthread_mutex_t) that the collector's main thread holds: the kernel itself marks its first word,
     * a futex, when that thread dies, whatever pid namespace anybody is in. Programs only read: wire_collector_lives */
    WIRE_LINE uint64_t owner[8];
    WIRE_LINE uint32_t state;      /* WIRE_STATE_*; collector only */
    uint32_t pauses;               /* how often the recording was paused and resumed: odd while it is paused; collector
                                      only */
    uint32_t has_orders;           /* there is a policy by which programs may get orders; collector only */
    WIRE_LINE uint32_t sleeping;   /* futex word: 1 while the collector sleeps; a program that wakes it sets 0 and calls
                                      FUTEX_WAKE */
    WIRE_LINE uint64_t free_rings; /* head of the list of free rings: tag (32) | index + 1 (32), 0 in the low half:
                                      empty. Programs pop, the collector pushes; the tag counts both */
    WIRE_LINE uint64_t rings_refused;  /* threads that found no ring; programs add */
    uint64_t procs_refused;            /* processes that found no slot; programs add */
    uint64_t procs_disowned;           /* processes that found a ring of theirs given back; programs add */
    WIRE_LINE uint64_t sample_threads; /* that drew random numbers; programs add */
    WIRE_LINE uint64_t spawns_begun;   /* places taken in spawns, which is used in turn; programs add */
    uint64_t spawns_told;              /* places filled; programs add */
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
enum { WIRE_START_EXEC = 0, WIRE_START_FORK = 1, WIRE_START_ATTACH = 2 };

/* Counters that the program side keeps per process. */
struct wire_counters {
#define X(name, text) uint64_t name;
#include "wire_counters.def"
#undef X
};

/* Private memory of the recorder in its process. address 0: none; size_bytes 0: none yet, or no more. */
struct wire_own {
    uint64_t address, size_bytes;
};
#define WIRE_OWN 64u /* a process; what is beyond counts as the program's */
/*
 * Orders: what a policy wants a process to do itself. The collector fills the place of the next number and counts it in
 * proc.ordered; the process's helper thread, or its own memprof_poll, takes one after the other and answers in place.
 * A slot's next process begins behind the orders that it finds.
 */
enum wire_order_what {
    WIRE_ORDER_MALLOC_TRIM = 1,
    WIRE_ORDER_POOL_TRIM,
    WIRE_ORDER_POOL_TRIM_SYNC,
    WIRE_ORDER_CALLBACK,
};
enum wire_order_result {
    WIRE_ORDER_DONE = 1,
    WIRE_ORDER_NOT_POSSIBLE, /* another allocator's heap, no such function, ... */
};

struct wire_order {
    WIRE_LINE uint32_t number; /* collector only, before proc.ordered has it, as the next ones */
    uint32_t what;
    uint32_t ordinal;             /* of the GPU, as the process numbers it; WIRE_DEVICE_HOST */
    char name[WIRE_NAME_BYTES];   /* CALLBACK: which, with NULs behind it */
    char device[WIRE_NAME_BYTES]; /* the same of the device, as the recording has it */
    WIRE_LINE uint32_t answered;  /* the number, once the rest is there; program only, as the rest */
    uint32_t result;
    uint64_t begin_stamp, end_stamp;
    uint64_t before_bytes, after_bytes; /* resident, or what the pools reserved; both 0: not measured */
    uint64_t arena_bytes, mapped_bytes; /* MALLOC_TRIM: as of HEAP_SAMPLE; both 0: not asked */
};

/* proc.last_look. WANTED: as the process ends, when its EXIT record is written, it waits until the collector has looked
 * at which of its pages are present and says NONE, but never longer than so. */
enum { WIRE_LOOK_NONE = 0, WIRE_LOOK_WANTED = 1 };
#define WIRE_LAST_LOOK_NS 50000000

struct wire_proc {
    WIRE_LINE uint32_t state;
    int32_t pid;          /* first of all, after pid_namespace; 0 by the collector when the slot is given back */
    int32_t parent_pid;   /* fork: of the process that forked, whoever is the parent by now */
    uint32_t parent_slot; /* fork: the slot of the image it came from + 1; 0 otherwise */
    uint32_t start_kind;  /* WIRE_START_* */
    uint32_t command_bytes;
    uint64_t start_stamp; /* fork: as it began, where the child's copy of what the parent has ends */
    uint32_t is_filtered; /* collector: a seccomp filter was seen in it */
    uint32_t last_look;   /* futex word: WIRE_LOOK_*; collector only */
    /* program, as its image ends; 0 by the collector when the slot is given back */
    uint64_t peak_rss_bytes;        /* what the kernel says; 0: not told */
    uint32_t title_bytes;           /* 0: not told */
    uint32_t is_locking;            /* collector: memory that is locked was seen in it */
    uint64_t pid_namespace;         /* that pid and parent_pid are of, as /proc/self/ns/pid has it; 0: not known */
    struct wire_counters counters;  /* program only, relaxed adds */
    struct wire_own own[WIRE_OWN];  /* program only; any thread of it takes a free one */
    char exe[WIRE_PATH_MAX];        /* NUL-terminated */
    char command[WIRE_COMMAND_MAX]; /* NUL-separated arguments, command_bytes of them, possibly cut */
    char title[WIRE_TITLE_MAX];     /* the same, title_bytes of them, as its image ends */
    WIRE_LINE uint32_t ordered;     /* futex word: number of the newest order; collector only */
    struct wire_order orders[WIRE_ORDERS];
};

/* ring.state: FREE (on the free list) -> LIVE by the thread that popped it -> CLOSING by that thread when its
 * destructors run (it may still write) -> FREE by the collector once the thread is gone and the ring is drained. */
enum { WIRE_RING_FREE = 0, WIRE_RING_LIVE = 1, WIRE_RING_CLOSING = 2 };

struct wire_ring {
    /* program only. head counts words ever written; a record is visible once head passes it. busy is not 0 from before
     * a record's stamp is taken until head includes it: while busy, an unpublished record may carry any stamp that is
     * not older than the ring's newest one. */
    WIRE_LINE uint64_t head;
    uint32_t busy;
    /* collector only */
    WIRE_LINE uint64_t tail;
    /* program, before state becomes LIVE (state: both, as above) */
    WIRE_LINE uint32_t state;
    uint32_t next_free; /* free list link: wire_ring_after */
    uint32_t proc_slot;
    int32_t pid;
    int32_t tid;
    uint32_t is_main; /* the process's first thread */
    uint64_t start_stamp;
};

#define WIRE_RING_LAST UINT32_MAX

/* What is behind the ring place (index + 1) in the list of free ones, as index + 1; 0: nothing. link is its next_free.
 * 0 there: the next in memory, as all are at first, so that nobody writes to the headers of rings that nobody takes. */
static inline uint32_t wire_ring_after(uint32_t link, uint32_t place, uint32_t ring_count)
{
    if (link == 0)
        return place < ring_count ? place + 1 : 0;
    return link == WIRE_RING_LAST ? 0 : link;
}

/*
 * The desk: the way back, from the collector to programs. No hook touches it: only calls of memprof.h that ask do. Its
 * rows are as last counted. To have what is exact up to a call, a thread writes a SYNC with the next number of its
 * ring's answer; the collector answers it in the order of all events. An answer belongs to a ring, and a thread waits
 * for one at a time, so none is claimed or given back: who gave up, or was killed, leaves nothing behind.
 */
struct wire_figures { /* of a device, or of several */
#define X(name, text) uint64_t name;
#include "wire_figures.def"
#undef X
};

struct wire_row {                   /* collector only */
    char name[WIRE_NAME_BYTES];     /* as reports have it: "host", "cuda:0"; "cuda": all of a type; "": all. It stays */
    WIRE_LINE uint32_t version;     /* its last bit: which copy is valid. The other one is written before the next */
    struct wire_figures figures[2]; /* version, so that a collector that is stopped leaves one that can be read */
};

/*
 * Requests from outside the program. Their askers map nothing and write by pwrite, as a mapping that can be written
 * would make the collector wait for them at its end. A slot is its asker's while he has the slot's first byte locked in
 * the memfd (F_OFD_SETLK), which the kernel undoes when he is killed. He takes one that is answered, writes what, pid
 * and text, and last of all changes the byte asked, by one write of one byte.
 */
enum wire_wish {
    WIRE_WISH_NOTHING, /* the asker waits no more */
    WIRE_WISH_MARK,    /* text: its name */
    WIRE_WISH_PAUSE,
    WIRE_WISH_RESUME,
    WIRE_WISH_HOLDINGS, /* what the process pid has of GPUs, up to when the request is seen: in holdings */
    WIRE_WISH_YIELDED,  /* pid gave its GPUs back. text: struct wire_given, some of them */
    WIRE_WISH_RESTORED, /* ... and has them again */
    WIRE_WISH_ROTATE,   /* a file of what was recorded so far */
    WIRE_WISH_COUNT
};
enum wire_reply {
    WIRE_REPLY_DONE,
    WIRE_REPLY_ALREADY,    /* so it was */
    WIRE_REPLY_NO_PROCESS, /* none of that pid is recorded */
};

struct wire_holding {           /* of a process, on one device */
    char name[WIRE_NAME_BYTES]; /* "cuda:0"; "foreign:0": what is other processes' there */
    uint64_t uuid[2];           /* 0, 0: not known */
    uint64_t reserved_bytes;    /* its blocks, and what pools hold beside them */
    uint64_t managed_bytes, foreign_bytes;
    uint64_t context_count; /* that own blocks */
    uint64_t given_bytes;   /* as WISH_YIELDED said, until WISH_RESTORED */
};

struct wire_given {
    uint64_t uuid[2];
    uint64_t bytes;
};

struct wire_request {
    WIRE_LINE uint8_t asked; /* differs from the last byte of answered: something is asked for */
    uint8_t what;            /* WIRE_WISH_* */
    uint16_t text_bytes;
    int32_t pid; /* of a process that is recorded, as the collector sees it: whose wish it is; 0: nobody's */
    char text[WIRE_TEXT_MAX];
    WIRE_LINE uint32_t answered; /* collector only, as the rest */
    uint32_t reply;              /* WIRE_REPLY_* */
    uint32_t holding_count;      /* more than WIRE_HOLDINGS: not all are there */
    struct wire_holding holdings[WIRE_HOLDINGS];
};

struct wire_desk {
    WIRE_LINE uint32_t asked;     /* futex word: SYNCs written; programs add. The collector's short naps end with it */
    uint32_t answered;            /* how many of them need no answer any more; collector only */
    WIRE_LINE uint32_t row_count; /* collector only */
    struct wire_row rows[WIRE_FIGURES];
    struct wire_request requests[WIRE_REQUESTS];
};

struct wire_answer {
    WIRE_LINE uint32_t asked; /* number of the newest SYNC; the ring's thread only */
    int32_t tid;              /* which wrote it */
    uint32_t answered;        /* futex word: number of the newest SYNC that is counted; collector only, as the rest */
    uint32_t is_known;        /* there is such a device; else there are no figures */
    struct wire_figures figures;
};

/* What a ring's threads, one after the other, left out for its size: class 0 is 0 bytes, class n those from 2^(n-1) on.
 * Never set back. By the ring's thread only. */
#define WIRE_LEFT_CLASSES 48u
struct wire_left {
    WIRE_LINE uint64_t count[WIRE_LEFT_CLASSES];
    uint64_t bytes[WIRE_LEFT_CLASSES];
};

/* flags of a SYNC */
#define WIRE_SYNC_COMMIT    1u /* answered when the file has it, too */
#define WIRE_SYNC_PAUSE     2u /* from here on the recording is paused */
#define WIRE_SYNC_RESUME    4u /* ... or not */
#define WIRE_SYNC_POLICY    8u /* is_known: whether the ring's last POLICY was one */
#define WIRE_SYNC_NUMBER(a) ((uint32_t)(a))
#define WIRE_SYNC_FLAGS(a)  ((unsigned)((a) >> 32))

/*
 * Records. Words of 64 bits, at index (position & (ring_words - 1)); a record may wrap around the ring's end.
 *   word 0  stamp
 *   word 1  op (8) << 56 | hook (8) << 48 | low 48 bits, "a"
 * Stamps of one ring never decrease, but for records written by a signal handler that interrupted a hook: take the
 * larger of a stamp and its predecessor.
 */
enum wire_op {
#define X(name, words, text) WIRE_##name,
#include "wire_ops.def"
#undef X
    WIRE_OP_COUNT
};

#define WIRE_A_MASK             0xffffffffffffull
#define WIRE_WORD1(op, hook, a) ((uint64_t)(op) << 56 | (uint64_t)(hook) << 48 | ((uint64_t)(a)&WIRE_A_MASK))
#define WIRE_OP(w1)             ((unsigned)((w1) >> 56))
#define WIRE_HOOK(w1)           ((unsigned)((w1) >> 48 & 0xff))
#define WIRE_A(w1)              ((w1)&WIRE_A_MASK)
#define WIRE_VAR_WORDS(w1)      ((unsigned)((w1) >> 32 & 0xffff))
#define WIRE_VAR_LOW(w1)        ((uint32_t)(w1))

/* A Python frame in a STACK: a code object, defined before, and where in it (the interpreter's own unit and origin). */
#define WIRE_PYTHON_WORD(id, offset) (1ull << 63 | (uint64_t)(id) << 32 | (uint32_t)(offset))
#define WIRE_IS_PYTHON(word)         ((word) >> 63)
#define WIRE_PYTHON_ID(word)         ((uint32_t)((word) >> 32) & 0x7fffffffu)
#define WIRE_PYTHON_OFFSET(word)     ((uint32_t)(word))

/* A code object: this, then name, qualified name, file name and line table, each padded to words. Characters are of 1
 * (Latin 1), 2 or 4 bytes. The words are sent in parts of at most WIRE_CODE_PART, in order. */
struct wire_code {
    uint32_t minor; /* of the interpreter's version: 3.minor */
    uint32_t first_line;
    struct {
        uint32_t character_bytes;
        uint32_t count;
    } name, qualified_name, file, table;
};
#define WIRE_CODE_PART        1024u
#define WIRE_CODE_WORDS_MAX   (1u << 17) /* a longer line table is cut */
#define WIRE_CODE_TEXT_MAX    4096u      /* characters of a name; longer ones are cut */
#define WIRE_SOURCE_BYTES_MAX (1u << 20) /* of the texts that a process says with SOURCE */

/* flags of STACK */
#define WIRE_STACK_CUT     1u /* deeper than depth_max */
#define WIRE_STACK_UNKNOWN 2u /* ends where no unwind information is known */

/* flags of MAP, UNMAP, REMAP, PROTECT, BREAK */
#define WIRE_MAP_SEGMENT 1u /* made inside an allocator's call: a segment of that allocator, not a block */
#define WIRE_MAP_RESERVE 2u /* not accessible (PROT_NONE): address space only until a PROTECT makes it accessible */
/* Of a file on a disk: not memory that we count, but it replaces what was there (MAP_FIXED). */
#define WIRE_MAP_FILE     4u
#define WIRE_MAP_SHARED   8u
#define WIRE_MAP_KEEP_OLD 16u /* REMAP with MREMAP_DONTUNMAP */
#define WIRE_MAP_ARENA    32u /* taken by Python for its small objects: a segment of kind arena, not a block */
#define WIRE_MAP_ATTACH   64u /* by shmat; UNMAP: what was attached at that address, whole, whatever the length says */

/* What a CALL did. */
enum wire_call {
#define X(name, arguments, text) WIRE_CALL_##name,
#include "wire_calls.def"
#undef X
    WIRE_CALL_COUNT
};
#define WIRE_CALL_WORD(call, device, flags) ((uint64_t)(flags) << 32 | (uint64_t)(device) << 8 | (uint64_t)(call))

#define WIRE_DEVICE_HOST    0xffu
#define WIRE_DEVICE_UNKNOWN 0xfeu

/* flags of a CALL */
#define WIRE_CALL_CAPTURED 1u /* made while its stream was capturing: a graph node, nothing else */
/* SUB_ALLOC: of a pool that never says what its segments are: the driver's block under it is one */
#define WIRE_CALL_IMPLICIT 2u

enum { WIRE_POOL_DEFAULT = 1, WIRE_POOL_IMPORTED = 2 };
enum { WIRE_VMM_IMPORTED = 1, WIRE_VMM_MULTICAST = 2 };
enum wire_direction {
    WIRE_HTOD,
    WIRE_DTOH,
    WIRE_DTOD,
    WIRE_HTOH,
    WIRE_PEER,
    WIRE_FILL,
    WIRE_UNIFIED, /* to be found from both addresses */
};

/* Marks and ranges. The text is the name, or domain, category and name with WIRE_MARK_SEPARATOR between them; of a POP
 * the domain alone, because ranges nest by thread and domain. START and END may come from different threads. */
enum wire_mark {
    WIRE_MARK_INSTANT,
    WIRE_MARK_PUSH,
    WIRE_MARK_POP,
    WIRE_MARK_START,
    WIRE_MARK_END,
    WIRE_MARK_EPOCH, /* ends the recording's epoch, and begins the next one */
};
#define WIRE_MARK_SEPARATOR '\x1f'

/* Where the parts lie in the memfd. */
#define WIRE_PAGE           4096ull
#define WIRE_ROUND(x)       (((x) + WIRE_PAGE - 1) / WIRE_PAGE * WIRE_PAGE)
#define WIRE_PROCS_OFFSET   WIRE_ROUND(sizeof(struct wire_control))
#define WIRE_HEADERS_OFFSET (WIRE_PROCS_OFFSET + WIRE_ROUND(WIRE_PROCS * sizeof(struct wire_proc)))
#define WIRE_DESK_OFFSET    (WIRE_HEADERS_OFFSET + WIRE_ROUND(WIRE_RINGS * sizeof(struct wire_ring)))
#define WIRE_ANSWERS_OFFSET (WIRE_DESK_OFFSET + WIRE_ROUND(sizeof(struct wire_desk)))                   /* one a ring */
#define WIRE_LEFT_OFFSET    (WIRE_ANSWERS_OFFSET + WIRE_ROUND(WIRE_RINGS * sizeof(struct wire_answer))) /* one a ring */
#define WIRE_DATA_OFFSET    (WIRE_LEFT_OFFSET + WIRE_ROUND(WIRE_RINGS * sizeof(struct wire_left)))
#define WIRE_TOTAL_BYTES    (WIRE_DATA_OFFSET + (uint64_t)WIRE_RINGS * WIRE_RING_WORDS * 8)

/* Hooked functions: the hook number of a record. */
enum wire_hook {
#define X(name, kind) WIRE_HOOK_##name,
#include "wire_hooks.def"
#undef X
    WIRE_HOOK_COUNT
};

#endif
