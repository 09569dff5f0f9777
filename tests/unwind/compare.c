/*
 * compare.c: LD_PRELOAD library that takes every COMPARE_EVERY-th allocation of a program and compares the stack that
 * our unwinder gives for it (without memory, with memory, by full CFI evaluation of every frame) with libunwind's
 * unw_step. At exit it appends its totals, and the stacks that differ, to COMPARE_OUT. It contains the unwinder itself,
 * none of the recorder.
 */
#include "../../profiler/preload/sys.h"
#include "../../profiler/preload/unwind/careful.h"
#include "../../profiler/preload/unwind/unwind.h"
#include "libunwind_stack.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_stack_end;
extern char *program_invocation_short_name;

#define TLS __thread __attribute__((tls_model("initial-exec")))
static TLS int inside;
static TLS struct unwind_thread *thread;
static TLS unsigned long calls;

static struct {
    unsigned long calls, checked, frames, deepest, same_plain, same_memory, same_full, same_hash, whole, cut, unknown,
        shorter, longer;
} total;
static unsigned long every = 1;
static int started, report = -1, reports_left = 20;
static struct wire_counters counters;
static unsigned modules_loaded, modules_unloaded;

int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path)
{
    (void)number, (void)start, (void)end, (void)bias, (void)build_id, (void)build_id_bytes, (void)path;
    __atomic_fetch_add(&modules_loaded, 1, __ATOMIC_RELAXED);
    return 1;
}

void record_module_unload(uint32_t number)
{
    (void)number;
    __atomic_fetch_add(&modules_unloaded, 1, __ATOMIC_RELAXED);
}

/* Ours, every frame by full evaluation. */
static NOINLINE void by_full_cfi(struct stack *s, uint64_t first)
{
    struct careful *c = &thread->nested.careful;
    careful_reset(c, thread);
    int begun = 0;
    careful_begin(c, (uint64_t)__builtin_frame_address(0));
    careful_registers(c);
    s->depth = 0;
    do {
        uint64_t pc = c->registers.value[CFI_RA] + (uint64_t)c->interrupted;
        begun |= pc == first;
        if (begun && address_is_possible(pc) && s->depth < UNWIND_FRAMES)
            s->pcs[s->depth++] = pc;
    } while (careful_full_step(c) == 0);
}

static int same(const struct stack *a, const struct stack *b)
{
    return a->depth == b->depth && memcmp(a->pcs, b->pcs, a->depth * sizeof a->pcs[0]) == 0;
}

static void name(char *text, size_t bytes, const struct stack *s, int i)
{
    Dl_info d;
    if (i >= (int)s->depth)
        snprintf(text, bytes, "-");
    else if (dladdr((void *)(s->pcs[i] - 1), &d) && d.dli_fname)
        snprintf(text, bytes, "%s+0x%lx (%s)", strrchr(d.dli_fname, '/') ? strrchr(d.dli_fname, '/') + 1 : d.dli_fname,
                 (unsigned long)(s->pcs[i] - (uint64_t)d.dli_fbase), d.dli_sname ? d.dli_sname : "?");
    else
        snprintf(text, bytes, "0x%lx", (unsigned long)s->pcs[i]);
}

static void report_difference(const char *what, const struct stack *ours, const struct stack *theirs)
{
    char line[512], a[200], b[200];
    if (report < 0 || __atomic_fetch_sub(&reports_left, 1, __ATOMIC_RELAXED) <= 0)
        return;
    int i = 0,
        n = snprintf(line, sizeof line, "  differs (%s): %u frames, libunwind %u\n", what, ours->depth, theirs->depth);
    if (write(report, line, (size_t)n) < 0)
        return;
    while (i < (int)ours->depth && i < (int)theirs->depth && ours->pcs[i] == theirs->pcs[i])
        i++;
    for (int k = i < 2 ? 0 : i - 2; k < i + 3; k++) {
        name(a, sizeof a, ours, k);
        name(b, sizeof b, theirs, k);
        n = snprintf(line, sizeof line, "    %2d %-70s | %s\n", k, a, b);
        if (write(report, line, (size_t)n) < 0)
            return;
    }
}

#define ADD(field, n) __atomic_fetch_add(&total.field, (unsigned long)(n), __ATOMIC_RELAXED)

struct scratch {
    struct stack theirs, plain, memory, full;
};

static NOINLINE void compare(struct unwind_state s, const struct unwind_stack *memory)
{
    static TLS struct scratch *x;
    struct unwind_stack plain;
    if (!x)
        x = sys_map(sizeof *x);
    x->memory.depth = memory->depth;
    unwind_addresses(thread, x->memory.pcs);
    unwind_nested(thread, s, &plain);
    x->plain.depth = plain.depth;
    unwind_nested_addresses(thread, x->plain.pcs);
    by_full_cfi(&x->full, s.pc);
    if (stack_by_libunwind(&x->theirs, s.pc) == 0) {
        int same_plain = same(&x->plain, &x->theirs), same_memory = same(&x->memory, &x->theirs);
        int same_full = same(&x->full, &x->theirs);
        ADD(checked, 1);
        ADD(frames, x->theirs.depth);
        ADD(same_plain, same_plain);
        ADD(same_memory, same_memory);
        ADD(same_full, same_full);
        ADD(same_hash, plain.hash == memory->hash);
        ADD(cut, plain.flags & WIRE_STACK_CUT);
        ADD(unknown, !!(plain.flags & WIRE_STACK_UNKNOWN));
        ADD(shorter, x->plain.depth < x->theirs.depth);
        ADD(longer, x->plain.depth > x->theirs.depth);
        if (x->theirs.depth > total.deepest)
            total.deepest = x->theirs.depth;
        if (!same_plain)
            report_difference("without memory", &x->plain, &x->theirs);
        else if (!same_memory)
            report_difference("with memory", &x->memory, &x->theirs);
        else if (!same_full)
            report_difference("full CFI", &x->full, &x->theirs);
    }
}

static NOINLINE void seen(struct unwind_state s)
{
    struct unwind_stack memory;
    if (!thread) {
        uint64_t sp = s.sp, self, top = (uint64_t)__libc_stack_end;
        __asm__("mov %%fs:0, %0" : "=r"(self));
        thread = sys_map(unwind_thread_bytes());
        unwind_thread_init(thread, sp < self ? self : sp < top ? top : 0, UNWIND_FRAMES);
    }
    /* on every call, so that the memory ages as it does in use */
    unwind_stack(thread, s, &memory);
    ADD(calls, 1);
    if (memory.id) {
        ADD(whole, *memory.id != 0);
        *memory.id = 1;
    }
    if (calls++ % every == 0)
        compare(s, &memory);
}

#define HOOK()                                                                                                         \
    if (started && !inside) {                                                                                          \
        struct unwind_state s_;                                                                                        \
        inside = 1;                                                                                                    \
        UNWIND_HERE(s_);                                                                                               \
        seen(s_);                                                                                                      \
        inside = 0;                                                                                                    \
    }

#define EXPORT __attribute__((visibility("default"), noinline))

EXPORT void *malloc(size_t n)
{
    HOOK();
    return __libc_malloc(n);
}

EXPORT void *calloc(size_t a, size_t b)
{
    HOOK();
    return __libc_calloc(a, b);
}

EXPORT void *realloc(void *p, size_t n)
{
    HOOK();
    return __libc_realloc(p, n);
}

__attribute__((constructor)) static void start(void)
{
    const char *out = getenv("COMPARE_OUT"), *n = getenv("COMPARE_EVERY");
    inside = 1;
    if (n && atol(n) > 0)
        every = (unsigned long)atol(n);
    if (out)
        report = open(out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    unwind_counters = &counters;
    inside = 0;
    started = report >= 0;
}

__attribute__((destructor)) static void finish(void)
{
    char line[1024];
    started = 0;
    if (report < 0 || total.checked == 0)
        return;
    int k = snprintf(
        line, sizeof line,
        "%s: allocations %lu checked %lu same: without memory %lu, with memory %lu, full CFI %lu, hash %lu; "
        "shorter %lu longer %lu cut %lu unknown %lu; mean depth %.1f deepest %lu; whole stack remembered %.0f %%; "
        "rules %lu full evaluations %lu modules +%u -%u\n",
        program_invocation_short_name, total.calls, total.checked, total.same_plain, total.same_memory, total.same_full,
        total.same_hash, total.shorter, total.longer, total.cut, total.unknown,
        (double)total.frames / (double)total.checked, total.deepest, 100.0 * (double)total.whole / (double)total.calls,
        counters.rule_miss, counters.stack_full_cfi, modules_loaded, modules_unloaded);
    if (write(report, line, (size_t)k) < 0)
        return;
}
