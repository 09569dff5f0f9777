#include "attach.h"

#include "door.h"
#include "real.h"
#include "slots.h"
#include "start.h"
#include "thread.h"

#include <errno.h>

static uint32_t under_way; /* a call of these, or a look */
static uint32_t is_pending;

static int claim(void)
{
    return !__atomic_exchange_n(&under_way, 1, __ATOMIC_ACQUIRE);
}

static void release(void)
{
    __atomic_store_n(&under_way, 0, __ATOMIC_RELEASE);
}

/* A look of another thread takes milliseconds. */
static int claim_soon(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (claim())
            return 1;
        sys_sleep_ns(1000000);
    }
    return 0;
}

static int is_recorded(void)
{
    return gate.on && process.control && __atomic_load_n(&process.control->state, __ATOMIC_RELAXED) == WIRE_STATE_ON &&
           wire_collector_lives(process.control);
}

static uint32_t is_joined; /* or slots are still ours */

static int join(const char *path)
{
    if (is_recorded())
        return -EBUSY;
    if (!real_is_late())
        return -EEXIST;
    process_off();
    self.ring = NULL; /* of a recording before: what is said below is said to none */
    if (!process_join(path))
        return -ESRCH;
    start_once();
    is_pending = (uint32_t)slots_patch();
    process_start(WIRE_START_ATTACH, 0, (int)sys_call(SYS_getppid, 0, 0, 0));
    is_joined = 1;
    if (gate.on)
        return 0;
    is_joined = slots_restore() > 0;
    return -EAGAIN;
}

/* The calling thread is one of the program's, on a stack that is not its own: it gets no ring here, nor does anything
 * that is called from here become an event. 0, or a negative errno. */
EXPORT int memprof_hook_attach(const char *path)
{
    struct thread *t = &self;
    if (!claim_soon())
        return -EBUSY;
    t->depth++;
    barrier();
    int rc = join(path);
    barrier();
    t->depth--;
    release();
    return rc;
}

/* Where the path cannot be opened: what is to be fetched, before memprof_hook_attach is called with no path (""). */
EXPORT int memprof_hook_door(const char *unused)
{
    (void)unused;
    if (!claim_soon())
        return -EBUSY;
    int fd = door_open();
    release();
    return fd;
}

/* Returns how many slots are still ours, or -ESRCH: none were, as one that attaches may not have come so far. The
 * library stays: a thread may be inside. */
EXPORT int memprof_hook_detach(const char *unused)
{
    struct thread *t = &self;
    (void)unused;
    if (!claim_soon())
        return -EBUSY;
    t->depth++;
    barrier();
    int left = -ESRCH;
    if (is_joined) {
        process_off();
        left = slots_restore();
        is_joined = left > 0;
    }
    barrier();
    t->depth--;
    release();
    return left;
}

void attach_look(void)
{
    if (likely(!is_pending && !slots_are_new()))
        return;
    if (!claim())
        return;
    if (gate.on)
        is_pending = (uint32_t)slots_patch();
    release();
}

void attach_left_by_fork(void)
{
    release(); /* a look may have been under way in another thread of the parent's */
    slots_restore_in_child();
    is_joined = 0;
}
