#include "own.h"

#include "process.h"
#include "session.h"
#include "thin.h"

#define PAGE 4096ul

/* The linker's: where this library begins, and what lies between the others is in no file. */
extern const char __ehdr_start[] HIDDEN, __bss_start[] HIDDEN, _end[] HIDDEN;

void own_tell(const void *p, size_t size_bytes)
{
    struct wire_proc *slot = process.slot;
    for (unsigned i = 0; slot && p && i < WIRE_OWN; i++) { /* where none is free it counts as other memory */
        uint64_t expected = 0;
        if (!__atomic_load_n(&slot->own[i].address, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&slot->own[i].address, &expected, (uint64_t)p, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&slot->own[i].size_bytes, size_bytes, __ATOMIC_RELEASE);
            return;
        }
    }
}

void *own_map(size_t size_bytes)
{
    void *p = sys_map(size_bytes);
    own_tell(p, size_bytes);
    return p;
}

/* Before the memory goes: another thread may get these addresses, and tell them anew. */
void own_unmap(void *p, size_t size_bytes)
{
    struct wire_proc *slot = process.slot;
    for (unsigned i = 0; slot && i < WIRE_OWN; i++)
        if (__atomic_load_n(&slot->own[i].address, __ATOMIC_RELAXED) == (uint64_t)p) {
            __atomic_store_n(&slot->own[i].size_bytes, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&slot->own[i].address, 0, __ATOMIC_RELEASE);
            break;
        }
    sys_unmap(p, size_bytes);
}

uint64_t own_addresses(void)
{
    uint64_t bytes = session_addresses() + (uint64_t)(__bss_start - __ehdr_start);
    for (unsigned i = 0; process.slot && i < WIRE_OWN; i++)
        bytes += __atomic_load_n(&process.slot->own[i].size_bytes, __ATOMIC_RELAXED);
    return bytes;
}

void own_begin(void)
{
    for (unsigned i = 0; i < WIRE_OWN; i++)
        process.slot->own[i] = (struct wire_own){0};
    uint64_t start = ((uint64_t)__bss_start + PAGE - 1) & ~(PAGE - 1), end = ((uint64_t)_end + PAGE - 1) & ~(PAGE - 1);
    own_tell((const void *)start, end - start);
    own_tell(thin.chosen.slots, CHOSEN_BYTES);
}
