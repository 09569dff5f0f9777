#include "pause.h"

#define UNSEEN    8192u      /* addresses; 64 KiB, touched in a pause only */
#define PAUSE_MAX (1u << 17) /* later pauses have no number of their own in the table, and go without it */

/* By a hash of the address: pause << 48 | address, so that another pause's mean nothing. Whatever is in here was so
 * when its thread, which held the block, wrote it, and stays so in that pause: nothing is recorded to be born. Any
 * thread writes any word. */
static uint64_t unseen[UNSEEN];

static uint32_t pauses(void)
{
    return __atomic_load_n(&process.control->pauses, __ATOMIC_ACQUIRE);
}

static int change_gate(uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&gate.on, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Where the gate is guarded the collector alone leaves out what is born. */
void pause_look(void)
{
    if (likely(!(pauses() & 1)))
        return;
    if (!change_gate(gate_open(), GATE_PAUSED) && gate.on == gate_watched()) {
        process.was_watched = 1;
        change_gate(gate_watched(), GATE_PAUSED);
    }
}

uint32_t pause_start(uint32_t open)
{
    if (open != GATE_GUARDED && pauses() & 1) {
        process.was_watched = open == gate_watched();
        return GATE_PAUSED; /* in a forked child has_recorded is its parent's */
    }
    process.has_recorded = 1;
    return open;
}

static __attribute__((noinline)) void resume(void)
{
    __atomic_store_n(&process.has_recorded, 1, __ATOMIC_RELAXED);
    int is_watched = process.free_stacks || (process.was_watched && !process.teardown_known);
    change_gate(GATE_PAUSED, is_watched ? gate_watched() : gate_open());
}

uint32_t pause_now(void)
{
    uint32_t number = pauses();
    if (likely(number & 1))
        return number;
    resume();
    return 0;
}

static uint64_t *place(const void *p)
{
    return &unseen[((uint64_t)p >> 4) * 0x9e3779b97f4a7c15u >> 51];
}
_Static_assert(UNSEEN == 1u << (64 - 51), "the hash has as many bits");

static uint64_t entry(uint32_t pause, const void *p)
{
    return (uint64_t)(pause >> 1) << 48 | ((uint64_t)p & WIRE_A_MASK);
}

int pause_is_unseen(uint32_t pause, const void *p)
{
    if (!__atomic_load_n(&process.has_recorded, __ATOMIC_RELAXED))
        return 1;
    return pause < PAUSE_MAX && __atomic_load_n(place(p), __ATOMIC_RELAXED) == entry(pause, p);
}

void pause_unseen(uint32_t pause, const void *p)
{
    uint64_t *word = place(p), wanted = entry(pause, p);
    if (pause < PAUSE_MAX && __atomic_load_n(word, __ATOMIC_RELAXED) != wanted) /* the line stays shared by readers */
        __atomic_store_n(word, wanted, __ATOMIC_RELAXED);
}
