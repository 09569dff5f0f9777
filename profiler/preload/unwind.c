#include "unwind.h"

#include "modules.h"
#include "sys.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define INLINE      static inline __attribute__((always_inline))
#define NOINLINE    __attribute__((noinline))

struct wire_counters *unwind_counters;
uint32_t unwind_epoch;

#define COUNT(name)                                                                                                    \
    do {                                                                                                               \
        if (unwind_counters)                                                                                           \
            __atomic_fetch_add(&unwind_counters->name, 1, __ATOMIC_RELAXED);                                           \
    } while (0)

/* --- rules: one word per return address --- */

/*
 * Direct-mapped by the low bits of the address and without locks: the high bits are the tag, in the part of the word
 * that a rule leaves free, so a word is never torn. From one return address to the next the way is: index, load the
 * word, add its offset, load; no hash, because that way is what an unwind costs.
 */
#define RULE_INDEX_BITS 15
static uint64_t rules[1u << RULE_INDEX_BITS] __attribute__((aligned(4096)));

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

/* Computes the rule and keeps it. */
static NOINLINE uint64_t rule_miss(uint64_t pc, struct cfi_work *work)
{
    uint32_t epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_ACQUIRE);
    uint64_t rule = RULE(RULE_UNKNOWN, 0, 0);
    struct cfi_image image;
    COUNT(rule_miss);
    enum module_found found = module_find(pc - 1, &image);
    if (found == MODULE_NONE)
        return rule; /* not kept: a module may be loaded there */
    if (image.header && cfi_find_row(&image, pc - 1, work) == 0)
        rule = cfi_rule(&image, &work->row, pc - 1);
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

static void rules_forget(void)
{
    __atomic_fetch_add(&unwind_epoch, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < 1u << RULE_INDEX_BITS; i++)
        if (__atomic_load_n(&rules[i], __ATOMIC_RELAXED))
            __atomic_store_n(&rules[i], 0, __ATOMIC_RELAXED);
}

void unwind_modules_changed(void)
{
    rules_forget();
}

void unwind_after_dlclose(void)
{
    modules_sweep();
}

void unwind_after_fork(void)
{
    modules_forget();
    rules_forget();
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
    uint64_t bytes = cfa - s->sp, slot = RULE_SLOT(rule);
    if (unlikely((bytes >> 3 | bytes << 61) - 1 >= (high - s->sp) >> 3))
        return 0;
    uint64_t pc = word_at(cfa - 8), saved = word_at(cfa - 8 * (slot ? slot : 1));
    s->bp = slot ? saved : s->bp;
    s->sp = cfa;
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

/* --- the careful walk: other stacks, signal frames, frames without a rule --- */

struct careful {
    struct unwind_thread *thread;
    struct cfi_work *work;          /* NULL: mapped when needed */
    uint64_t low, high;             /* readable part of the stack that the walk is on */
    struct cfi_registers registers; /* of a frame passed, or none */
    int interrupted;                /* that frame was interrupted by a signal: its pc is exact */
    int signals;                    /* signal frames passed */
};

static int in_own_stack(const struct unwind_thread *t, uint64_t sp)
{
    return t && sp - t->low < t->high - t->low;
}

/* How far below the known part of a stack we look for pages that belong to it. */
#define OWN_STACK_REACH (64ull << 20)
/* How far above the first page a foreign stack may reach. */
#define FOREIGN_REACH (16ull << 20)

/* Lets the known part of the thread's own stack reach down to sp: readable without a gap. */
static NOINLINE int own_stack_extend(struct unwind_thread *t, uint64_t sp)
{
    uint64_t page = sp & ~4095ull, low = t->high ? t->low : t->top;
    if (sp >= t->top || sp % 8 != 0 || low - page > OWN_STACK_REACH)
        return 0;
    if (!t->high && (low & 4095)) { /* the page of the top itself */
        low &= ~4095ull;
        if (!memory_readable(low))
            return 0;
    }
    while (low > page) {
        if (!memory_readable(low - 8))
            return 0;
        low -= 4096;
    }
    t->low = low;
    t->high = t->top;
    return 1;
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
    if (!memory_readable(sp))
        return 0;
    c->low = sp & ~4095ull;
    c->high = c->low + 4096;
    return 1;
}

/* Lets the window of a foreign stack reach up to `to`. */
static int careful_reach(struct careful *c, uint64_t sp, uint64_t to)
{
    if (to <= sp || to % 8 != 0 || to - sp > FOREIGN_REACH || in_own_stack(c->thread, sp))
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
    int known = last > address && ((address >= c->low && last < c->high) ||
                                   (in_own_stack(c->thread, address) && in_own_stack(c->thread, last)));
    if (!known && (last < address || !memory_readable(address)))
        return -1;
    *value = word_at(address);
    return 0;
}

static struct cfi_work *careful_work(struct careful *c)
{
    if (!c->work)
        c->work = sys_map(sizeof *c->work);
    return c->work;
}

static int careful_simple(struct careful *c, struct unwind_state *s, uint64_t rule)
{
    struct unwind_state old = *s;
    if (step_simple(s, rule, c->high))
        return 1;
    uint64_t cfa = (RULE_TYPE(rule) == RULE_RSP ? s->sp : s->bp) + RULE_OFFSET(rule);
    if (cfa > s->sp && careful_reach(c, s->sp, cfa))
        return step_simple(s, rule, c->high);
    /* A function that runs on another stack and keeps its way back in rbp. */
    if (RULE_TYPE(rule) == RULE_RBP && in_own_stack(c->thread, s->bp) && !in_own_stack(c->thread, s->sp) &&
        careful_enter(c, s->bp)) {
        s->sp = s->bp;
        if (step_simple(s, rule, c->high))
            return 1;
        *s = old;
    }
    return 0;
}

static int careful_realigned(struct careful *c, struct unwind_state *s, uint64_t rule)
{
    if (step_realigned(s, rule, c->high))
        return 1;
    uint64_t cfa;
    if (s->bp < s->sp || !careful_reach(c, s->sp, s->bp + 8) || careful_read(c, s->bp - RULE_OFFSET(rule), &cfa) < 0 ||
        !careful_reach(c, s->sp, cfa))
        return 0;
    return step_realigned(s, rule, c->high);
}

static int careful_signal(struct careful *c, struct unwind_state *s)
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

/* One frame further out by full evaluation of its CFI. */
static int full_step(struct careful *c)
{
    struct cfi_registers *r = &c->registers;
    struct cfi_image image;
    uint64_t address = r->value[CFI_RA] - !c->interrupted;
    if (!address_is_possible(address) || module_find(address, &image) == MODULE_NONE || !image.header ||
        cfi_find_row(&image, address, c->work) < 0)
        return -1;
    int result = cfi_step(&image, c->work, r, careful_read, c);
    c->interrupted = c->work->row.is_signal;
    return result;
}

/* The registers of this very place; those that calls may change are not known. */
static inline __attribute__((always_inline)) void registers_here(struct cfi_registers *r)
{
    __asm__ volatile("leaq 0f(%%rip), %%rax\n\t"
                     "movq %%rax, 128(%0)\n\t"
                     "0:\n\t"
                     "movq %%rbx, 24(%0)\n\t"
                     "movq %%rbp, 48(%0)\n\t"
                     "movq %%rsp, 56(%0)\n\t"
                     "movq %%r12, 96(%0)\n\t"
                     "movq %%r13, 104(%0)\n\t"
                     "movq %%r14, 112(%0)\n\t"
                     "movq %%r15, 120(%0)"
                     :
                     : "r"(r->value)
                     : "rax", "memory");
    r->known = 1u << 3 | 1u << CFI_RBP | 1u << CFI_RSP | 0xfu << 12 | 1u << CFI_RA;
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
    if (!careful_work(c))
        return 0;
    if (!r->known) {
        registers_here(r);
        c->interrupted = 1; /* its pc is exact */
    }
    for (unsigned n = 0; r->value[CFI_RSP] != s->sp || r->value[CFI_RA] + (uint64_t)c->interrupted != s->pc; n++)
        if (n > UNWIND_FRAMES + 64 || full_step(c) != 0)
            return 0;
    int result = full_step(c);
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

enum { STEP_END = -1, STEP_LOST = 0, STEP_DONE = 1 };

static int careful_step(struct careful *c, struct unwind_state *s)
{
    uint64_t rule;
    if (!rule_cached(s->pc, &rule)) {
        if (!careful_work(c))
            return STEP_LOST;
        rule = rule_miss(s->pc, c->work);
    }
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

/* --- whole stacks --- */

struct sum {
    uint64_t hash;
    uint32_t depth, flags;
};

/* Goes on at s, whose frame is not among the sum->depth ones in walk->pcs. */
static NOINLINE void walk_careful(struct unwind_thread *t, struct unwind_walk *walk, struct unwind_state s,
                                  struct sum *sum)
{
    struct careful c = {.thread = t, .work = &walk->work};
    int result = careful_enter(&c, s.sp) ? STEP_DONE : STEP_LOST;
    while (result == STEP_DONE && address_is_possible(s.pc)) {
        if (sum->depth == t->depth_max) {
            sum->flags |= WIRE_STACK_CUT;
            return;
        }
        walk->pcs[sum->depth++] = s.pc;
        sum->hash = sum->hash * UNWIND_HASH_K + s.pc;
        result = careful_step(&c, &s);
    }
    if (result == STEP_LOST || (result == STEP_DONE && s.pc != 0))
        sum->flags |= WIRE_STACK_UNKNOWN;
}

/* Without memory. */
INLINE void walk_plain(struct unwind_thread *t, struct unwind_walk *walk, struct unwind_state s, struct sum *sum)
{
    uint64_t hash = 0, high = t->high;
    uint32_t depth = 0, most = t->depth_max;
    *sum = (struct sum){0, 0, 0};
    if (unlikely(!in_own_stack(t, s.sp))) {
        walk_careful(t, walk, s, sum);
        return;
    }
    for (;;) {
        uint64_t pc = s.pc;
        if (unlikely(!address_is_possible(pc) || depth == most)) {
            sum->flags = pc == 0 ? 0 : address_is_possible(pc) ? WIRE_STACK_CUT : WIRE_STACK_UNKNOWN;
            break;
        }
        uint64_t rule = rule_of(pc, &walk->work);
        unsigned type = RULE_TYPE(rule);
        int stepped = likely(type - 1 < 2)     ? step_simple(&s, rule, high)
                      : type == RULE_REALIGNED ? step_realigned(&s, rule, high)
                                               : 0;
        if (unlikely(!stepped && type != RULE_END && type != RULE_UNKNOWN)) {
            *sum = (struct sum){hash, depth, 0};
            walk_careful(t, walk, s, sum);
            return;
        }
        walk->pcs[depth++] = pc;
        hash = hash * UNWIND_HASH_K + pc;
        if (unlikely(!stepped)) {
            sum->flags = type == RULE_UNKNOWN ? WIRE_STACK_UNKNOWN : 0;
            break;
        }
    }
    sum->hash = hash;
    sum->depth = depth;
}

static void give(const struct sum *sum, uint32_t epoch, struct unwind_stack *out)
{
    if (unlikely(sum->flags)) {
        if (sum->flags & WIRE_STACK_CUT)
            COUNT(stack_cut);
        if (sum->flags & WIRE_STACK_UNKNOWN)
            COUNT(stack_unknown);
    }
    out->hash = unwind_hash_finish(sum->hash, epoch, sum->flags);
    out->depth = sum->depth;
    out->flags = sum->flags;
    out->id = NULL;
}

/* --- the remembered stack --- */

static uint64_t powers[UNWIND_FRAMES]; /* of UNWIND_HASH_K; every thread that fills it writes the same */

static void powers_fill(void)
{
    uint64_t power = 1;
    if (__atomic_load_n(&powers[UNWIND_FRAMES - 1], __ATOMIC_ACQUIRE))
        return;
    for (unsigned i = 0; i < UNWIND_FRAMES; i++, power *= UNWIND_HASH_K)
        __atomic_store_n(&powers[i], power, __ATOMIC_RELEASE);
}

/* How many outer frames stand as they were: every word that led outwards from them is unchanged. */
INLINE uint32_t frames_standing(const struct unwind_thread *t, uint64_t sp)
{
    uint32_t frame = 0, check = 0;
    while (frame < t->frame_count) {
        const struct unwind_frame *f = &t->frames[frame];
        for (; check < f->checks; check++)
            if (t->checks[check].address < sp || word_at(t->checks[check].address) != t->checks[check].value)
                return frame;
        frame++;
    }
    return frame;
}

/* What made the way from frame f, by `rule`, to its caller at `to` (the frame outside f; its pc may be no frame's).
 * Gives the number of checks then. */
INLINE uint16_t add_checks(struct unwind_thread *t, uint32_t count, const struct unwind_step *from,
                           const struct unwind_state *to, int to_needs_bp)
{
    uint64_t slot = RULE_SLOT(from->rule);
    unsigned type = RULE_TYPE(from->rule);
    t->checks[count++] = (struct unwind_check){to->sp - 8, to->pc};
    if (type == RULE_REALIGNED) {
        t->checks[count++] = (struct unwind_check){from->at.bp - RULE_OFFSET(from->rule), to->sp};
        if (to_needs_bp)
            t->checks[count++] = (struct unwind_check){from->at.bp, to->bp};
    } else if (slot && to_needs_bp) {
        t->checks[count++] = (struct unwind_check){to->sp - 8 * slot, to->bp};
    }
    return (uint16_t)count;
}

/* Puts the `count` new frames of t->steps inside the outer ones that stand. `end` is where the outermost step led to,
 * or NULL where its rule ends the stack. */
static void remember(struct unwind_thread *t, uint32_t standing, uint32_t count, const struct unwind_state *end)
{
    const struct unwind_frame *outer = standing ? &t->frames[standing - 1] : NULL;
    uint64_t hash = outer ? outer->hash : 0;
    uint32_t checks = outer ? outer->checks : 0, needs_bp = outer ? outer->needs_bp : 0;
    struct unwind_state first, to;
    if (outer)
        first = (struct unwind_state){outer->pc, outer->sp, outer->bp};
    const struct unwind_state *caller = outer ? &first : end;
    for (uint32_t i = count, at = standing; i-- > 0; at++) {
        const struct unwind_step *step = &t->steps[i];
        struct unwind_frame *f = &t->frames[at];
        unsigned type = RULE_TYPE(step->rule);
        if (caller)
            checks = add_checks(t, checks, step, caller, (int)needs_bp);
        if (type - 1 < 3)
            needs_bp = type != RULE_RSP || (!RULE_SLOT(step->rule) && needs_bp);
        hash += step->at.pc * powers[at];
        *f =
            (struct unwind_frame){step->at.sp, step->at.pc, step->at.bp, hash, 0, (uint16_t)checks, (uint16_t)needs_bp};
        to = step->at;
        caller = &to;
    }
    t->frame_count = standing + count;
}

/* Walks until a frame that stands; 0: the stack is not one that can be remembered. */
INLINE int walk_remembered(struct unwind_thread *t, struct unwind_state s, uint32_t *new_count)
{
    uint64_t high = t->high;
    uint32_t count = 0, standing = frames_standing(t, s.sp), most = t->depth_max;
    if (unlikely(!in_own_stack(t, s.sp)))
        return 0;
    for (;;) {
        while (standing && t->frames[standing - 1].sp < s.sp)
            standing--;
        if (standing) {
            const struct unwind_frame *f = &t->frames[standing - 1];
            if (f->sp == s.sp && f->pc == s.pc && (f->bp == s.bp || !f->needs_bp)) {
                remember(t, standing, count, NULL);
                break;
            }
        }
        if (unlikely(!address_is_possible(s.pc))) {
            t->flags = s.pc ? WIRE_STACK_UNKNOWN : 0;
            remember(t, 0, count, &s);
            break;
        }
        if (unlikely(count == most))
            return 0;
        uint64_t rule = rule_of(s.pc, &t->walk.work);
        unsigned type = RULE_TYPE(rule);
        t->steps[count++] = (struct unwind_step){s, rule};
        int stepped = likely(type - 1 < 2)     ? step_simple(&s, rule, high)
                      : type == RULE_REALIGNED ? step_realigned(&s, rule, high)
                                               : 0;
        if (unlikely(!stepped)) {
            if (type != RULE_END && type != RULE_UNKNOWN)
                return 0;
            t->flags = type == RULE_UNKNOWN ? WIRE_STACK_UNKNOWN : 0;
            remember(t, 0, count, NULL);
            break;
        }
    }
    *new_count = count;
    return t->frame_count != 0 && t->frame_count <= most;
}

/*
 * Memory pays where stacks share their outer frames with the one before. Measured: a frame that stands saves about 3 ns
 * of the 4 that a step costs; a new one costs 6 more to be remembered. `credit` adds up, in ns, what was won and lost;
 * where it runs out, the thread goes on without, and tries again after a pause that grows while trials fail. A stack
 * that comes back whole several times ends the pause.
 */
enum {
    WON_STANDING = 3,
    LOST_NEW = 6,
    LOST_LOOK = 5,
    CREDIT_MOST = 4000,
    CREDIT_TRIAL = 600,
    PAUSE_FIRST = 256,
    PAUSE_MOST = 8192,
    SAME_ENOUGH = 8,
};

static void begin_memory(struct unwind_thread *t)
{
    t->remembers = 1;
    t->frame_count = 0;
    t->credit = CREDIT_TRIAL;
    t->whole_count = 0;
}

static void account_memory(struct unwind_thread *t, uint32_t standing, uint32_t new_count)
{
    uint32_t whole = t->whole_count < 256 ? t->whole_count : 256;
    int32_t won = (int32_t)(WON_STANDING * (whole * t->frame_count + standing));
    int32_t credit = t->credit + won - (int32_t)(LOST_NEW * new_count) - LOST_LOOK;
    t->whole_count = 0;
    t->credit = credit < CREDIT_MOST ? credit : CREDIT_MOST;
    if (credit >= CREDIT_MOST)
        t->trial_pause = PAUSE_FIRST;
    if (credit >= 0)
        return;
    t->remembers = 0;
    t->trial_in = t->trial_pause;
    t->trial_pause = t->trial_pause * 2 > PAUSE_MOST ? PAUSE_MOST : t->trial_pause * 2;
    t->same_count = 0;
}

static int again_with_memory(struct unwind_thread *t, struct unwind_state s, uint32_t epoch, struct unwind_stack *out)
{
    uint32_t count;
    if (unlikely(t->epoch != epoch)) {
        t->frame_count = 0;
        t->epoch = epoch;
    }
    if (unlikely(!walk_remembered(t, s, &count))) {
        t->frame_count = 0;
        account_memory(t, 0, 16);
        return 0;
    }
    account_memory(t, t->frame_count - count, count);
    t->last_remembered = 1;
    struct unwind_frame *f = &t->frames[t->frame_count - 1];
    struct sum sum = {f->hash, t->frame_count, t->flags};
    give(&sum, epoch, out);
    out->id = &f->id;
    return 1;
}

void unwind_again(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    uint32_t epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_RELAXED);
    struct sum sum;
    if (unlikely(!in_own_stack(t, s.sp)))
        own_stack_extend(t, s.sp);
    if (t->remembers && again_with_memory(t, s, epoch, out))
        return;
    walk_plain(t, &t->walk, s, &sum);
    t->walk_depth = sum.depth;
    t->last_remembered = 0;
    give(&sum, epoch, out);
    if (t->remembers)
        return;
    t->same_count = t->last_hash == sum.hash ? t->same_count + 1 : 0;
    t->last_hash = sum.hash;
    if (unlikely(--t->trial_in == 0 || t->same_count >= SAME_ENOUGH))
        begin_memory(t);
}

/* --- interface --- */

size_t unwind_thread_bytes(void)
{
    return sizeof(struct unwind_thread);
}

void unwind_thread_init(struct unwind_thread *t, uint64_t stack_top, unsigned depth_max)
{
    t->top = stack_top & ~7ull;
    t->low = t->high = 0;
    t->depth_max = depth_max < 1 || depth_max > UNWIND_FRAMES ? UNWIND_FRAMES : depth_max;
    t->last_remembered = 0;
    t->walk_depth = 0;
    t->trial_pause = PAUSE_FIRST;
    begin_memory(t);
    powers_fill();
    own_stack_extend(t, (uint64_t)__builtin_frame_address(0));
}

void unwind_addresses(const struct unwind_thread *t, uint64_t *pcs)
{
    if (t->last_remembered)
        for (uint32_t i = 0; i < t->frame_count; i++)
            pcs[i] = t->frames[t->frame_count - 1 - i].pc;
    else
        for (uint32_t i = 0; i < t->walk_depth; i++)
            pcs[i] = t->walk.pcs[i];
}

void unwind_nested(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    uint32_t epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_RELAXED);
    struct sum sum;
    walk_plain(t, &t->nested, s, &sum);
    t->nested_depth = sum.depth;
    give(&sum, epoch, out);
}

void unwind_nested_addresses(const struct unwind_thread *t, uint64_t *pcs)
{
    for (uint32_t i = 0; i < t->nested_depth; i++)
        pcs[i] = t->nested.pcs[i];
}

int unwind_signal_above(struct unwind_state s, uint64_t sp_limit)
{
    struct careful c = {.thread = NULL};
    int result = careful_enter(&c, s.sp);
    for (unsigned n = 0; result == STEP_DONE && !c.signals && n < UNWIND_FRAMES; n++) {
        if (s.sp == sp_limit || !address_is_possible(s.pc))
            break;
        result = careful_step(&c, &s);
    }
    if (c.work)
        sys_unmap(c.work, sizeof *c.work);
    return c.signals != 0;
}
