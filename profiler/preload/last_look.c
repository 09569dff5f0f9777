#include "last_look.h"

#include "process.h"
#include "record_ring.h"

#include <sys/single_threaded.h>

#define SLICE_NS 1000000

static int is_served(void)
{
    return __atomic_load_n(&process.control->state, __ATOMIC_RELAXED) == WIRE_STATE_ON &&
           wire_collector_lives(process.control);
}

/* Other threads would go on meanwhile, with what destructors have left: only where there are none. */
int last_look_wait(void)
{
    struct wire_proc *slot = process.slot;
    if (!gate.on || !slot || sys_getpid() != process.pid || slot->pid != process.pid || process_is_filtered())
        return 0;
    uint32_t *word = &slot->last_look;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != WIRE_LOOK_WANTED || !__libc_single_threaded || !is_served())
        return 0;
    uint64_t now_ns = sys_monotonic_ns(), end_ns = now_ns + WIRE_LAST_LOOK_NS;
    /* in slices: the collector may have looked for records before this one's could be read, and sleep again */
    while (now_ns < end_ns && __atomic_load_n(word, __ATOMIC_ACQUIRE) == WIRE_LOOK_WANTED && is_served()) {
        record_wake_collector();
        sys_futex_wait(word, WIRE_LOOK_WANTED, SLICE_NS);
        now_ns = sys_monotonic_ns();
    }
    return 1;
}
