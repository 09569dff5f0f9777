/*
 * oom.h: who asked to be told of allocations that fail (memprof_on_oom). Hooks tell him on their failing path alone,
 * when they have been left.
 */
#ifndef MEMPROF_OOM_H
#define MEMPROF_OOM_H

#include "thread.h"

/* s: of the hook's caller. device: its number, WIRE_DEVICE_HOST or UNKNOWN. Nothing where the thread is in a hook still
 * (a signal handler's, or an allocator's own call), or in such a call of its own. errno stays. */
void oom_tell(struct thread *t, struct unwind_state s, unsigned device, uint64_t size_bytes) HIDDEN;

#endif
