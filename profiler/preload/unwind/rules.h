/*
 * rules.h: the unwind rule of each return address that was met (cfi.h), computed once, and steps by simple rules. For
 * unwind.c and careful.c.
 */
#ifndef MEMPROF_RULES_H
#define MEMPROF_RULES_H

#include "unwind.h"

#pragma GCC visibility push(hidden)

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define INLINE      static inline __attribute__((always_inline))
#define NOINLINE    __attribute__((noinline))

#define COUNT(name)                                                                                                    \
    do {                                                                                                               \
        if (unwind_counters)                                                                                           \
            __atomic_fetch_add(&unwind_counters->name, 1, __ATOMIC_RELAXED);                                           \
    } while (0)

/*
 * Direct-mapped by the low bits of the address and without locks: the high bits are the tag, in the part of the word
 * that a rule leaves free, so a word is never torn. From one return address to the next the way is: index, load the
 * word, add its offset, load; no hash, because that way is what an unwind costs.
 */
#define RULE_INDEX_BITS 16
extern uint64_t rules[1u << RULE_INDEX_BITS];

INLINE uint64_t *rule_word(uint64_t pc)
{
    return &rules[pc & ((1u << RULE_INDEX_BITS) - 1)];
}

/* An address's bits from RULE_INDEX_BITS on, at bit 11 on. */
INLINE uint64_t rule_tag(uint64_t pc)
{
    return pc >> (RULE_INDEX_BITS - 11) & RULE_UNUSED;
}

/* User space above what the kernel lets anybody map; so never the tag of a word that is 0. */
INLINE int address_is_possible(uint64_t pc)
{
    return pc - 65536 < (1ull << 47) - 65536;
}

/* The offset in a rule's word, as the rule has it: what memory holds there, without a shift on the way. The word may be
 * another when it is read as a whole. */
INLINE uint64_t rule_offset_at(const uint64_t *table, uint64_t index)
{
    uint64_t offset;
    __asm__ volatile("movzwl 6(%1,%2,8), %k0" : "=r"(offset) : "r"(table), "r"(index));
    return offset;
}

/* Computes the rule and keeps it, unless modules are changing or no module is there. */
uint64_t rule_miss(uint64_t pc, struct cfi_work *work);
/* Empties the table; unwind_epoch goes on. */
void rules_forget(void);

INLINE int rule_cached(uint64_t pc, uint64_t *rule)
{
    *rule = __atomic_load_n(rule_word(pc), __ATOMIC_RELAXED);
    return likely(((*rule ^ pc >> (RULE_INDEX_BITS - 11)) & RULE_UNUSED) == 0);
}

INLINE uint64_t rule_of(uint64_t pc, struct cfi_work *work)
{
    uint64_t rule;
    return rule_cached(pc, &rule) ? rule : rule_miss(pc, work);
}

/* --- one step --- */

INLINE uint64_t word_at(uint64_t address)
{
    return *(const uint64_t *)address;
}

/*
 * A RULE_RSP or RULE_RBP step; 0: the frame's end is not within (sp, high], or not a multiple of 8 away. One comparison
 * does: the distance in words, rotated so that an odd one becomes huge, less one. The words read are then on this stack
 * (cfi.h: at most 40 bytes below sp, where the frames of the hook that we run in are).
 */
INLINE int step_simple(struct unwind_state *s, uint64_t rule, uint64_t high)
{
    uint64_t cfa = (RULE_TYPE(rule) == RULE_RSP ? s->sp : s->bp) + RULE_OFFSET(rule);
    uint64_t bytes = cfa - s->sp;
    if (unlikely((bytes >> 3 | bytes << 61) - 1 >= (high - s->sp) >> 3))
        return 0;
    uint64_t pc = word_at(cfa - 8), saved = word_at(cfa - 1024 + 8 * RULE_WHERE(rule));
    s->bp = RULE_SAVES_RBP(rule) ? saved : s->bp;
    s->sp = cfa;
    s->pc = pc;
    return 1;
}

/*
 * The same for a frame whose rule is in the table, as quick as it can be: from one return address to the next there are
 * an `and`, the load of the offset and the load of the address, and nothing else; all checks run beside that. 0: some
 * other way.
 */
INLINE int step_quick(struct unwind_state *s, uint64_t high)
{
    uint64_t index = s->pc & ((1u << RULE_INDEX_BITS) - 1);
    uint64_t offset = rule_offset_at(rules, index), rule = __atomic_load_n(&rules[index], __ATOMIC_RELAXED);
    uint64_t base = s->sp, pc;
    /* all the bits of the address above the index: one that is not possible has no rule */
    if (unlikely(rule << 16 >> 27 != s->pc >> RULE_INDEX_BITS || rule >> 48 != offset))
        return 0;
    if (likely(RULE_TYPE(rule) == RULE_RSP)) {
        if (unlikely(base + offset * 8 > high))
            return 0;
    } else {
        if (unlikely(RULE_TYPE(rule) != RULE_RBP))
            return 0;
        base = s->bp;
        uint64_t bytes = base + offset * 8 - s->sp;
        if (unlikely((bytes >> 3 | bytes << 61) - 1 >= (high - s->sp) >> 3))
            return 0;
    }
    __asm__ volatile("movq -8(%1,%2,8), %0" : "=r"(pc) : "r"(base), "r"(offset));
    s->sp = base + offset * 8;
    uint64_t saved = word_at(s->sp - 1024 + 8 * RULE_WHERE(rule));
    __asm__("testb $8, %b2\n\tcmovneq %1, %0" : "+r"(s->bp) : "r"(saved), "q"(rule) : "cc");
    s->pc = pc;
    return 1;
}

INLINE int step_realigned(struct unwind_state *s, uint64_t rule, uint64_t high)
{
    uint64_t at = s->bp - RULE_OFFSET(rule);
    if (at % 8 != 0 || at < s->sp || s->bp > high - 8 || at > s->bp)
        return 0;
    uint64_t cfa = word_at(at);
    if (cfa % 8 != 0 || cfa <= s->sp || cfa > high)
        return 0;
    s->pc = word_at(cfa - 8);
    s->bp = word_at(s->bp);
    s->sp = cfa;
    return 1;
}

#pragma GCC visibility pop

#endif
