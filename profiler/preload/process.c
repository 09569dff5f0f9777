#include "process.h"

#include "environment.h"
#include "pause.h"
#include "real.h"
#include "record_heap.h"
#include "session.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

struct gate gate __attribute__((aligned(4096)));
struct process process;

/* Makes a forked child notice that it is one. */
static uint32_t gate_guard(void)
{
    gate.own = 1;
    process.guard = NULL;
    if (sys_call(SYS_madvise, &gate, sizeof gate, MADV_WIPEONFORK) == 0)
        return process.free_stacks ? gate_watched() : gate_open();
    char *page = sys_map(4096);
    if (page)
        sys_call(SYS_madvise, page, 4096, MADV_DONTFORK);
    process.guard = page ? page : (char *)&gate; /* the gate is there in all children: then no child is recorded */
    return GATE_GUARDED;
}

int process_is_child(void)
{
    if (likely(!process.guard))
        return !__atomic_load_n(&gate.own, __ATOMIC_RELAXED);
    return sys_getpid() != process.pid && !memory_readable((uint64_t)process.guard);
}

void process_start(uint32_t start_kind, uint32_t parent_slot, int parent_pid)
{
    process.pid = sys_getpid();
    if (__atomic_load_n(&process.control->state, __ATOMIC_RELAXED) != WIRE_STATE_ON) {
        process.state = PROCESS_OFF;
        return;
    }
    /* one that may not ask who it is (a filter forbids it) could not be seen to end */
    if (process.pid < 1 || !session_slot_claim(start_kind, parent_slot, parent_pid)) {
        process.state = PROCESS_REFUSED;
        return;
    }
    unwind_counters = &process.slot->counters;
    if (real.program_has_malloc)
        COUNT(own_malloc, 1);
    else if (real.program_has_new)
        COUNT(own_new, 1);
    record_heap_start();
    uint32_t on = pause_start(gate_guard());
    process.state = PROCESS_ON;
    __atomic_store_n(&gate.on, on, __ATOMIC_RELEASE);
}

void process_attach(void)
{
    uint32_t expected = PROCESS_NEW;
    if (!__atomic_compare_exchange_n(&process.state, &expected, PROCESS_ATTACHING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    const char *path = environment_find(WIRE_ENV_SESSION);
    if (path && *path)
        session_map(path);
    if (!process.control) {
        process.state = PROCESS_OFF;
        return;
    }
    process.use_tsc = process.control->flags & WIRE_CLOCK_TSC;
    process.free_stacks = (process.control->flags & WIRE_FREE_STACKS) != 0;
    process.free_least_bytes = process.control->free_least_bytes;
    if (!thin_start(process.control)) {
        process.state = PROCESS_OFF;
        return;
    }
    process_start(WIRE_START_EXEC, 0, (int)sys_call(SYS_getppid, 0, 0, 0));
}

int process_join(const char *path)
{
    if (!session_map(path))
        return 0;
    process.use_tsc = process.control->flags & WIRE_CLOCK_TSC;
    process.slot = NULL;
    process.state = PROCESS_ATTACHING;
    __atomic_fetch_add(&process.joined, 1, __ATOMIC_RELEASE);
    unwind_restart();
    return 1;
}

static void shut(uint32_t state)
{
    process.state = state;
    __atomic_store_n(&gate.on, GATE_SHUT, __ATOMIC_RELEASE);
}

void process_off(void)
{
    shut(PROCESS_OFF);
}

void process_stop(void)
{
    COUNT(stopped, 1);
    shut(PROCESS_STOPPED);
}

static struct wire_proc orphan_slot;

void process_disowned(void)
{
    if (__atomic_exchange_n(&gate.on, GATE_SHUT, __ATOMIC_ACQ_REL) == GATE_SHUT)
        return; /* another thread was first */
    process_off();
    __atomic_fetch_add(&process.control->procs_disowned, 1, __ATOMIC_RELAXED);
    /* the slot may be another's as well: what is counted from here on is for nobody */
    process.slot = &orphan_slot;
    unwind_counters = &orphan_slot.counters;
}
