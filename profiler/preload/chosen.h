/*
 * chosen.h: the addresses of the live blocks that are recorded, where most are not: each free asks for its own. One
 * byte a home says how many of them belong there, and one byte a quarter whether anything does, so that a free of
 * nearly any other block costs one load from a table that the cache has room for. No locks: who adds or takes an
 * address has its block, so nobody else does at the same time. What has no room makes its home one of which each free
 * is recorded.
 */
#ifndef MEMPROF_CHOSEN_H
#define MEMPROF_CHOSEN_H

#include "compiler.h"

#include <stddef.h>
#include <stdint.h>

#define CHOSEN_BITS         21u
#define CHOSEN_SLOTS        (1ul << CHOSEN_BITS)
#define CHOSEN_PROBE        64u  /* places from its home on that an address may be at */
#define CHOSEN_ALL          255u /* this many or more, or one without room: its home stays so */
#define CHOSEN_QUARTER_BITS 15u
#define CHOSEN_QUARTERS     (1ul << CHOSEN_QUARTER_BITS)
/* Of all tables, zeroed. */
#define CHOSEN_BYTES (CHOSEN_SLOTS * (sizeof(uint64_t) + 1) + CHOSEN_QUARTERS)

struct chosen {
    uint64_t *slots;
    uint8_t *homes;
    uint8_t *quarters; /* of neighbouring homes */
};

static inline void chosen_init(struct chosen *c, void *memory)
{
    c->slots = (uint64_t *)memory;
    c->homes = (uint8_t *)memory + CHOSEN_SLOTS * sizeof(uint64_t);
    c->quarters = c->homes + CHOSEN_SLOTS;
}

static inline size_t chosen_home(const void *p)
{
    return ((uint64_t)(uintptr_t)p >> 4) * 0x9e3779b97f4a7c15ull >> (64 - CHOSEN_BITS);
}

/* 0: it is none of them. */
static inline __attribute__((always_inline)) unsigned chosen_maybe(const struct chosen *c, const void *p)
{
    return __atomic_load_n(&c->quarters[chosen_home(p) >> (CHOSEN_BITS - CHOSEN_QUARTER_BITS)], __ATOMIC_RELAXED);
}

static inline unsigned chosen_at_home(const struct chosen *c, size_t home)
{
    return __atomic_load_n(&c->homes[home], __ATOMIC_RELAXED);
}

static inline void chosen_count(uint8_t *home, int by)
{
    uint8_t old = __atomic_load_n(home, __ATOMIC_RELAXED), wanted;
    do {
        if (old == CHOSEN_ALL || (by < 0 && !old))
            return;
        wanted = (uint8_t)(old + by);
    } while (!__atomic_compare_exchange_n(home, &old, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline void chosen_home_change(struct chosen *c, size_t home, int by)
{
    chosen_count(&c->quarters[home >> (CHOSEN_BITS - CHOSEN_QUARTER_BITS)], by);
    chosen_count(&c->homes[home], by);
}

static inline uint64_t *chosen_slot(const struct chosen *c, size_t home, unsigned step)
{
    return &c->slots[(home + step) & (CHOSEN_SLOTS - 1)];
}

/* 0: there was no room, and each free at its home is to be recorded from now on. */
static inline int chosen_add(struct chosen *c, const void *p)
{
    size_t home = chosen_home(p);
    uint64_t wanted = (uint64_t)(uintptr_t)p;
    for (unsigned i = 0; chosen_at_home(c, home) && i < CHOSEN_PROBE; i++)
        if (__atomic_load_n(chosen_slot(c, home, i), __ATOMIC_RELAXED) == wanted)
            return 1; /* its last free was not seen */
    chosen_home_change(c, home, 1);
    for (unsigned i = 0; i < CHOSEN_PROBE; i++) {
        uint64_t *slot = chosen_slot(c, home, i), none = 0;
        if (!__atomic_load_n(slot, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(slot, &none, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return 1;
    }
    __atomic_store_n(&c->quarters[home >> (CHOSEN_BITS - CHOSEN_QUARTER_BITS)], CHOSEN_ALL, __ATOMIC_RELAXED);
    __atomic_store_n(&c->homes[home], CHOSEN_ALL, __ATOMIC_RELAXED);
    return 0;
}

/* Removes it. 1 where it was there, or may have been without room. */
static inline int chosen_take(struct chosen *c, const void *p)
{
    size_t home = chosen_home(p);
    unsigned count = chosen_maybe(c, p) ? chosen_at_home(c, home) : 0;
    if (!count)
        return 0;
    for (unsigned i = 0; i < CHOSEN_PROBE; i++) {
        uint64_t *slot = chosen_slot(c, home, i);
        if (__atomic_load_n(slot, __ATOMIC_RELAXED) == (uint64_t)(uintptr_t)p) {
            __atomic_store_n(slot, 0, __ATOMIC_RELAXED);
            chosen_home_change(c, home, -1);
            return 1;
        }
    }
    return count == CHOSEN_ALL;
}

#endif
