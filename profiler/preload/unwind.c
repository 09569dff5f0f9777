#include "unwind.h"

#include "careful.h"
#include "modules.h"
#include "rules.h"
#include "sys.h"

#include <dlfcn.h>
#include <signal.h>

/* --- whole stacks --- */

struct sum {
    uint64_t hash;
    uint32_t depth, flags;
};

/* Where a frame has no unwind information: nothing can be outside it when the stack begins right there, as under
 * ld.so's first instructions, which have none. */
INLINE uint32_t unknown_from(const struct unwind_thread *t, uint64_t sp)
{
    return t->top - sp <= 64 ? 0 : WIRE_STACK_UNKNOWN;
}

/* Goes on at s, whose frame is not among the sum->depth ones in walk->pcs. */
static NOINLINE void walk_careful(struct unwind_thread *t, struct unwind_walk *walk, struct unwind_state s,
                                  struct sum *sum)
{
    struct careful *c = &walk->careful;
    careful_reset(c, t);
    enum careful_result result = careful_begin(c, s.sp);
    while (result == STEP_DONE && address_is_possible(s.pc)) {
        if (sum->depth == t->depth_max) {
            sum->flags |= WIRE_STACK_CUT;
            return;
        }
        walk->pcs[sum->depth++] = s.pc;
        sum->hash = sum->hash * UNWIND_HASH_K + s.pc;
        result = careful_step(c, &s);
    }
    if (result == STEP_LOST || (result == STEP_DONE && s.pc != 0))
        sum->flags |= unknown_from(t, s.sp);
}

/* Without memory. Returns whether the stack is one that could be remembered. */
INLINE int walk_plain(struct unwind_thread *t, struct unwind_walk *walk, struct unwind_state s, struct sum *sum)
{
    uint64_t hash = 0, high = t->high;
    uint32_t depth = 0, most = t->depth_max;
    *sum = (struct sum){0, 0, 0};
    if (unlikely(!in_own_stack(t, s.sp))) {
        walk_careful(t, walk, s, sum);
        return 0;
    }
    for (;;) {
        uint64_t pc = s.pc;
        while (likely(depth < most && step_quick(&s, high))) {
            walk->pcs[depth++] = pc;
            hash = hash * UNWIND_HASH_K + pc;
            pc = s.pc;
        }
        if (unlikely(!address_is_possible(pc) || depth == most)) {
            sum->flags = pc == 0 ? 0 : address_is_possible(pc) ? WIRE_STACK_CUT : WIRE_STACK_UNKNOWN;
            break;
        }
        uint64_t rule = rule_of(pc, &walk->careful.work);
        unsigned type = RULE_TYPE(rule);
        int stepped = likely(type - 1 < 2)     ? step_simple(&s, rule, high)
                      : type == RULE_REALIGNED ? step_realigned(&s, rule, high)
                                               : 0;
        if (unlikely(!stepped && type != RULE_END && type != RULE_UNKNOWN)) {
            *sum = (struct sum){hash, depth, 0};
            walk_careful(t, walk, s, sum);
            return 0;
        }
        walk->pcs[depth++] = pc;
        hash = hash * UNWIND_HASH_K + pc;
        if (unlikely(!stepped)) {
            sum->flags = type == RULE_UNKNOWN ? unknown_from(t, s.sp) : 0;
            break;
        }
    }
    sum->hash = hash;
    sum->depth = depth;
    return !(sum->flags & WIRE_STACK_CUT);
}

static void give(const struct sum *sum, struct unwind_stack *out)
{
    /* Read after the walk: it may itself have found that modules changed. */
    uint32_t epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_RELAXED);
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

uint64_t unwind_powers[UNWIND_FRAMES]; /* every thread that fills it writes the same */

static void powers_fill(void)
{
    uint64_t power = 1;
    if (__atomic_load_n(&unwind_powers[UNWIND_FRAMES - 1], __ATOMIC_ACQUIRE))
        return;
    for (unsigned i = 0; i < UNWIND_FRAMES; i++, power *= UNWIND_HASH_K)
        __atomic_store_n(&unwind_powers[i], power, __ATOMIC_RELEASE);
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
    /* A signal handler may leave this by longjmp: what is remembered must be sound at every instruction. */
    t->frame_count = standing;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
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
        hash += step->at.pc * unwind_powers[at];
        *f =
            (struct unwind_frame){step->at.sp, step->at.pc, step->at.bp, hash, 0, (uint16_t)checks, (uint16_t)needs_bp};
        to = step->at;
        caller = &to;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
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
            t->frame_count = 0;
            t->flags = s.pc ? WIRE_STACK_UNKNOWN : 0;
            remember(t, 0, count, &s);
            break;
        }
        if (unlikely(count == most))
            return 0;
        uint64_t rule = rule_of(s.pc, &t->walk.careful.work);
        unsigned type = RULE_TYPE(rule);
        t->steps[count++] = (struct unwind_step){s, rule};
        int stepped = likely(type - 1 < 2)     ? step_simple(&s, rule, high)
                      : type == RULE_REALIGNED ? step_realigned(&s, rule, high)
                                               : 0;
        if (unlikely(!stepped)) {
            if (type != RULE_END && type != RULE_UNKNOWN)
                return 0;
            t->frame_count = 0;
            t->flags = type == RULE_UNKNOWN ? unknown_from(t, s.sp) : 0;
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

uint32_t unwind_unmaps;

static void forget_unmapped(struct unwind_thread *t)
{
    uint32_t unmaps = __atomic_load_n(&unwind_unmaps, __ATOMIC_ACQUIRE);
    if (likely(t->unmaps == unmaps))
        return;
    t->unmaps = unmaps;
    t->low = t->high = t->gap = 0;
    t->frame_count = 0;
}

static int again_with_memory(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    uint32_t count, epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_RELAXED);
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
    give(&sum, out);
    out->id = &f->id;
    return 1;
}

/* On a stack that is not the thread's own, which may be a small one: what is remembered stays for when it comes back.
 */
static NOINLINE void unwind_foreign(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    struct sum sum = {0, 0, 0};
    walk_careful(t, &t->walk, s, &sum);
    t->walk_depth = sum.depth;
    t->last_remembered = 0;
    give(&sum, out);
}

static NOINLINE void nested_foreign(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    struct sum sum = {0, 0, 0};
    walk_careful(t, &t->nested, s, &sum);
    t->nested_depth = sum.depth;
    give(&sum, out);
}

static NOINLINE void nested_own(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    struct sum sum;
    walk_plain(t, &t->nested, s, &sum);
    t->nested_depth = sum.depth;
    give(&sum, out);
}

static NOINLINE void unwind_own(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    struct sum sum;
    if (t->remembers && again_with_memory(t, s, out))
        return;
    int simple = walk_plain(t, &t->walk, s, &sum);
    t->walk_depth = sum.depth;
    t->last_remembered = 0;
    give(&sum, out);
    if (t->remembers)
        return;
    t->same_count = simple && t->last_hash == sum.hash ? t->same_count + 1 : 0;
    t->last_hash = sum.hash;
    if (unlikely(--t->trial_in == 0 || t->same_count >= SAME_ENOUGH))
        begin_memory(t);
}

void unwind_again(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    forget_unmapped(t);
    if (unlikely(!in_own_stack(t, s.sp) && !own_stack_extend(t, s.sp)))
        unwind_foreign(t, s, out);
    else
        unwind_own(t, s, out);
}

/* --- interface --- */

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

size_t unwind_thread_bytes(void)
{
    return sizeof(struct unwind_thread);
}

void unwind_thread_init(struct unwind_thread *t, uint64_t stack_top, unsigned depth_max)
{
    t->top = stack_top & ~7ull;
    t->unmaps = __atomic_load_n(&unwind_unmaps, __ATOMIC_ACQUIRE);
    t->low = t->high = t->gap = 0;
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

void unwind_pointers(struct unwind_thread *t, struct unwind_state s, uint64_t *sps)
{
    if (t->last_remembered) {
        for (uint32_t i = 0; i < t->frame_count; i++)
            sps[i] = t->frames[t->frame_count - 1 - i].sp;
        return;
    }
    struct careful *c = &t->walk.careful;
    careful_reset(c, t);
    enum careful_result result = careful_begin(c, s.sp);
    for (uint32_t i = 0; i < t->walk_depth; i++) {
        sps[i] = result == STEP_DONE ? s.sp : UINT64_MAX;
        if (result == STEP_DONE)
            result = careful_step(c, &s);
    }
}

void unwind_nested(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    /* its frames are left to the unwind below this one */
    if (t->unmaps != __atomic_load_n(&unwind_unmaps, __ATOMIC_ACQUIRE))
        t->low = t->high = 0;
    if (in_own_stack(t, s.sp))
        nested_own(t, s, out);
    else
        nested_foreign(t, s, out);
}

void unwind_nested_addresses(const struct unwind_thread *t, uint64_t *pcs)
{
    for (uint32_t i = 0; i < t->nested_depth; i++)
        pcs[i] = t->nested.pcs[i];
}

static int on_signal_stack(void)
{
    stack_t now;
    return sys_call(SYS_sigaltstack, NULL, &now, 0) != 0 || (now.ss_flags & SS_ONSTACK);
}

static enum unwind_above look_above(struct careful *c, struct unwind_state s, uint64_t hook_sp)
{
    careful_reset(c, NULL);
    enum careful_result result = careful_begin(c, s.sp);
    uint64_t start, end;
    int hook = !module_range((uint64_t)(uintptr_t)&unwind_above, &start, &end);
    for (unsigned n = 0; result == STEP_DONE && !hook && n < UNWIND_FRAMES && address_is_possible(s.pc); n++) {
        hook = s.pc >= start && s.pc < end;
        if (!hook)
            result = careful_step(c, &s);
    }
    /* The end of another stack says nothing about the hook's. */
    if (!hook && s.sp >= hook_sp && (result == STEP_END || s.pc == 0 || c->signals || !on_signal_stack()))
        return UNWIND_NO_HOOK;
    return c->signals ? UNWIND_SIGNAL : UNWIND_HOOK;
}

enum unwind_above unwind_above(struct unwind_thread *t, struct unwind_state s, uint64_t hook_sp)
{
    /* A signal handler may interrupt this and come here again. */
    struct careful *c = t && !t->above_used ? &t->above : sys_map(sizeof *c);
    if (!c)
        return UNWIND_HOOK;
    if (c == &t->above)
        t->above_used = 1;
    enum unwind_above above = look_above(c, s, hook_sp);
    if (c != &t->above)
        sys_unmap(c, sizeof *c);
    else
        t->above_used = 0;
    if (above == UNWIND_NO_HOOK && t)
        t->above_used = 0; /* whoever had set it was left by longjmp */
    return above;
}
