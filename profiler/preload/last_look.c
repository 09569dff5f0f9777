#include "last_look.h"

#include "process.h"
#include "record_ring.h"

int last_look_wait(void)
{
    struct wire_proc *slot = process.slot;
    if (!gate.on || !slot || sys_getpid() != process.pid || slot->pid != process.pid || process_is_filtered())
        return 0;
    uint32_t *word = &slot->last_look;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != WIRE_LOOK_WANTED || !wire_collector_lives(process.control))
        return 0;
    uint64_t now_ns = sys_monotonic_ns(), end_ns = now_ns + WIRE_LAST_LOOK_NS;
    record_wake_collector();
    /* a signal ends a wait before its time */
    while (now_ns < end_ns && __atomic_load_n(word, __ATOMIC_ACQUIRE) == WIRE_LOOK_WANTED) {
        sys_futex_wait(word, WIRE_LOOK_WANTED, (long)(end_ns - now_ns));
        now_ns = sys_monotonic_ns();
    }
    return 1;
}
