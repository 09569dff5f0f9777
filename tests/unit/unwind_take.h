/*
 * unwind_take.h: a stack taken in all ways at once, for the tests that compare ours with libunwind's.
 */
#ifndef MEMPROF_UNWIND_TAKE_H
#define MEMPROF_UNWIND_TAKE_H

#include "../../profiler/preload/unwind/careful.h"
#include "../unwind/libunwind_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define NO_INLINE __attribute__((noinline))

extern void *__libc_stack_end;

extern struct unwind_thread *thread;          /* of the thread that takes */
extern struct stack ours, remembered, theirs; /* what the last take gave: without memory, with it, libunwind's */
extern int taken;                             /* takes since the last check_taken() */
extern int remember_all;                      /* at every take */
extern struct wire_counters counters;

/* For cmocka_run_group_tests: `thread` is the main thread's, `counters` count. */
int take_set_up(void **state);
/* Takes the stack of its caller in all ways. */
void take(void);
/* Calls take(): a frame that is always there. */
void leaf(void);
/* Calls f from a frame whose CFA register is rbx. */
void asm_rbx(void (*f)(void));

void check_same(const struct stack *a, const struct stack *b);
/* After exactly one take(): all agree, and nothing is unknown. */
void check_taken(unsigned flags);

#endif
