#include "careful.h"

#include "../sys.h"
#include "modules.h"

/* How far below the known part of a stack we look for pages that belong to it. */
#define OWN_STACK_REACH (64ull << 20)
/* How far above the first page a foreign stack may reach. */
#define FOREIGN_REACH (16ull << 20)

/* A page that was found missing may have come since, unseen; it is asked for again after so many times. */
#define GAP_BELIEVED 4096

/* Lets the known part of the thread's own stack reach down to sp: readable without a gap. What is readable above a gap
 * is kept, and where the gap is: stacks below it (a coroutine's) would else cost a system call a page each time. */
int own_stack_extend(struct unwind_thread *t, uint64_t sp)
{
    uint64_t page = sp & ~4095ull, low = t->high ? t->low : t->top;
    if (sp >= t->top || sp % 8 != 0 || low - page > OWN_STACK_REACH || (page < t->gap && ++t->gap_count < GAP_BELIEVED))
        return 0;
    t->gap = 0;
    if (!t->high && (low & 4095)) { /* the page of the top itself */
        low &= ~4095ull;
        if (!memory_readable(low))
            return 0;
    }
    while (low > page && memory_readable(low - 8))
        low -= 4096;
    if (low < t->top) {
        t->low = low;
        t->high = t->top;
    }
    if (low > page) {
        t->gap = low;
        t->gap_count = 0;
    }
    return low <= page;
}

static int on_own_stack(const struct careful *c, uint64_t sp)
{
    return c->thread && in_own_stack(c->thread, sp);
}

static int careful_enter(struct careful *c, uint64_t sp)
{
    struct unwind_thread *t = c->thread;
    if (sp % 8 != 0)
        return 0;
    if (t && (in_own_stack(t, sp) || own_stack_extend(t, sp))) {
        c->low = t->low;
        c->high = t->high;
        return 1;
    }
    /* What lies between this function's frame and an sp little above it is frames of this very stack. */
    int live = sp - 8 - (uint64_t)__builtin_frame_address(0) < 4096;
    if (!live && !memory_readable(sp - 8))
        return 0;
    c->low = (sp - 8) & ~4095ull;
    c->high = c->low + 4096;
    return 1;
}

/* Lets the window of a foreign stack reach up to `to`. */
static int careful_reach(struct careful *c, uint64_t sp, uint64_t to)
{
    if (to <= sp || to % 8 != 0 || to - sp > FOREIGN_REACH || on_own_stack(c, sp))
        return 0;
    while (c->high < to) {
        if (!memory_readable(c->high))
            return 0;
        c->high += 4096;
    }
    return 1;
}

static int careful_read(void *context, uint64_t address, uint64_t *value)
{
    const struct careful *c = context;
    uint64_t last = address + 7;
    int known = last > address &&
                ((address >= c->low && last < c->high) || (on_own_stack(c, address) && on_own_stack(c, last)));
    if (!known && (last < address || !memory_readable(address)))
        return -1;
    *value = word_at(address);
    return 0;
}

enum careful_result careful_begin(struct careful *c, uint64_t sp)
{
    return careful_enter(c, sp) ? STEP_DONE : STEP_LOST;
}

static NOINLINE int careful_simple(struct careful *c, struct unwind_state *s, uint64_t rule)
{
    struct unwind_state old = *s;
    if (step_simple(s, rule, c->high))
        return 1;
    uint64_t cfa = (RULE_TYPE(rule) == RULE_RSP ? s->sp : s->bp) + RULE_OFFSET(rule);
    if (cfa > s->sp && careful_reach(c, s->sp, cfa))
        return step_simple(s, rule, c->high);
    /* A function that runs on another stack and keeps its way back in rbp. */
    if (RULE_TYPE(rule) == RULE_RBP && on_own_stack(c, s->bp) && !on_own_stack(c, s->sp) && careful_enter(c, s->bp)) {
        s->sp = s->bp;
        if (step_simple(s, rule, c->high))
            return 1;
        *s = old;
    }
    return 0;
}

static NOINLINE int careful_realigned(struct careful *c, struct unwind_state *s, uint64_t rule)
{
    if (step_realigned(s, rule, c->high))
        return 1;
    uint64_t cfa;
    if (s->bp < s->sp || !careful_reach(c, s->sp, s->bp + 8) || careful_read(c, s->bp - RULE_OFFSET(rule), &cfa) < 0 ||
        !careful_reach(c, s->sp, cfa))
        return 0;
    return step_realigned(s, rule, c->high);
}

static NOINLINE int careful_signal(struct careful *c, struct unwind_state *s)
{
    struct unwind_state to;
    if (careful_read(c, s->sp + SIGNAL_RIP, &to.pc) < 0 || careful_read(c, s->sp + SIGNAL_RSP, &to.sp) < 0 ||
        careful_read(c, s->sp + SIGNAL_RBP, &to.bp) < 0)
        return 0;
    to.pc++;
    c->signals++;
    if (to.sp <= s->sp || to.sp >= c->high)
        if (!careful_enter(c, to.sp))
            return 0;
    *s = to;
    return 1;
}

int careful_full_step(struct careful *c)
{
    struct cfi_registers *r = &c->registers;
    struct cfi_image image;
    uint64_t address = r->value[CFI_RA] - !c->interrupted;
    if (!address_is_possible(address) || module_find(address, &image) == MODULE_NONE || !image.header ||
        cfi_find_row(&image, address, &c->work) < 0)
        return -1;
    int result = cfi_step(&image, &c->work, r, careful_read, c);
    c->interrupted = c->work.row.is_signal;
    return result;
}

/*
 * A frame whose CFI is too rich for a rule. Rules follow three registers only, so all of them are fetched anew: from
 * this function outwards through our own frames, or from the last frame where they were known, until the frame is
 * reached.
 */
static NOINLINE int careful_rich(struct careful *c, struct unwind_state *s)
{
    struct cfi_registers *r = &c->registers;
    COUNT(stack_full_cfi);
    if (!r->known)
        careful_registers(c);
    for (unsigned n = 0; r->value[CFI_RSP] != s->sp || r->value[CFI_RA] + (uint64_t)c->interrupted != s->pc; n++)
        if (n > UNWIND_FRAMES + 64 || careful_full_step(c) != 0)
            return 0;
    int result = careful_full_step(c);
    c->signals += c->interrupted;
    if (result == 0 && (c->registers.known >> CFI_RBP & 1))
        s->bp = r->value[CFI_RBP];
    if (result != 0)
        return result > 0 ? -1 : 0;
    uint64_t sp = s->sp;
    s->sp = r->value[CFI_RSP];
    s->pc = r->value[CFI_RA] + (uint64_t)c->interrupted;
    if (s->sp > sp && (s->sp <= c->high || careful_reach(c, sp, s->sp)))
        return 1;
    if (s->sp >= c->low && s->sp <= sp && !c->interrupted)
        return 0;
    return careful_enter(c, s->sp);
}

enum careful_result careful_step(struct careful *c, struct unwind_state *s)
{
    uint64_t rule = rule_of(s->pc, &c->work);
    switch (RULE_TYPE(rule)) {
    case RULE_RSP:
    case RULE_RBP:
        return careful_simple(c, s, rule);
    case RULE_REALIGNED:
        return careful_realigned(c, s, rule);
    case RULE_SIGNAL:
        return careful_signal(c, s);
    case RULE_RICH:
        return careful_rich(c, s);
    case RULE_END:
        return STEP_END;
    default:
        return STEP_LOST;
    }
}
