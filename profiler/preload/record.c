#include "record.h"

#include "own.h"
#include "record_heap.h"
#include "record_python.h"
#include "record_stack.h"

/* Whether the thread has its buffers. They are gone once its end was announced; new ones would never be given back. */
static inline __attribute__((always_inline)) int has_memory(struct thread *t)
{
    return likely(t->unwind != NULL) || (t->ring->state != WIRE_RING_CLOSING && thread_memory(t));
}

static __attribute__((noinline)) uint32_t stack_nested(struct thread *t, struct unwind_state s)
{
    struct unwind_stack stack;
    if (!has_memory(t))
        return 0;
    unwind_nested(t->unwind, s, &stack);
    uint32_t id = record_stack_find(stack.hash);
    if (!id)
        id = record_stack_find_older(stack.hash);
    if (!id) {
        unwind_nested_addresses(t->unwind, t->addresses + WIRE_STACK_MAX);
        id = record_stack_define(t, &stack, t->addresses + WIRE_STACK_MAX, 0);
    }
    return id;
}

static __attribute__((noinline)) uint32_t stack_new(struct thread *t, const struct unwind_stack *stack)
{
    uint32_t id = record_stack_find_older(stack->hash);
    if (!id) {
        unwind_addresses(t->unwind, t->addresses);
        id = record_stack_define(t, stack, t->addresses, 0);
    }
    return id;
}

static inline __attribute__((always_inline)) uint32_t stack_id(struct thread *t, struct unwind_state s)
{
    if (!has_memory(t))
        return 0;
    struct unwind_stack stack;
    unwind_stack(t->unwind, s, &stack);
    if (unlikely(python_loaded)) {
        uint64_t python = python_hash(t->python ? &t->python->memory : NULL, process.control->depth_max);
        if (python)
            return record_python_stack(t, s, &stack, python);
    }
    if (stack.id && *stack.id)
        return *stack.id;
    uint32_t id = record_stack_find(stack.hash);
    if (unlikely(!id))
        id = stack_new(t, &stack);
    if (stack.id)
        *stack.id = id;
    return id;
}

uint32_t record_stack(struct thread *t, struct unwind_state s)
{
    return unlikely(t->depth > 1) ? stack_nested(t, s) : stack_id(t, s);
}

static inline __attribute__((always_inline)) uint64_t write_alloc(struct thread *t, uint32_t stack, const void *p,
                                                                  size_t size_bytes, unsigned hook)
{
    uint64_t stamp;
    if (likely(size_bytes <= UINT32_MAX)) {
        if (!record_room(t, 3))
            return 0;
        stamp = record_begin(t);
        uint64_t at = record_reserve(t, 3);
        record_word(t, at, stamp);
        record_word(t, at + 1, WIRE_WORD1(WIRE_ALLOC, hook, (uint64_t)p));
        record_word(t, at + 2, (uint64_t)size_bytes << 32 | stack);
    } else {
        if (!record_room(t, 4))
            return 0;
        stamp = record_begin(t);
        uint64_t at = record_reserve(t, 4);
        record_word(t, at, stamp);
        record_word(t, at + 1, WIRE_WORD1(WIRE_ALLOC_BIG, hook, (uint64_t)p));
        record_word(t, at + 2, stack);
        record_word(t, at + 3, size_bytes);
    }
    record_end(t);
    return stamp;
}

void record_alloc_nested(struct thread *t, struct unwind_state s, const void *p, size_t size_bytes, unsigned hook)
{
    uint32_t stack = stack_nested(t, s);
    write_alloc(t, stack, p, size_bytes, hook);
}

void record_alloc_plain(struct thread *t, struct unwind_state s, const void *p, size_t size_bytes, unsigned hook)
{
    uint64_t stamp = write_alloc(t, stack_id(t, s), p, size_bytes, hook);
    if (unlikely(stamp >= __atomic_load_n(&record_heap_due, __ATOMIC_RELAXED)))
        record_heap_sample_if_due(t, stamp);
}

void record_oom(struct thread *t, struct unwind_state s, size_t size_bytes, unsigned hook)
{
    uint64_t words[] = {WIRE_WORD1(WIRE_OOM, hook, 12), record_stack(t, s), size_bytes, sys_address_limit(),
                        own_addresses()};
    record_words(t, words, 6);
}
