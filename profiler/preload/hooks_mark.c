/* What memprof.h calls in a program that is recorded: marks, ranges, and scopes with figures. */
#include "call.h"
#include "figures.h"

static void mark(struct unwind_state s, enum wire_mark kind, const char *name)
{
    call_mark(s, kind, 0, &(struct call_text){.bytes = name}, 1);
}

EXPORT void memprof_hook_mark(const char *name);
EXPORT void memprof_hook_mark(const char *name)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    mark(s, WIRE_MARK_INSTANT, name);
}

EXPORT void memprof_hook_range_push(const char *name);
EXPORT void memprof_hook_range_push(const char *name)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    mark(s, WIRE_MARK_PUSH, name);
}

EXPORT void memprof_hook_range_pop(void);
EXPORT void memprof_hook_range_pop(void)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    mark(s, WIRE_MARK_POP, NULL);
}

/* Whether the thread entered a hook in which its figures may be touched; then thread_leave must follow. */
static int enter_figures(struct thread *t, struct unwind_state s)
{
    if (!gate.on || sys_getpid() != process.pid || !thread_enter(t, s))
        return 0;
    if (t->depth == 1 && !t->writing)
        return 1;
    thread_leave(t);
    return 0;
}

EXPORT void memprof_hook_scope_begin(const char *name);
EXPORT void memprof_hook_scope_begin(const char *name)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    mark(s, WIRE_MARK_PUSH, name);
    if (enter_figures(t, s)) {
        figures_begin(t);
        thread_leave(t);
    }
}

EXPORT void memprof_hook_scope_end(void);
EXPORT void memprof_hook_scope_end(void)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    if (enter_figures(t, s)) {
        figures_end(t);
        thread_leave(t);
    }
    mark(s, WIRE_MARK_POP, NULL);
}

/* size: what the caller's header knows of them. */
EXPORT int memprof_hook_scope_figures(void *figures, size_t size);
EXPORT int memprof_hook_scope_figures(void *figures, size_t size)
{
    struct thread *t = &self;
    struct figures_scope scope;
    struct unwind_state s;
    int is_known = 0;
    UNWIND_HERE(s);
    if (enter_figures(t, s)) {
        is_known = figures_ask(t, &scope);
        thread_leave(t);
    }
    for (size_t i = 0; is_known && i < size / sizeof(uint64_t); i++)
        ((uint64_t *)figures)[i] = i < sizeof scope / sizeof(uint64_t) ? ((const uint64_t *)&scope)[i] : 0;
    return is_known;
}
