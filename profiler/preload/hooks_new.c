/*
 * C++'s operator new and delete. libstdc++'s and libc++'s call malloc and free, and are none of our business; jemalloc,
 * tcmalloc and mimalloc bring their own, which do not. Whoever exports these functions from a preloaded library stands
 * in front of all of the program's libraries, also of those that are loaded later with definitions of their own. So
 * ours stay only where the allocator's are the program's, and else take themselves out of the symbol table before main:
 * who binds after that gets what he would get without us, also where that is a library's own.
 */
#include "hooks_new.h"

#include "elf_find.h"
#include "oom.h"
#include "pause.h"
#include "real.h"
#include "record_free.h"

#include <malloc.h>
#include <stdlib.h>

typedef uintptr_t operator_function(uintptr_t a, uintptr_t b, uintptr_t c);

struct new_allocator new_allocator;

/* --- recording --- */

/* An operator new of an allocator under way. It may end by an exception, and the program's new-handler runs in it. */
struct new_call {
    struct unwind_state caller;
    size_t size_bytes;
    int is_paused;
    int is_left_out;        /* of a thinned recording, that it has no birth in */
    struct new_call *outer; /* of this thread; a new-handler's or a signal handler's is an inner one */
    uint32_t depth;         /* of the thread, in it */
};

int new_is_innermost(const struct thread *t)
{
    return t->new_call && t->new_call->depth == t->depth;
}

static void left(struct thread *t, const struct new_call *call)
{
    t->new_call = call->outer;
    t->depth = call->depth; /* hooks inside may have been left by exceptions or longjmp */
}

enum { CLEANUP_PHASE = 2, FORCED = 8, CONTINUE_UNWIND = 8 }; /* of the C++ ABI's exceptions */

/* The personality routine of call_new: an exception leaves it. This is all that there is to clean up, so nothing of the
 * C++ runtime is needed, which the program may lack. */
HIDDEN __attribute__((used)) int new_left_by_exception(int version, int actions, uint64_t class, void *exception,
                                                       void *context)
{
    struct thread *t = &self;
    const struct new_call *call = t->new_call;
    (void)version, (void)class, (void)exception, (void)context;
    if (actions & CLEANUP_PHASE && call) {
        left(t, call);
        if (!(actions & FORCED) && !call->is_paused) /* by the thread's end */
            record_oom(t, call->caller, call->size_bytes, WIRE_HOOK_operator_new);
        thread_leave(t);
    }
    return CONTINUE_UNWIND;
}

static void born_in_pause(const void *p)
{
    uint32_t pause = pause_now();
    if (p && pause)
        pause_unseen(pause, p);
}

/* A function of its own: only in here the hook is entered whenever an exception passes. */
static __attribute__((noinline)) uintptr_t call_new(operator_function *function, uintptr_t a, uintptr_t b, uintptr_t c,
                                                    struct unwind_state s, enum thread_entry entry)
{
    __asm__ volatile(".cfi_personality 0x1b, new_left_by_exception"); /* 0x1b: relative, in 4 bytes */
    struct thread *t = &self;
    struct new_call call = {s, a, entry == ENTERED_PAUSED, entry == ENTERED_LEFT_OUT, t->new_call, t->depth};
    t->new_call = &call;
    barrier();
    void *p = (void *)function(a, b, c);
    barrier();
    left(t, &call);
    if (unlikely(call.is_paused))
        born_in_pause(p);
    else if (p && unlikely(entry == ENTERED_CHOSEN))
        thin_lives(p);
    if (likely(p && !call.is_paused && !call.is_left_out))
        record_alloc(t, s, p, a, WIRE_HOOK_operator_new);
    else if (!p && !call.is_paused)
        record_oom(t, s, a, WIRE_HOOK_operator_new);
    thread_leave(t);
    if (unlikely(!p && !call.is_paused))
        oom_tell(t, s, WIRE_DEVICE_HOST, a);
    return (uintptr_t)p;
}

static uintptr_t call_delete(operator_function *function, uintptr_t a, uintptr_t b, uintptr_t c, struct unwind_state s,
                             enum thread_entry entry)
{
    struct thread *t = &self;
    (void)s;
    if (likely(entry == ENTERED))
        record_free(t, (const void *)a, WIRE_HOOK_operator_delete);
    function(a, b, c);
    thread_leave(t);
    return 0;
}

static inline __attribute__((always_inline)) enum thread_entry enter_new(uintptr_t size_bytes, struct unwind_state s)
{
    return thread_enter_birth(&self, s, size_bytes);
}

static inline __attribute__((always_inline)) enum thread_entry enter_delete(uintptr_t block, struct unwind_state s)
{
    return block ? record_enter_death(&self, s, (const void *)block, WIRE_HOOK_operator_delete) : ENTER_NOT;
}

/* --- each of them --- */

enum {
#define X(symbol, kind, alignment) AT_##symbol,
#include "hooks_new.def"
#undef X
    COUNT_OF_ALL
};

static operator_function *real_one[COUNT_OF_ALL]; /* the next definitions; NULL: there is none */

#define X(symbol, kind, alignment)                                                                                     \
    static uintptr_t record_##symbol(uintptr_t a, uintptr_t b, uintptr_t c)                                            \
    {                                                                                                                  \
        struct unwind_state s;                                                                                         \
        UNWIND_HERE(s);                                                                                                \
        enum thread_entry entry = enter_##kind(a, s);                                                                  \
        if (unlikely(entry == ENTER_NOT))                                                                              \
            return real_one[AT_##symbol](a, b, c);                                                                     \
        return call_##kind(real_one[AT_##symbol], a, b, c, s, entry);                                                  \
    }
enum { new, delete };
#include "hooks_new.def"
#undef X

/* Only a library that can do without such a function, and found ours, comes here without there being another. */
static uintptr_t nobodys_new(uintptr_t size_bytes, uintptr_t alignment)
{
    return (uintptr_t)(alignment ? memalign(alignment, size_bytes) : malloc(size_bytes));
}

static uintptr_t nobodys_delete(uintptr_t block, uintptr_t alignment)
{
    (void)alignment;
    free((void *)block);
    return 0;
}

/* Before real_init, and where it found nothing. What is found later is not kept: it may be unloaded. */
#define X(symbol, kind, alignment)                                                                                     \
    static operator_function late_##symbol;                                                                            \
    static operator_function *go_to_##symbol = late_##symbol;                                                          \
    static uintptr_t late_##symbol(uintptr_t a, uintptr_t b, uintptr_t c)                                              \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        real_init();                                                                                                   \
        operator_function *f = go_to_##symbol;                                                                         \
        if (f == late_##symbol)                                                                                        \
            f = (operator_function *)real_find_next(#symbol);                                                          \
        return f ? f(a, b, c) : nobodys_##kind(a, alignment);                                                          \
    }                                                                                                                  \
    /* a jump: the stack is as without us */                                                                           \
    EXPORT uintptr_t symbol(uintptr_t a, uintptr_t b, uintptr_t c);                                                    \
    EXPORT uintptr_t symbol(uintptr_t a, uintptr_t b, uintptr_t c)                                                     \
    {                                                                                                                  \
        return go_to_##symbol(a, b, c);                                                                                \
    }
#include "hooks_new.def"
#undef X

static const struct {
    const char *symbol;
    operator_function *recording, **go_to;
} all[] = {
#define X(symbol, kind, alignment) {#symbol, record_##symbol, &go_to_##symbol},
#include "hooks_new.def"
#undef X
};

/* Who defines malloc, too, has blocks of his own. */
static int is_allocators(operator_function *function)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)function, &object) != 0 || !real_find_in(object.dlfo_link_map, "malloc"))
        return 0;
    new_allocator.start = (uint64_t)object.dlfo_map_start;
    new_allocator.end = (uint64_t)object.dlfo_map_end;
    return 1;
}

/* Before anything is loaded while the program runs: dlopen calls malloc, whose hook comes here first. */
void new_find(void)
{
    for (unsigned i = 0; i < COUNT_OF_ALL; i++) {
        operator_function *f = (operator_function *)real_find_next(all[i].symbol);
        if (!f)
            continue;
        real_one[i] = f;
        __atomic_store_n(all[i].go_to, is_allocators(f) ? all[i].recording : f, __ATOMIC_RELEASE);
    }
}

void new_withdraw(void)
{
    const char *names[COUNT_OF_ALL];
    for (unsigned i = 0; i < COUNT_OF_ALL; i++)
        names[i] = *all[i].go_to == all[i].recording ? NULL : all[i].symbol;
    real_hide(names, COUNT_OF_ALL);
}
