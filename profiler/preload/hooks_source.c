/* What memprof.h says of code that no file has: its text, in parts, for the recording's file.source. */
#include "record.h"
#include "record_parts.h"

#include <errno.h>

static uint64_t said_bytes; /* so far, of this process and what it was forked from */
static uint32_t said_count;

/* First the lengths, then name and text. 0: no room. */
static int write_source(struct thread *t, struct record_part name, struct record_part text)
{
    const uint64_t lengths = name.bytes << 32 | text.bytes;
    const struct record_part parts[] = {{(const unsigned char *)&lengths, sizeof lengths}, name, text};
    return record_parts(t, WIRE_SOURCE, __atomic_add_fetch(&said_count, 1, __ATOMIC_RELAXED), parts, 3);
}

/* Whether there is room for so many bytes more of what a process may say. */
static int take(uint64_t bytes)
{
    uint64_t before = __atomic_load_n(&said_bytes, __ATOMIC_RELAXED);
    do {
        if (bytes > WIRE_SOURCE_BYTES_MAX - before)
            return 0;
    } while (!__atomic_compare_exchange_n(&said_bytes, &before, before + bytes, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 1;
}

EXPORT int memprof_hook_source(const char *name, const char *text, size_t bytes);
EXPORT int memprof_hook_source(const char *name, const char *text, size_t bytes)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    struct thread *t = &self;
    struct record_part said = {(const unsigned char *)name, 0};
    int saved = errno, is_said = 0;
    if (!name || !*name || !text || !gate.on || sys_getpid() != process.pid)
        return -1;
    while (name[said.bytes])
        said.bytes++;
    if (said.bytes > WIRE_CODE_TEXT_MAX || bytes > WIRE_SOURCE_BYTES_MAX || !take(said.bytes + bytes))
        return -1;
    if (thread_enter(t, s)) {
        is_said = write_source(t, said, (struct record_part){(const unsigned char *)text, bytes});
        thread_leave(t);
    }
    errno = saved;
    return is_said ? 0 : -1;
}
