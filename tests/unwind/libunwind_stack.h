/*
 * libunwind_stack.h: the stack as libunwind's unw_step gives it, which ours is compared with.
 */
#ifndef MEMPROF_LIBUNWIND_STACK_H
#define MEMPROF_LIBUNWIND_STACK_H

#include "../../profiler/preload/unwind/unwind.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdint.h>

struct stack {
    uint64_t pcs[UNWIND_FRAMES];
    unsigned depth, flags;
    uint64_t hash;
};

/* From the frame whose return address is `first` on; -1 when there is none. libunwind's addresses of interrupted frames
 * are exact; ours are one more, and so are those that this gives. */
static inline int stack_by_libunwind(struct stack *s, uint64_t first)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t ip;
    int begun = 0;
    s->depth = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        ip += unw_is_signal_frame(&cursor) > 0; /* interrupted here */
        begun |= ip == first;
        if (begun && ip >= 4096 && s->depth < UNWIND_FRAMES)
            s->pcs[s->depth++] = ip;
    } while (unw_step(&cursor) > 0);
    return begun ? 0 : -1;
}

#endif
