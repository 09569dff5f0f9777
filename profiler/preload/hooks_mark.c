/* What memprof.h calls in a program that is recorded: marks and ranges. */
#include "call.h"

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
