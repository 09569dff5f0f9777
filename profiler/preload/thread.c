#include "thread.h"

#include "figures.h"
#include "hooks_new.h"
#include "own.h"
#include "pause.h"
#include "real.h"
#include "record_python.h"
#include "session.h"

#include <pthread.h>

extern void *__libc_stack_end;

__thread struct thread self;

static pthread_key_t end_key;
static int end_key_usable;

static uint64_t stack_top(uint64_t sp)
{
    /* glibc puts a thread's descriptor, which fs points to, at the top of its stack; the first thread's lies elsewhere
     */
    uint64_t descriptor;
    __asm__("mov %%fs:0, %0" : "=r"(descriptor));
    if (sp < descriptor)
        return descriptor;
    return sp < (uint64_t)__libc_stack_end ? (uint64_t)__libc_stack_end : 0;
}

#define ADDRESSES_BYTES (3ul * WIRE_STACK_MAX * sizeof(uint64_t))

int thread_memory(struct thread *t)
{
    size_t bytes = (unwind_thread_bytes() + 63) & ~63ul;
    char *memory = own_map(bytes + ADDRESSES_BYTES);
    if (!memory) {
        COUNT(map_refused, 1);
        return 0;
    }
    t->addresses = (uint64_t *)(memory + bytes);
    t->told = t->addresses + 2 * WIRE_STACK_MAX;
    t->unwind = (struct unwind_thread *)memory;
    unwind_thread_init(t->unwind, stack_top((uint64_t)__builtin_frame_address(0)), process.control->depth_max);
    return 1;
}

void thread_closing(struct thread *t)
{
    if (!t->ring)
        return;
    t->depth++; /* hooks of signal handlers stay out while the buffers go */
    barrier();
    if (t->unwind) {
        void *memory = t->unwind;
        t->unwind = NULL;
        own_unmap(memory, ((unwind_thread_bytes() + 63) & ~63ul) + ADDRESSES_BYTES);
    }
    figures_close(t);
    if (t->python) {
        void *memory = t->python;
        t->python = NULL;
        record_python_unmap(memory);
    }
    if (thread_owns_ring(t))
        __atomic_store_n(&t->ring->state, WIRE_RING_CLOSING, __ATOMIC_RELEASE);
    barrier();
    t->depth--;
}

/* Destructors of thread-specific data run in up to four rounds, and others may allocate in each: ours is done in the
 * last. */
static void thread_end(void *round)
{
    if ((uintptr_t)round < 4)
        pthread_setspecific(end_key, (void *)((uintptr_t)round + 1));
    else
        thread_closing(&self);
}

void thread_watch_ends(void)
{
    end_key_usable = pthread_key_create(&end_key, thread_end) == 0;
}

int thread_attach(struct thread *t)
{
    struct wire_ring *r = session_ring_pop();
    if (!r) {
        t->refused = 1;
        __atomic_fetch_add(&process.control->rings_refused, 1, __ATOMIC_RELAXED);
        return 0;
    }
    uint64_t *words = session_ring_words(r);
    if (!words) { /* the ring stays off the free list: the collector sees it closing, and its thread alive */
        t->refused = 1;
        COUNT(map_refused, 1);
    }
    r->proc_slot = process.slot_index;
    r->pid = process.pid;
    r->tid = t->tid = sys_gettid();
    r->is_main = r->tid == r->pid;
    r->start_stamp = clock_now();
    __atomic_store_n(&r->busy, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&r->state, words ? WIRE_RING_LIVE : WIRE_RING_CLOSING, __ATOMIC_RELEASE);
    if (!words)
        return 0;
    t->words = words;
    t->head = r->head;
    t->limit = t->head;
    t->writing = 0;
    t->attached++;
    t->told_depth = 0;
    t->thin_left = t->thin_is_ready = 0;
    t->joined = process.joined;
    if (t->unwind) /* a forked child keeps its parent's buffers, not what they remember */
        unwind_thread_init(t->unwind, stack_top((uint64_t)__builtin_frame_address(0)), process.control->depth_max);
    else
        thread_memory(t);
    t->ring = r;
    /* The first 32 keys live in the thread itself; a later one would allocate here. */
    if (end_key_usable && end_key < 32)
        pthread_setspecific(end_key, (void *)1);
    return 1;
}

/* The outermost hook of this thread was left by longjmp out of a signal handler; what it was writing never becomes
 * visible. Another one begins. */
static int enter_anew(struct thread *t, struct unwind_state s)
{
    if (t->writing) {
        t->head = t->ring->head;
        t->writing = 0;
        __atomic_store_n(&t->ring->busy, 0, __ATOMIC_RELEASE);
    }
    t->new_call = NULL;
    t->depth = 1;
    t->outer_sp = s.sp;
    barrier();
    if (t->ring || (!t->refused && thread_attach(t)))
        return 1;
    t->depth = 0;
    return 0;
}

static int skip(void)
{
    COUNT(nested_skipped, 1);
    return 0;
}

int thread_is_within(const struct thread *t, struct unwind_state s, uint64_t call_sp)
{
    return call_sp && s.sp < call_sp && unwind_above(t->unwind, s, call_sp) != UNWIND_NO_HOOK;
}

static __attribute__((noinline)) int enter_nested(struct thread *t, struct unwind_state s)
{
    if (new_is_allocator(s.pc))
        return skip(); /* its delete calls free: each time, so without a look at the stack */
    enum unwind_above above = unwind_above(t->unwind, s, t->outer_sp);
    if (above == UNWIND_NO_HOOK)
        return enter_anew(t, s);
    if (!t->ring || !t->unwind)
        return 0;
    if ((t->depth < 2 && above == UNWIND_SIGNAL) || new_is_innermost(t)) {
        COUNT(nested_recorded, 1);
        t->depth++;
        return 1;
    }
    return skip();
}

static __attribute__((noinline)) int enter_first(struct thread *t, struct unwind_state s)
{
    t->depth = 1;
    t->outer_sp = s.sp;
    barrier();
    if (likely(t->ring || (!t->refused && thread_attach(t))))
        return 1;
    COUNT(lost_event, 1);
    barrier();
    t->depth = 0;
    return 0;
}

static __attribute__((noinline)) void process_meet(struct thread *t, struct unwind_state s)
{
    if (process.state == PROCESS_ON && process_is_child()) {
        process_after_fork(0, t->writing != 0);
    } else if (process.state == PROCESS_NEW && !t->depth) {
        t->depth = 1;
        t->outer_sp = s.sp;
        barrier();
        real_init();
        process_attach();
        barrier();
        t->depth = 0;
    }
}

/* Of the recording before this one, which has ended. The old ring's memory stays: nobody knows who is in it. */
static void forget_recording(struct thread *t)
{
    t->depth = 1;
    barrier();
    t->ring = NULL;
    t->refused = t->told_depth = t->python_id = 0;
    t->writing = 0;
    if (t->python) {
        void *memory = t->python;
        t->python = NULL;
        record_python_unmap(memory);
    }
    barrier();
    t->depth = 0;
}

int thread_enter_slow(struct thread *t, struct unwind_state s)
{
    if (unlikely(thread_is_stale(t)) && !t->depth && gate.on)
        forget_recording(t);
    if (unlikely(python_is_ending()))
        record_python_teardown(t, s);
    if (likely((gate.on == GATE_WATCHED || gate.on >= GATE_PAUSED) && /* those behind it are open, too */
               t->depth == 0 && t->ring)) {
        t->depth = 1;
        t->outer_sp = s.sp;
        barrier();
        return 1;
    }
    if (gate.on != GATE_OPEN) {
        process_meet(t, s);
        if (!gate.on) {
            /* not a child's: its parent's slot may be another's by now */
            if (process.state == PROCESS_STOPPED && !process.guard && gate.own && !t->depth)
                COUNT(lost_event, 1);
            return 0;
        }
    }
    return t->depth ? enter_nested(t, s) : enter_first(t, s);
}

enum thread_entry thread_enter_birth_slow(struct thread *t, struct unwind_state s, uint64_t size_bytes)
{
    int is_paused = gate.on == GATE_PAUSED && pause_now();
    if (!thread_enter_slow(t, s))
        return ENTER_NOT;
    if (is_paused)
        return ENTERED_PAUSED;
    if (likely(!thin.is_on))
        return ENTERED;
    return thin_chooses(t, size_bytes) ? ENTERED_CHOSEN : ENTERED_LEFT_OUT;
}

enum thread_entry thread_enter_death_slow(struct thread *t, struct unwind_state s, const void *p)
{
    if (unlikely(thin.is_on)) { /* which knows its blocks in a pause, too */
        if (gate.on == GATE_PAUSED)
            pause_now();
        return !thread_enter_slow(t, s) ? ENTER_NOT : thin_dies(p) ? ENTERED : ENTERED_LEFT_OUT;
    }
    uint32_t pause = gate.on == GATE_PAUSED ? pause_now() : 0;
    int is_unseen = pause && pause_is_unseen(pause, p);
    if (!thread_enter_slow(t, s))
        return ENTER_NOT;
    if (is_unseen)
        return ENTERED_PAUSED;
    if (pause)
        pause_unseen(pause, p);
    return ENTERED;
}

int thread_enter_inside(struct thread *t)
{
    if (!gate.on || !t->ring || t->depth == 0)
        return 0;
    t->depth++;
    barrier();
    return 1;
}
