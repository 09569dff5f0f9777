/*
 * event.h: what the ordering stage hands to the accounts: one event of one process, in time order over all threads.
 */
#ifndef MEMPROF_EVENT_H
#define MEMPROF_EVENT_H

#include <stdint.h>

enum event_op {
    EVENT_ALLOC,        /* a block is born */
    EVENT_FREE,         /* a block dies */
    EVENT_REALLOC_FREE, /* the same as part of a realloc; the EVENT_REALLOC_ALLOC of the same thread follows */
    EVENT_REALLOC_ALLOC,
    EVENT_SEGMENT_ALLOC,  /* an allocator got memory from below */
    EVENT_SEGMENT_FREE,   /* ... or gave an address range of it back: address and size */
    EVENT_OOM,            /* size: asked for; address: errno */
    EVENT_RESERVED,       /* a sample: size: reserved bytes of the process's allocator on that device; of glibc's heap:
                             address: those of them that blocks with a mapping of their own have, stack_id: heap_asked
                             where that was asked now; 0: it is glibc's last answer */
    EVENT_RSS,            /* a sample: size: RSS of the process */
    EVENT_FREE_REQUESTED, /* a block's free waits for a stream: no longer allocated, active until its EVENT_FREE */
    EVENT_TO_SEGMENT,     /* the live block of that kind at address (host: also one that holds the address) turns out to
                             be memory of an allocator: a segment from now on, and no block. Where there is none, the
                             range is a segment of kind 'sub' */
    EVENT_DEVICE_USED,    /* a sample: size: bytes of the device in use, as its driver says; address: its total bytes */
    EVENT_TEARDOWN,    /* the interpreter that runs the process's program begins to take itself down: what is live now
                          is live at the end, whatever becomes of it */
    EVENT_PROCESS_END, /* all blocks and segments of the process leave */
    EVENT_SPLIT,       /* the live part at address is two from here on: of its first size bytes, and of the others. No
                          bytes and no blocks come or go */
    EVENT_HEAP_AT,     /* one of glibc's heaps begins at address; size: its arena, 0: the main one */
    EVENT_PART_FREE,   /* a part of a block that was split leaves; the block does with the last one. size: its bytes */
    EVENT_TOUCH,       /* the live block at address is copied to or from, or filled. size: bytes; stack_id: what */
    EVENT_UPLOAD,      /* ... after EVENT_TOUCH with TOUCH_UPLOAD. size: the address of the host that it came from */
    EVENT_TOUCH_END,   /* a block that was touched is gone. stack_id: TOUCH_MOVED: it is a segment, and was no block */
    EVENT_HEAP_ASKS,   /* the thread asks glibc from now on; an EVENT_RESERVED of it with heap_asked is the answer */
};

enum { HEAP_ASKED = 1, HEAP_USED_UNIT = 4096 }; /* stack_id of EVENT_RESERVED: see heap_asked */
enum {                                          /* ... of EVENT_TOUCH and EVENT_TOUCH_END */
       TOUCH_WRITE = 1,
       TOUCH_READ,
       TOUCH_UPLOAD, /* a TOUCH_WRITE of at least half the block, from the host to its begin; EVENT_UPLOAD is next */
       TOUCH_MOVED,
};

/* stack_id of an EVENT_RESERVED of glibc's heap that was asked: HEAP_ASKED, and the pages of its arenas that glibc says
 * are in use. */
static inline uint32_t heap_asked(uint64_t used_bytes)
{
    uint64_t pages = used_bytes / HEAP_USED_UNIT;
    return HEAP_ASKED + (uint32_t)(pages < UINT32_MAX ? pages : UINT32_MAX - 1);
}

/* Those of blocks, and of parts of them, or their beginning: whose stack_id says who did it where that was asked for.
 */
static inline int event_is_death(unsigned op)
{
    return op == EVENT_FREE || op == EVENT_REALLOC_FREE || op == EVENT_PART_FREE || op == EVENT_FREE_REQUESTED;
}

enum {                         /* inherited */
       EVENT_OF_CHILD = 1,     /* the process is a fork's child: of a block of its parent */
       EVENT_MAYBE_UNSEEN = 2, /* the recording was paused before: of a block that was born then */
       EVENT_FROM_BEFORE = 4,  /* the recording began while the process ran: of a block that was there */
};

struct event {
    uint64_t time_ns;
    uint64_t address;
    uint64_t size_bytes;
    uint32_t stack_id;  /* global stack (stack.stack_id), 0: unknown. Allocations, OOM, and deaths with --free-stacks */
    uint32_t thread_id; /* thread.thread_id */
    uint16_t process_id; /* process.process_id */
    uint8_t op;          /* enum event_op */
    uint8_t hook;        /* hook_id */
    uint8_t device;      /* device_id, host 0 */
    uint8_t kind;        /* enum kind */
    uint8_t inherited;   /* EVENT_OF_CHILD, EVENT_MAYBE_UNSEEN: what an unknown free may be of */
    uint8_t is_sampled;  /* segments: their bytes are in EVENT_RESERVED already. Deaths with a stack: another device
                            was the thread's current one */
};

#endif
