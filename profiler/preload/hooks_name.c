/* What memprof.h says of blocks in a program that is recorded: their names, views of parts of them, categories. */
#include "../../include/memprof_view.h"
#include "call.h"

/* Without a text nothing was said. */
static void say(struct unwind_state s, unsigned what, const void *p, const char *text)
{
    if (!text || !*text)
        return;
    uint64_t address = (uint64_t)p;
    call_record(s, 0, what, WIRE_DEVICE_UNKNOWN, &address, 1, &(struct call_text){.bytes = text});
}

EXPORT void memprof_hook_name(const void *p, const char *name);
EXPORT void memprof_hook_name(const void *p, const char *name)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    say(s, WIRE_CALL_NAME, p, name);
}

EXPORT void memprof_hook_category(const void *p, const char *category);
EXPORT void memprof_hook_category(const void *p, const char *category)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    say(s, WIRE_CALL_CATEGORY, p, category);
}

EXPORT void memprof_hook_view(const void *block, const struct memprof_view *view, const char *name);
EXPORT void memprof_hook_view(const void *block, const struct memprof_view *view, const char *name)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    if (!view || !name || !*name)
        return;
    const int is_view = view->rank <= MEMPROF_RANK; /* else it is told as one of items without bytes: the whole block */
    const uint32_t rank = is_view ? view->rank : 0;
    uint64_t arguments[4 + 2 * MEMPROF_RANK] = {(uint64_t)block, (uint64_t)view->data, is_view ? view->item_bytes : 0,
                                                rank};
    for (uint32_t d = 0; d < rank; d++) {
        arguments[4 + d] = (uint64_t)view->size[d];
        arguments[4 + rank + d] = (uint64_t)view->stride[d];
    }
    call_record(s, 0, WIRE_CALL_VIEW, WIRE_DEVICE_UNKNOWN, arguments, 4 + 2 * rank, &(struct call_text){.bytes = name});
}
