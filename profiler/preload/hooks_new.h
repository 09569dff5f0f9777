/*
 * hooks_new.h: C++'s operator new and delete (hooks_new.def). Most come to malloc and free, whose hooks record them: of
 * these ours are jumps to the next definition, and go away once the program has started. An allocator's own do not:
 * these are recorded here.
 */
#ifndef MEMPROF_HOOKS_NEW_H
#define MEMPROF_HOOKS_NEW_H

#include "compiler.h"

#include <stdint.h>

struct thread;

/* Where each goes on to. For real_init. */
void new_find(void) HIDDEN;

/* Those that record nothing are gone for whoever asks the dynamic loader from now on. For the library's constructor. */
void new_withdraw(void) HIDDEN;

/* The code of the allocator whose operators are recorded: what it calls in its own calls is no event. Empty: there is
 * no such allocator. Written while there is one thread. */
extern struct new_allocator {
    uint64_t start, end;
} new_allocator HIDDEN;

static inline int new_is_allocator(uint64_t pc)
{
    return pc >= new_allocator.start && pc < new_allocator.end;
}

/* Whether the thread's innermost hook is in such an operator new. There others than the allocator call, too: the
 * program's new-handler, and the C++ runtime that makes an exception. */
int new_is_innermost(const struct thread *t) HIDDEN;

#endif
