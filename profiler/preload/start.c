/* The start of this library in a program, and the end of both. */
#include "start.h"

#include "environment.h"
#include "hooks_new.h"
#include "image.h"
#include "last_look.h"
#include "order.h"
#include "real.h"
#include "record.h"
#include "record_heap.h"
#include "unhooked.h"

#include <stdlib.h>

static void process_exit(int status, void *unused)
{
    (void)unused;
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    /* the child of a vfork runs its parent's handlers where it calls exit */
    if (sys_getpid() != process.pid && gate.on)
        return;
    if (!thread_enter(t, s))
        return;
    unhooked_look(t);
    record_heap_end(t);
    image_ends();
    uint64_t words[] = {WIRE_WORD1(WIRE_EXIT, 0, (uint32_t)status)};
    record_words(t, words, 2);
    thread_leave(t);
    if (last_look_wait() && thread_enter(t, s)) {
        record_words(t, words, 2);
        thread_leave(t);
    }
}

void start_once(void)
{
    static int is_done;
    if (is_done)
        return;
    is_done = 1;
    thread_watch_ends();
    on_exit(process_exit, NULL);
}

__attribute__((constructor)) static void library_start(void)
{
    struct thread *t = &self;
    real_init();
    t->outer_sp = (uint64_t)__builtin_frame_address(0);
    t->depth++; /* what libc allocates here is not the program's */
    barrier();
    new_withdraw();
    process_attach();
    if (gate.on) {
        start_once();
        if (!(process.control->flags & WIRE_FOLLOW))
            environment_strip();
    }
    barrier();
    t->depth--;
    if (gate.on && !t->ring) {
        struct unwind_state s;
        UNWIND_HERE(s);
        if (thread_enter(t, s))
            thread_leave(t);
    }
    if (gate.on)
        order_start_first();
}
