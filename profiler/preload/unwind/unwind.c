#include "unwind.h"

#include "../sys.h"
#include "careful.h"
#include "modules.h"
#include "rules.h"

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

/* The first of so many checks that does not hold; `count`: all do. */
INLINE uint32_t checks_first_fallen(const struct unwind_check *c, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && word_at(c[i].address) == c[i].value)
        i++;
    return i;
}

/* Whether the frame at s is one of the first *standing remembered ones and all outside it is what it was. *standing: up
 * to that frame then; else how many may still be met. The words looked at lie at and above s->sp. */
INLINE int meets_remembered(const struct unwind_thread *t, const struct unwind_state *s, uint32_t *standing)
{
    uint32_t n = *standing;
    while (n && t->frames[n - 1].sp < s->sp)
        n--;
    *standing = n;
    if (!n || t->frames[n - 1].sp != s->sp)
        return 0;
    const struct unwind_frame *f = &t->frames[n - 1];
    if (unlikely(f->pc != s->pc || (f->needs_bp && f->bp != s->bp))) {
        *standing = n - 1;
        return 0;
    }
    if (likely(unwind_checks_hold(t->checks, f->checks)))
        return 1;
    uint32_t fallen = checks_first_fallen(t->checks, f->checks);
    while (n && t->frames[n - 1].checks > fallen)
        n--;
    *standing = n;
    return 0;
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

/* Walks until a frame that stands, and remembers all; 0: the stack is not one that can be remembered. */
INLINE int walk_remembering(struct unwind_thread *t, struct unwind_state s)
{
    uint64_t high = t->high;
    uint32_t count = 0, standing = t->frame_count, most = t->depth_max;
    for (;;) {
        if (meets_remembered(t, &s, &standing)) {
            remember(t, standing, count, NULL);
            break;
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
    return t->frame_count != 0 && t->frame_count <= most;
}

/*
 * What is remembered are outer frames that stay. To remember a frame costs twice what a step costs, so a frame is worth
 * it when it is met again: where the outermost frame inside the remembered ones is the same `patience` times in
 * succession, the whole stack is remembered anew. If what was learned so is gone at the next unwind, patience doubles.
 */
static void learn_later(struct unwind_thread *t)
{
    t->same_count = 0;
    t->patience = t->patience * 2 > UNWIND_PATIENCE_MOST ? UNWIND_PATIENCE_MOST : t->patience * 2;
}

/* After an unwind that met a remembered frame, or the end of the stack, through new ones. */
INLINE void learn(struct unwind_thread *t, uint32_t standing, uint32_t count)
{
    uint64_t pc = t->walk.pcs[count - 1];
    if (unlikely(t->learned)) {
        if (standing < t->learned)
            learn_later(t);
        else
            t->patience = UNWIND_PATIENCE;
        t->learned = 0;
    }
    t->same_count = t->stays_at == standing && t->stays_pc == pc ? t->same_count + 1 : 0;
    t->stays_at = standing;
    t->stays_pc = pc;
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

/* The whole stack into memory. */
static NOINLINE int unwind_remembering(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    uint32_t before = t->frame_count;
    t->same_count = 0;
    if (unlikely(!walk_remembering(t, s))) {
        t->frame_count = 0;
        learn_later(t);
        return 0;
    }
    t->learned = before + 1;
    t->walk_depth = 0;
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
    t->walk_depth = sum.depth | WALK_ALONE;
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

/* Through new frames to the first remembered one that stands. */
static NOINLINE void unwind_own(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out)
{
    uint64_t hash = 0, high = t->high, *pcs = t->walk.pcs;
    uint32_t depth = 0, most = t->depth_max, epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_RELAXED);
    struct sum sum;
    if (unlikely(t->epoch != epoch)) {
        t->frame_count = 0;
        t->epoch = epoch;
    }
    if (unlikely(t->same_count >= t->patience) && unwind_remembering(t, s, out))
        return;
    uint32_t standing = t->frame_count;
    for (;;) {
        uint64_t next = standing ? t->frames[standing - 1].sp : UINT64_MAX, pc = s.pc;
        while (likely(s.sp < next && depth < most && step_quick(&s, high))) {
            pcs[depth++] = pc;
            hash = hash * UNWIND_HASH_K + pc;
            pc = s.pc;
        }
        if (s.sp >= next) {
            if (likely(meets_remembered(t, &s, &standing) && depth + standing <= most)) {
                t->frame_count = standing;
                t->walk_depth = depth;
                struct unwind_frame *f = &t->frames[standing - 1];
                sum = (struct sum){hash * unwind_powers[standing] + f->hash, depth + standing, t->flags};
                if (likely(depth))
                    learn(t, standing, depth);
                give(&sum, out);
                out->id = depth ? NULL : &f->id;
                return;
            }
            standing = depth + standing > most ? 0 : standing;
            continue;
        }
        if (unlikely(!address_is_possible(pc) || depth == most)) {
            sum.flags = pc == 0 ? 0 : address_is_possible(pc) ? WIRE_STACK_CUT : WIRE_STACK_UNKNOWN;
            break;
        }
        uint64_t rule = rule_of(pc, &t->walk.careful.work);
        unsigned type = RULE_TYPE(rule);
        int stepped = likely(type - 1 < 2)     ? step_simple(&s, rule, high)
                      : type == RULE_REALIGNED ? step_realigned(&s, rule, high)
                                               : 0;
        if (unlikely(!stepped && type != RULE_END && type != RULE_UNKNOWN)) {
            sum = (struct sum){hash, depth, 0};
            walk_careful(t, &t->walk, s, &sum);
            t->walk_depth = sum.depth | WALK_ALONE;
            give(&sum, out);
            return;
        }
        pcs[depth++] = pc;
        hash = hash * UNWIND_HASH_K + pc;
        if (unlikely(!stepped)) {
            sum.flags = type == RULE_UNKNOWN ? unknown_from(t, s.sp) : 0;
            break;
        }
    }
    sum.hash = hash;
    sum.depth = depth;
    t->frame_count = 0;
    t->walk_depth = depth;
    if (depth && !(sum.flags & WIRE_STACK_CUT))
        learn(t, 0, depth);
    give(&sum, out);
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

void unwind_restart(void)
{
    modules_restart();
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
    t->walk_depth = t->frame_count = t->learned = t->same_count = 0;
    t->patience = UNWIND_PATIENCE;
    powers_fill();
    own_stack_extend(t, (uint64_t)__builtin_frame_address(0));
}

void unwind_addresses(const struct unwind_thread *t, uint64_t *pcs)
{
    uint32_t depth = t->walk_depth & ~WALK_ALONE, standing = t->walk_depth & WALK_ALONE ? 0 : t->frame_count;
    for (uint32_t i = 0; i < depth; i++)
        pcs[i] = t->walk.pcs[i];
    for (uint32_t i = 0; i < standing; i++)
        pcs[depth + i] = t->frames[standing - 1 - i].pc;
}

/* Of the frames up to the first that no quick step leaves. Returns how many; *s is the next one then. */
static uint32_t pointers_quickly(struct unwind_state *s, uint32_t depth, uint64_t high, uint64_t *sps)
{
    for (uint32_t i = 0; i < depth; i++) {
        sps[i] = s->sp;
        if (i + 1 < depth && !step_quick(s, high))
            return i;
    }
    return depth;
}

void unwind_pointers(struct unwind_thread *t, struct unwind_state s, uint64_t *sps)
{
    uint32_t depth = t->walk_depth & ~WALK_ALONE, standing = t->walk_depth & WALK_ALONE ? 0 : t->frame_count;
    struct careful *c = &t->walk.careful;
    uint32_t i = t->walk_depth & WALK_ALONE ? 0 : pointers_quickly(&s, depth, t->high, sps);
    careful_reset(c, t);
    enum careful_result result = i < depth ? careful_begin(c, s.sp) : STEP_LOST;
    for (; i < depth; i++) {
        sps[i] = result == STEP_DONE ? s.sp : UINT64_MAX;
        if (result == STEP_DONE)
            result = careful_step(c, &s);
    }
    for (uint32_t i = 0; i < standing; i++)
        sps[depth + i] = t->frames[standing - 1 - i].sp;
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

int unwind_may_be_signal(struct unwind_state s)
{
    struct careful *c = sys_map(sizeof *c);
    if (!c)
        return 1;
    careful_reset(c, NULL);
    enum careful_result result = careful_begin(c, s.sp);
    for (unsigned n = 0; result == STEP_DONE && !c->signals && n < UNWIND_FRAMES && address_is_possible(s.pc); n++)
        result = careful_step(c, &s);
    int may_be = c->signals || !(result == STEP_END || s.pc == 0);
    sys_unmap(c, sizeof *c);
    return may_be;
}
