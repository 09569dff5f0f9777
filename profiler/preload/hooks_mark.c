/* What memprof.h calls in a program that is recorded: marks, ranges, scopes with figures, and figures of devices. */
#include "call.h"
#include "desk.h"
#include "figures.h"
#include "order.h"
#include "pause.h"

#include <errno.h>

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

/* size: what the caller's header knows of them; figures NULL: whether they are known. */
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
    for (size_t i = 0; is_known && figures && i < size / sizeof(uint64_t); i++)
        ((uint64_t *)figures)[i] = i < sizeof scope / sizeof(uint64_t) ? ((const uint64_t *)&scope)[i] : 0;
    return is_known;
}

EXPORT void memprof_hook_epoch(const char *name);
EXPORT void memprof_hook_epoch(const char *name)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    mark(s, WIRE_MARK_EPOCH, name);
}

/* A question of the calling thread, where it may wait: not in a signal handler that interrupted a hook. Who is filtered
 * may not even wait: that is a system call. */
static enum desk_status ask(struct unwind_state s, const char *name, unsigned flags, struct wire_figures *figures)
{
    struct thread *t = &self;
    int saved = errno;
    if (t->refused)
        return DESK_NOT_RECORDED;
    if (process_is_filtered() || !enter_figures(t, s))
        return gate.on ? DESK_NOT_HERE : DESK_NOT_RECORDED;
    enum desk_status status = desk_ask(t, name, flags, figures);
    thread_leave(t);
    errno = saved;
    return status;
}

static int is_recorded(void)
{
    return process.control && gate.on && sys_getpid() == process.pid;
}

/* The same of a device. is_now: up to here, else as last counted. */
EXPORT int memprof_hook_device_figures(const char *device, void *figures, size_t size, int is_now);
EXPORT int memprof_hook_device_figures(const char *device, void *figures, size_t size, int is_now)
{
    char name[WIRE_NAME_BYTES];
    struct wire_figures f;
    struct unwind_state s;
    UNWIND_HERE(s);
    if (!is_recorded())
        return DESK_NOT_RECORDED;
    if (!desk_name(device, name))
        return DESK_NO_DEVICE;
    enum desk_status status = is_now ? ask(s, name, 0, &f) : desk_read(name, &f);
    for (size_t i = 0; status == DESK_OK && figures && i < size / sizeof(uint64_t); i++)
        ((uint64_t *)figures)[i] = i < sizeof f / sizeof(uint64_t) ? ((const uint64_t *)&f)[i] : 0;
    return status;
}

EXPORT int memprof_hook_sync(void);
EXPORT int memprof_hook_sync(void)
{
    const char name[WIRE_NAME_BYTES] = "";
    struct wire_figures f;
    struct unwind_state s;
    UNWIND_HERE(s);
    return is_recorded() ? ask(s, name, WIRE_SYNC_COMMIT, &f) : DESK_NOT_RECORDED;
}

/* Of the whole recording. */
static enum desk_status set_pause(struct unwind_state s, unsigned flags)
{
    const char name[WIRE_NAME_BYTES] = "";
    struct wire_figures f;
    enum desk_status status = is_recorded() ? ask(s, name, flags, &f) : DESK_NOT_RECORDED;
    if (status == DESK_OK)
        pause_look();
    return status;
}

EXPORT int memprof_hook_pause(void);
EXPORT int memprof_hook_pause(void)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    return set_pause(s, WIRE_SYNC_PAUSE);
}

EXPORT int memprof_hook_resume(void);
EXPORT int memprof_hook_resume(void)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    return set_pause(s, WIRE_SYNC_RESUME);
}

static int write_policy(struct unwind_state s, const char *text, size_t bytes)
{
    struct thread *t = &self;
    const unsigned words = 2 + (unsigned)(bytes + 7) / 8;
    int is_written = 0;
    if (process_is_filtered() || !enter_figures(t, s))
        return 0;
    if (record_room(t, words)) {
        uint64_t stamp = record_begin(t), at = record_reserve(t, words);
        record_word(t, at, stamp);
        record_word(t, at + 1, (uint64_t)WIRE_POLICY << 56 | (uint64_t)words << 32 | bytes);
        for (unsigned i = 0; i < words - 2; i++) {
            uint64_t word = 0;
            for (unsigned k = 0; k < 8 && 8 * i + k < bytes; k++)
                word |= (uint64_t)(unsigned char)text[8 * i + k] << 8 * k;
            record_word(t, at + 2 + i, word);
        }
        record_end(t);
        is_written = 1;
    }
    thread_leave(t);
    return is_written;
}

/* Of the whole recording, in place of the one that there was. DESK_NO_DEVICE: it is none. */
EXPORT int memprof_hook_policy(const char *text, size_t bytes);
EXPORT int memprof_hook_policy(const char *text, size_t bytes)
{
    const char name[WIRE_NAME_BYTES] = "";
    struct wire_figures f;
    struct unwind_state s;
    int saved = errno;
    UNWIND_HERE(s);
    if (!is_recorded())
        return DESK_NOT_RECORDED;
    if (!text || !bytes || bytes > WIRE_POLICY_MAX)
        return DESK_REFUSED;
    int is_written = write_policy(s, text, bytes);
    enum desk_status status = is_written ? ask(s, name, WIRE_SYNC_POLICY, &f) : DESK_NOT_HERE;
    if (status == DESK_OK)
        order_start();
    errno = saved;
    return status == DESK_NO_DEVICE ? DESK_REFUSED : status;
}
