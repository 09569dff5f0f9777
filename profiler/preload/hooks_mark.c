/* What memprof.h calls in a program that is recorded: marks and ranges. */
#include "record.h"

#include <errno.h>
#include <stddef.h>

#define NAME_MAX_BYTES 1000

static void mark(struct unwind_state s, unsigned kind, const char *name)
{
    uint64_t words[1 + NAME_MAX_BYTES / 8];
    struct thread *t = &self;
    unsigned bytes = 0;
    int saved = errno;
    if (!gate.on || sys_getpid() != process.pid)
        return;
    for (; name && bytes < NAME_MAX_BYTES && name[bytes]; bytes++) {
        unsigned shift = bytes % 8 * 8;
        uint64_t byte = (uint64_t)(unsigned char)name[bytes] << shift;
        words[1 + bytes / 8] = shift ? words[1 + bytes / 8] | byte : byte;
    }
    unsigned count = 2 + (bytes + 7) / 8;
    words[0] = (uint64_t)WIRE_MARK << 56 | (uint64_t)kind << 48 | (uint64_t)count << 32 | bytes;
    if (thread_enter(t, s)) {
        record_words(t, words, count);
        thread_leave(t);
    }
    errno = saved;
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
