#include "record_free.h"

#include "real.h"

/* An allocator that cannot say how much a block holds has all of its frees told. */
static int is_asked(const void *p)
{
    if (likely(!process.free_stacks))
        return 0;
    return !process.free_least_bytes || !real.malloc_usable_size ||
           real.malloc_usable_size((void *)(uintptr_t)p) >= process.free_least_bytes;
}

void record_free_at(struct thread *t, uint64_t stamp, const void *p, uint32_t stack, unsigned hook)
{
    uint64_t at = record_reserve(t, 3);
    record_word(t, at, stamp);
    record_word(t, at + 1, WIRE_WORD1(WIRE_FREE_AT, hook, (uint64_t)p));
    record_word(t, at + 2, stack);
}

enum thread_entry record_free_enter(struct thread *t, struct unwind_state s, const void *p, unsigned hook)
{
    enum thread_entry entry = thread_enter_death_slow(t, s, p);
    if (entry != ENTERED || !is_asked(p))
        return entry;
    uint32_t stack = record_stack(t, s);
    if (record_room(t, 3)) {
        record_free_at(t, record_begin(t), p, stack, hook);
        record_end(t);
    }
    return ENTERED_PAUSED;
}
