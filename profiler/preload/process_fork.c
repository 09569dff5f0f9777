/* A forked child: it becomes a process of its own, or it stops recording. */
#include "attach.h"
#include "record_stack.h"

/* Where a hook goes on in a forked child that has no ring: it finishes its record here, and nobody reads it. */
static struct wire_ring orphan_ring;
static uint64_t orphan_words[WIRE_RING_WORDS];

static void thread_orphan(struct thread *t)
{
    if (gate.on)
        process_stop();
    t->words = orphan_words;
    t->head = 0;
    t->limit = WIRE_RING_WORDS / 2;
    orphan_ring.pid = process.pid;
    orphan_ring.tid = t->tid;
    orphan_ring.state = WIRE_RING_LIVE;
    t->ring = &orphan_ring;
}

void process_after_fork(int libc_knows, int torn)
{
    uint32_t parent_slot = process.slot_index + 1;
    struct thread *t = &self;
    uint32_t depth =
        t->depth; /* not 0: of a hook that this fork's signal handler interrupted; it goes on in the child */
    t->depth = 1;
    barrier();
    t->ring = NULL;
    t->writing = t->refused = 0;
    if (depth && torn && process.control->flags & WIRE_FOLLOW)
        COUNT(stopped, 1); /* to the parent: the child gets no slot */
    process.slot = NULL;
    unwind_counters = NULL;
    gate.on = GATE_SHUT;
    if (!libc_knows && !__libc_single_threaded)
        process.heap_locks_unsure = 1;
    if ((depth && torn) || !(process.control->flags & WIRE_FOLLOW)) {
        process.state = PROCESS_OFF;
        if (process.joined)
            attach_left_by_fork();
    } else {
        process.state = PROCESS_ATTACHING;
        unwind_after_fork();
        record_stack_forget(depth != 0);
        process_start(WIRE_START_FORK, parent_slot, process.pid);
    }
    if (gate.on)
        thread_attach(t);
    if (depth && !t->ring)
        thread_orphan(t);
    barrier();
    t->depth = depth;
}
