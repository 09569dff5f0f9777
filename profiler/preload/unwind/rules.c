#include "rules.h"

#include "modules.h"

struct wire_counters *unwind_counters;
uint32_t unwind_epoch;
uint64_t rules[1u << RULE_INDEX_BITS] __attribute__((aligned(4096)));

/* mov $15, %rax; syscall: the return from a signal handler, where its CFI is missing (Go, hand-made restorers). */
static int is_signal_return(uint64_t pc)
{
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
    const uint8_t *at = (const uint8_t *)pc;
    if (!memory_readable(pc) || !memory_readable(pc + 1))
        return 0;
    for (unsigned i = 0; i < sizeof code; i++)
        if (at[i] != code[i])
            return 0;
    return 1;
}

static uint64_t rule_compute(const struct cfi_image *image, uint64_t pc, struct cfi_work *work)
{
    if (image->header && cfi_find_row(image, pc - 1, work) == 0)
        return cfi_rule(image, &work->row, pc - 1);
    if (is_signal_return(pc))
        return RULE(RULE_SIGNAL, 0, 0);
    if (image->header && cfi_find_row(image, pc, work) == 0)
        return RULE(RULE_END, 0, 0); /* no call is before it: whoever made the stack (makecontext) put it there */
    return RULE(RULE_UNKNOWN, 0, 0);
}

uint64_t rule_miss(uint64_t pc, struct cfi_work *work)
{
    uint32_t epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_ACQUIRE);
    struct cfi_image image;
    COUNT(rule_miss);
    enum module_found found = module_find(pc - 1, &image);
    if (found == MODULE_NONE)
        return RULE(RULE_UNKNOWN, 0, 0); /* not kept: a module may be loaded there */
    uint64_t rule = rule_compute(&image, pc, work);
    if (found != MODULE_KNOWN)
        return rule;
    uint64_t *word = rule_word(pc), value = rule | rule_tag(pc);
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    /* Modules changed meanwhile: the rule may be of one that went, and the table may have been emptied before the
     * store. */
    if (__atomic_load_n(&unwind_epoch, __ATOMIC_SEQ_CST) != epoch)
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    return rule;
}

void rules_forget(void)
{
    __atomic_fetch_add(&unwind_epoch, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < 1u << RULE_INDEX_BITS; i++)
        if (__atomic_load_n(&rules[i], __ATOMIC_RELAXED))
            __atomic_store_n(&rules[i], 0, __ATOMIC_RELAXED);
}

#define AHEAD (sizeof(struct unwind_ahead) / sizeof(uint16_t))

void unwind_keep_ahead(const struct unwind_thread *t, struct unwind_ahead *ahead)
{
    uint32_t depth = t->walk_depth & ~WALK_ALONE;
    for (uint32_t i = 0; i < AHEAD; i++)
        ahead->rules[i] = i < depth ? (uint16_t)(rule_word(t->walk.pcs[i]) - rules) : 0;
}

void unwind_ask_ahead(const struct unwind_ahead *ahead)
{
    for (uint32_t i = 0; i < AHEAD; i++)
        __builtin_prefetch(&rules[ahead->rules[i]]);
}
