/*
 * unwind.h: the stack of the calling thread, from .eh_frame, as return addresses and a hash. Takes no lock, allocates
 * nothing, reads no memory that it does not know to be mapped.
 *
 * Addresses are return addresses as they are on the stack, innermost first; look up `address - 1`. For a frame that a
 * signal interrupted the address is that of the interrupted instruction + 1, so that the same look-up finds it.
 */
#ifndef MEMPROF_UNWIND_H
#define MEMPROF_UNWIND_H

#include "../../wire.h"
#include "cfi.h"

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct unwind_state {
    uint64_t pc, sp, bp;
};

/* The state of the caller of the function that uses this. It makes that function keep a frame pointer. */
#define UNWIND_HERE(s)                                                                                                 \
    do {                                                                                                               \
        const uint64_t *frame_ = __builtin_frame_address(0);                                                           \
        (s).bp = frame_[0];                                                                                            \
        (s).pc = frame_[1];                                                                                            \
        (s).sp = (uint64_t)(frame_ + 2);                                                                               \
    } while (0)

struct unwind_stack {
    uint64_t hash;  /* never 0; the same stack always has the same hash, until modules change */
    uint32_t depth; /* may be 0 */
    uint32_t flags; /* WIRE_STACK_CUT | WIRE_STACK_UNKNOWN */
    uint32_t *id;   /* where the caller may keep the id of exactly this stack until the next unwind; it comes back with
                       it while the stack is remembered. 0: none kept. NULL: no such place */
};

struct unwind_thread; /* below; one per thread, and only this thread uses it */

size_t unwind_thread_bytes(void);
/* `t` is zeroed memory. stack_top: highest address of the thread's own stack, 0 where it is not known. */
void unwind_thread_init(struct unwind_thread *t, uint64_t stack_top, unsigned depth_max);

/* The stack from s on outwards: the hot path. Uses and updates what t remembers of the last stack. */
static inline __attribute__((always_inline)) void unwind_stack(struct unwind_thread *t, struct unwind_state s,
                                                               struct unwind_stack *out);
/* The addresses of the last unwind_stack: `depth` of them. */
void unwind_addresses(const struct unwind_thread *t, uint64_t *pcs);
/* The stack pointers in the frames of the last unwind_stack, which was from s: `depth` of them. Slow. */
void unwind_pointers(struct unwind_thread *t, struct unwind_state s, uint64_t *sps);

/* Where the rules lie that the last unwind_stack looked at first: asked for ahead, an unwind of the same stack need not
 * wait for one after the other. */
struct unwind_ahead {
    uint16_t rules[10];
};
void unwind_keep_ahead(const struct unwind_thread *t, struct unwind_ahead *ahead);
void unwind_ask_ahead(const struct unwind_ahead *ahead);

/* The same without the memory of the last stack, in buffers of their own: for a signal handler's event while a hook of
 * this thread is under way. One at a time. */
void unwind_nested(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out);
void unwind_nested_addresses(const struct unwind_thread *t, uint64_t *pcs);

enum unwind_above {
    UNWIND_HOOK,   /* a function of this library is on the stack, and no signal frame inside it */
    UNWIND_SIGNAL, /* one is, with a signal frame inside it */
    UNWIND_NO_HOOK,
};
/* What lies on the stack outside s. Where the walk gets lost it goes by sp: that of the hook's caller is hook_sp. t:
 * where the thread has working memory; it may be NULL. */
enum unwind_above unwind_above(struct unwind_thread *t, struct unwind_state s, uint64_t hook_sp);
/* Whether a signal handler may be on the stack outside s: also where the walk gets lost. Slow. */
int unwind_may_be_signal(struct unwind_state s);

/* After a real dlclose: rules and announcements of modules that are gone go too, and hashes change, so that a reused
 * address never gives an old stack's id. After a real dlopen too, where that is
 * seen: it may have got the place of a library that another thread has closed but not yet reported here. */
void unwind_after_dlclose(void);
/* In a forked child, before its first unwind: it announces its modules anew, and no remembered id is valid. */
void unwind_after_fork(void);

/* Another recording begins, while other threads may be in hooks of the one before: as after a fork, but with care. */
void unwind_restart(void);

extern struct wire_counters *unwind_counters; /* may be NULL */

/* Implemented in record_module.c. record_module_load: 0 when there was no room for it; try again later. */
int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path);
void record_module_unload(uint32_t number);

/* For modules.c: modules came or went where others had been. */
void unwind_modules_changed(void);

/* --- the inside, for the inline part --- */

#define UNWIND_FRAMES WIRE_STACK_MAX

/* One frame of the remembered stack. */
struct unwind_frame {
    uint64_t sp, pc, bp;
    uint64_t hash;     /* of this frame and all outside it, not finished */
    uint32_t id;       /* of the stack that begins here */
    uint16_t checks;   /* that make this frame's outside what it was: the first so many */
    uint16_t needs_bp; /* whether bp matters to the outside */
};

/* A word that the unwinder read on the way: as long as it holds `value`, the way is the same. */
struct unwind_check {
    uint64_t address, value;
};

struct unwind_step {
    struct unwind_state at;
    uint64_t rule;
};

/* A careful walk (careful.h). Not on the stacks that hooks run on: they may be small. */
struct careful {
    struct unwind_thread *thread;
    uint64_t low, high;             /* readable part of the stack that the walk is on */
    struct cfi_registers registers; /* of a frame passed, or none */
    int interrupted;                /* that frame was interrupted by a signal: its pc is exact */
    int signals;                    /* signal frames passed */
    struct cfi_work work;
};

/* Addresses and working memory of an unwind without memory. */
struct unwind_walk {
    uint64_t pcs[UNWIND_FRAMES];
    struct careful careful;
};

enum { UNWIND_PATIENCE = 2, UNWIND_PATIENCE_MOST = 1024 };
#define WALK_ALONE (1u << 31) /* ... but for the stack of the last unwind */

struct unwind_thread {
    uint64_t low, high; /* the part of the thread's own stack that is known to be readable; empty where unknown */
    uint64_t top;
    uint64_t gap;       /* what lies below this is not to be read, so no stack of the thread's; 0: not met yet */
    uint32_t gap_count; /* times that this was believed */
    uint32_t depth_max;
    uint32_t epoch;       /* of the remembered stack */
    uint32_t frame_count; /* of it; 0: nothing is remembered */
    uint32_t flags;       /* of it */
    uint32_t
        walk_depth;   /* of the last unwind: so many addresses in walk.pcs, then all that is remembered | WALK_ALONE */
    uint32_t learned; /* 1 + the frames that were remembered before all were; 0: they came back since */
    uint32_t same_count; /* times in succession that the outermost new frame came back */
    uint32_t patience;   /* all frames are remembered when it has come back so often */
    uint32_t stays_at;   /* that frame: so many are remembered outside it */
    uint64_t stays_pc;
    struct unwind_frame frames[UNWIND_FRAMES]; /* outermost first */
    struct unwind_check checks[3 * UNWIND_FRAMES + 1];
    struct unwind_step steps[UNWIND_FRAMES];
    struct unwind_walk walk;
    uint32_t unmaps; /* unwind_unmaps when low, high and the frames were known to be there */
    uint32_t nested_depth;
    struct unwind_walk nested;
    struct careful above;
    volatile uint32_t above_used; /* by an unwind_above under way */
};

/* Counts what may have taken memory away: the program may have unmapped or moved what we took for a stack. */
extern uint32_t unwind_unmaps;
extern uint32_t unwind_epoch; /* counts changes of modules */

/* With memory and not whole, or without memory. */
void unwind_again(struct unwind_thread *t, struct unwind_state s, struct unwind_stack *out);

/* The hash of a stack is a polynomial over its addresses, the innermost with the highest power: it can be made from
 * either end, so unwinding with and without memory agree. */
#define UNWIND_HASH_K 0x9e3779b97f4a7c15ull
extern uint64_t unwind_powers[UNWIND_FRAMES]; /* of it; filled by unwind_thread_init */

static inline __attribute__((always_inline)) uint64_t unwind_hash_finish(uint64_t h, uint32_t epoch, uint32_t flags)
{
    h += (uint64_t)epoch * 0xd6e8feb86659fd93ull + (uint64_t)flags * 0xa0761d6478bd642full;
    h ^= h >> 32;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 29;
    return h + !h;
}

static inline __attribute__((always_inline)) uint64_t unwind_check_differs(const struct unwind_check *c)
{
    return *(const uint64_t *)c->address ^ c->value;
}

/* The first so many checks hold. The innermost is the likeliest to have changed. Each frame that stands costs four
 * instructions: what led out of it lies in one word of the program's stack that nothing else depends on, so no check
 * looks at fewer. */
static inline __attribute__((always_inline)) int unwind_checks_hold(const struct unwind_check *checks, unsigned count)
{
    const struct unwind_check *c = checks + count;
    for (; c - checks >= 4; c -= 4)
        if (unwind_check_differs(c - 1) | unwind_check_differs(c - 2) | unwind_check_differs(c - 3) |
            unwind_check_differs(c - 4))
            return 0;
    for (; c != checks; c--)
        if (unwind_check_differs(c - 1))
            return 0;
    return 1;
}

static inline __attribute__((always_inline)) void unwind_stack(struct unwind_thread *t, struct unwind_state s,
                                                               struct unwind_stack *out)
{
    uint32_t n = t->frame_count, epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_RELAXED);
    if (__builtin_expect(n != 0, 1)) {
        struct unwind_frame *f = &t->frames[n - 1];
        /* the words checked lie on this thread's own stack, at and above f->sp */
        if (f->sp == s.sp && f->pc == s.pc && (f->bp == s.bp || !f->needs_bp) && t->epoch == epoch &&
            unwind_checks_hold(t->checks, f->checks)) {
            t->walk_depth = t->learned = t->same_count = 0;
            t->patience = UNWIND_PATIENCE;
            out->hash = unwind_hash_finish(f->hash, epoch, t->flags);
            out->depth = n;
            out->flags = t->flags;
            out->id = &f->id;
            return;
        }
    }
    unwind_again(t, s, out);
}

#pragma GCC visibility pop

#endif
