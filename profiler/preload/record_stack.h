/*
 * record_stack.h: the ids of stacks, by their hash, for all threads at once. Look in the newest table, then in the
 * older ones; define the stack when it is in none.
 */
#ifndef MEMPROF_RECORD_STACK_H
#define MEMPROF_RECORD_STACK_H

#include "record_ring.h"

/* A list of tables, each four times the size of the one before; a look-up starts at the newest. An entry's hash is
 * taken with compare and swap; its id is 0 until its definition was written to a ring, so that no event with the id can
 * be ordered before the definition. Two threads may define one stack twice: the collector sees that they are the same.
 */
struct stack_entry {
    uint64_t hash; /* 0: free */
    uint32_t id;
    uint32_t fill;
};

#define STACK_TABLES           10
#define STACK_TABLE_FIRST_BITS 12
struct stack_table {
    struct stack_entry *entries;
    uint32_t count;
};
extern struct stack_table stack_tables[STACK_TABLES] HIDDEN;
extern uint32_t stack_table_newest HIDDEN;

static inline uint32_t stack_table_find(unsigned k, uint64_t hash)
{
    struct stack_entry *e = __atomic_load_n(&stack_tables[k].entries, __ATOMIC_ACQUIRE);
    unsigned bits = STACK_TABLE_FIRST_BITS + 2 * k;
    if (!e)
        return 0;
    for (size_t i = hash >> (64 - bits);; i = (i + 1) & ((1ul << bits) - 1)) {
        uint64_t h = __atomic_load_n(&e[i].hash, __ATOMIC_RELAXED);
        if (likely(h == hash))
            return __atomic_load_n(&e[i].id, __ATOMIC_ACQUIRE);
        if (!h)
            return 0;
    }
}

/* 0: not in the newest table. */
static inline uint32_t record_stack_find(uint64_t hash)
{
    return stack_table_find(__atomic_load_n(&stack_table_newest, __ATOMIC_ACQUIRE), hash);
}

/* 0: not in an older one either. What is found moves to the newest. */
uint32_t record_stack_find_older(uint64_t hash) HIDDEN;
/* The id is the hash's from now on, in so far as there is memory. */
void record_stack_keep(uint64_t hash, uint32_t id) HIDDEN;
/* Tells the collector the stack. addresses lack its `known` outermost frames, which are those of the stack that this
 * thread told last; 0 in a nested hook. Its id; 0: no room in the ring. */
uint32_t record_stack_define(struct thread *t, const struct unwind_stack *stack, const uint64_t *addresses,
                             uint32_t known) HIDDEN;

/* After a fork: stacks are defined anew. ids_go_on: a hook under way may hold an id of the parent, which no stack here
 * may get. */
void record_stack_forget(int ids_go_on) HIDDEN;

#endif
