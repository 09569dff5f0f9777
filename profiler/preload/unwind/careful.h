/*
 * careful.h: the walk where the quick one gives up: on stacks that are not the thread's own, through signal frames and
 * frames that no rule describes. It reads only what it has asked the kernel about or knows to be the thread's stack.
 */
#ifndef MEMPROF_CAREFUL_H
#define MEMPROF_CAREFUL_H

#include "rules.h"

#pragma GCC visibility push(hidden)

INLINE int in_own_stack(const struct unwind_thread *t, uint64_t sp)
{
    return sp - t->low < t->high - t->low;
}

/* Lets the known part of the thread's own stack reach down to sp; 0: that is not (yet) known to be its stack. */
int own_stack_extend(struct unwind_thread *t, uint64_t sp);

/* Begins a walk: nothing is known yet. thread: NULL where its own stack is not to be told from others. */
INLINE void careful_reset(struct careful *c, struct unwind_thread *thread)
{
    c->thread = thread;
    c->low = c->high = 0;
    c->registers.known = 0;
    c->interrupted = c->signals = 0;
}

enum careful_result { STEP_END = -1, STEP_LOST = 0, STEP_DONE = 1 };

/* Begins at a frame with this sp: STEP_DONE, or STEP_LOST where nothing can be read. */
enum careful_result careful_begin(struct careful *c, uint64_t sp);
enum careful_result careful_step(struct careful *c, struct unwind_state *s);

/* All registers of the function that this is inlined into; those that calls may change are not known. Its pc is exact.
 */
INLINE void careful_registers(struct careful *c)
{
    struct cfi_registers *r = &c->registers;
    __asm__ volatile("leaq 0f(%%rip), %%rax\n\t"
                     "movq %%rax, 128(%0)\n\t"
                     "0:\n\t"
                     "movq %%rbx, 24(%0)\n\t"
                     "movq %%rbp, 48(%0)\n\t"
                     "movq %%rsp, 56(%0)\n\t"
                     "movq %%r12, 96(%0)\n\t"
                     "movq %%r13, 104(%0)\n\t"
                     "movq %%r14, 112(%0)\n\t"
                     "movq %%r15, 120(%0)"
                     :
                     : "r"(r->value)
                     : "rax", "memory");
    r->known = 1u << 3 | 1u << CFI_RBP | 1u << CFI_RSP | 0xfu << 12 | 1u << CFI_RA;
    c->interrupted = 1;
}

/* One frame further out by full evaluation of its CFI, from and to c->registers: 0; 1: that was the outermost; -1. */
int careful_full_step(struct careful *c);

#pragma GCC visibility pop

#endif
