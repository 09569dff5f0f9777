#include "record_stack.h"

#include "own.h"

#include <sys/mman.h>
#include <time.h>

#define TABLE_HUGE_BYTES (4ul << 20) /* tables from here on take huge pages: they are touched all over soon */
#define HUGE_SLOW_NS     1000000     /* a huge page that takes longer costs more than 512 small ones */

struct stack_table stack_tables[STACK_TABLES];
uint32_t stack_table_newest;
static uint32_t stack_ids;

static int64_t own_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* All pages are touched soon: at once, as a virtual machine that returns its free memory to the host has to get each
 * huge page back, which takes five times as long as small ones. */
static struct stack_entry *map_huge(size_t bytes)
{
    char *map = sys_map_huge(bytes);
    for (size_t at = 0; map && at < bytes; at += SYS_HUGE_BYTES) {
        int64_t start_ns = own_ns();
        *(volatile char *)(map + at) = 0;
        if (own_ns() - start_ns > HUGE_SLOW_NS) {
            sys_call(SYS_madvise, map, bytes, MADV_NOHUGEPAGE);
            break;
        }
    }
    return (struct stack_entry *)map;
}

static struct stack_entry *table_entries(unsigned k)
{
    struct stack_entry *e = __atomic_load_n(&stack_tables[k].entries, __ATOMIC_ACQUIRE);
    if (e)
        return e;
    size_t bytes = sizeof *e << (STACK_TABLE_FIRST_BITS + 2 * k);
    e = bytes < TABLE_HUGE_BYTES ? sys_map(bytes) : map_huge(bytes);
    struct stack_entry *expected = NULL;
    if (!e) {
        COUNT(map_refused, 1);
    } else if (!__atomic_compare_exchange_n(&stack_tables[k].entries, &expected, e, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
        sys_unmap(e, bytes);
        e = expected;
    } else {
        own_tell(e, bytes);
    }
    return e;
}

void record_stack_keep(uint64_t hash, uint32_t id)
{
    unsigned k = __atomic_load_n(&stack_table_newest, __ATOMIC_ACQUIRE);
    struct stack_entry *e = table_entries(k);
    if (!e)
        return; /* the stack is defined again when it comes back */
    unsigned bits = STACK_TABLE_FIRST_BITS + 2 * k;
    uint32_t count = __atomic_add_fetch(&stack_tables[k].count, 1, __ATOMIC_RELAXED);
    if (count > (1u << bits) / 2 && k + 1 < STACK_TABLES) {
        unsigned expected = k;
        if (table_entries(k + 1))
            __atomic_compare_exchange_n(&stack_table_newest, &expected, k + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    if (count > (1u << bits) / 8 * 7)
        return;
    for (size_t i = hash >> (64 - bits);; i = (i + 1) & ((1ul << bits) - 1)) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&e[i].hash, &none, hash, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            none == hash) {
            __atomic_store_n(&e[i].id, id, __ATOMIC_RELEASE);
            return;
        }
    }
}

uint32_t record_stack_find_older(uint64_t hash)
{
    for (unsigned k = __atomic_load_n(&stack_table_newest, __ATOMIC_ACQUIRE); k-- > 0;) {
        uint32_t id = stack_table_find(k, hash);
        if (id) {
            record_stack_keep(hash, id); /* stacks in use move to the newest table */
            return id;
        }
    }
    return 0;
}

static uint64_t stack_word1(unsigned op, const struct unwind_stack *stack, uint32_t words, uint32_t id)
{
    return (uint64_t)op << 56 | (uint64_t)stack->flags << 48 | (uint64_t)words << 32 | id;
}

/* How many of the outermost frames are those of the stack that was told last: more than are known to be, or fewer where
 * that stack was told elsewhere. */
static uint32_t shared_frames(const struct thread *t, const uint64_t *addresses, uint32_t depth, uint32_t known)
{
    uint32_t told = t->told_ring == t->ring ? t->told_depth : 0;
    uint32_t shared = known, most = depth < told ? depth : told;
    if (unlikely(told < known))
        return 0;
    while (shared < most && t->told[shared] == addresses[depth - 1 - shared])
        shared++;
    return shared;
}

/* Wherever the thread is taken away from here, by a longjmp out of a signal handler or a fork in one, the next stack is
 * told whole. */
static uint32_t define_next(struct thread *t, const struct unwind_stack *stack, const uint64_t *addresses,
                            uint32_t known)
{
    struct wire_ring *ring = t->ring;
    uint32_t shared = shared_frames(t, addresses, stack->depth, known), count = stack->depth - shared,
             words = count + 3;
    if (unlikely(shared < known) || !record_room(t, words))
        return 0;
    uint32_t id = __atomic_add_fetch(&stack_ids, 1, __ATOMIC_RELAXED);
    t->told_depth = 0;
    t->told_number++;
    barrier();
    uint64_t stamp = record_begin(t);
    if (unlikely(t->ring != ring)) { /* what is shared was told in the parent's */
        record_end(t);
        return 0;
    }
    t->told_ring = ring;
    uint64_t at = record_reserve(t, words);
    record_word(t, at, stamp);
    record_word(t, at + 1, stack_word1(WIRE_STACK_NEXT, stack, words, id));
    record_word(t, at + 2, shared);
    for (uint32_t i = 0; i < count; i++)
        record_word(t, at + 3 + i, addresses[i]);
    record_end(t);
    for (uint32_t i = 0; i < count; i++)
        t->told[stack->depth - 1 - i] = addresses[i];
    barrier();
    t->told_depth = stack->depth;
    return id;
}

/* In a nested hook: the outer one may be telling a stack. */
static uint32_t define_whole(struct thread *t, const struct unwind_stack *stack, const uint64_t *addresses)
{
    uint32_t words = stack->depth + 2;
    if (!record_room(t, words))
        return 0;
    uint32_t id = __atomic_add_fetch(&stack_ids, 1, __ATOMIC_RELAXED);
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, words);
    record_word(t, at, stamp);
    record_word(t, at + 1, stack_word1(WIRE_STACK, stack, words, id));
    for (uint32_t i = 0; i < stack->depth; i++)
        record_word(t, at + 2 + i, addresses[i]);
    record_end(t);
    return id;
}

uint32_t record_stack_define(struct thread *t, const struct unwind_stack *stack, const uint64_t *addresses,
                             uint32_t known)
{
    uint32_t id = t->depth > 1 ? define_whole(t, stack, addresses) : define_next(t, stack, addresses, known);
    if (id)
        record_stack_keep(stack->hash, id);
    return id;
}

void record_stack_forget(int ids_go_on)
{
    for (unsigned k = 0; k < STACK_TABLES; k++) {
        if (stack_tables[k].entries)
            own_unmap(stack_tables[k].entries, sizeof(struct stack_entry) << (STACK_TABLE_FIRST_BITS + 2 * k));
        stack_tables[k] = (struct stack_table){NULL, 0};
    }
    stack_table_newest = 0;
    self.python_id = 0;
    if (!ids_go_on)
        stack_ids = 0;
}
