#include "oom.h"

#include <errno.h>

enum { OBSERVERS = 64, NOTES = 64 };

typedef void oom_function(const char *device, size_t size_bytes, void *arg);

/* Written once each, and never given back: who is told while another one takes over still finds his own. */
static struct observer {
    oom_function *function;
    void *arg;
    uint32_t is_there;
} observers[OBSERVERS];
static uint32_t observer_count;
static const struct observer *observer; /* NULL: nobody */

static void write_name(unsigned device, char name[WIRE_NAME_BYTES])
{
    const char *prefix = device == WIRE_DEVICE_HOST ? "host" : device == WIRE_DEVICE_UNKNOWN ? "cuda" : "cuda:";
    unsigned n = 0;
    while (*prefix)
        name[n++] = *prefix++;
    if (device < WIRE_DEVICE_UNKNOWN) {
        if (device >= 100)
            name[n++] = (char)('0' + device / 100);
        if (device >= 10)
            name[n++] = (char)('0' + device / 10 % 10);
        name[n++] = (char)('0' + device % 10);
    }
    while (n < WIRE_NAME_BYTES)
        name[n++] = 0;
}

/* Aligned anew: hooks keep the stack as their caller had it. */
__attribute__((noinline, force_align_arg_pointer)) void oom_tell(struct thread *t, struct unwind_state s,
                                                                 unsigned device, uint64_t size_bytes)
{
    const struct observer *o = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
    char name[WIRE_NAME_BYTES];
    if (!o || t->depth || thread_is_within(t, s, t->oom_sp))
        return;
    int saved = errno;
    write_name(device, name);
    t->oom_sp = s.sp;
    barrier();
    o->function(name, size_bytes, o->arg);
    barrier();
    t->oom_sp = 0;
    errno = saved;
}

static const struct observer *find_observer(oom_function *function, void *arg)
{
    uint32_t count = __atomic_load_n(&observer_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < OBSERVERS; i++)
        if (__atomic_load_n(&observers[i].is_there, __ATOMIC_ACQUIRE) && observers[i].function == function &&
            observers[i].arg == arg)
            return &observers[i];
    uint32_t place = __atomic_fetch_add(&observer_count, 1, __ATOMIC_ACQ_REL);
    if (place >= OBSERVERS) {
        __atomic_store_n(&observer_count, OBSERVERS, __ATOMIC_RELEASE);
        return NULL;
    }
    observers[place].function = function;
    observers[place].arg = arg;
    __atomic_store_n(&observers[place].is_there, 1, __ATOMIC_RELEASE);
    return &observers[place];
}

/* Returns 0 where there have been too many different ones. */
EXPORT int memprof_hook_on_oom(oom_function *function, void *arg);
EXPORT int memprof_hook_on_oom(oom_function *function, void *arg)
{
    const struct observer *o = function ? find_observer(function, arg) : NULL;
    __atomic_store_n(&observer, o, __ATOMIC_RELEASE);
    return o || !function;
}

/* --- for interpreters, which cannot be entered where an allocation fails: notes, and a call that they make later ---
 */

enum { NOTE_FREE, NOTE_WRITTEN, NOTE_READY };
static struct note {
    uint32_t state; /* NOTE_*; whoever changes it to NOTE_WRITTEN has it */
    uint64_t number, size_bytes;
    char device[WIRE_NAME_BYTES];
} notes[NOTES];
static uint64_t note_number;

typedef int later_function(void *);
typedef int add_function(later_function *call, void *arg);
static add_function *add_later; /* Py_AddPendingCall; NULL: the interpreter is about to end */
static later_function *call_later;
static uint32_t adding; /* calls of add_later that may be under way */

/* More failures than there is room for before the interpreter looks are not told. */
static void take_note(const char *device, size_t size_bytes, void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < NOTES; i++) {
        struct note *n = &notes[i];
        uint32_t expected = NOTE_FREE;
        if (!__atomic_compare_exchange_n(&n->state, &expected, NOTE_WRITTEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        n->number = __atomic_fetch_add(&note_number, 1, __ATOMIC_RELAXED);
        n->size_bytes = size_bytes;
        for (unsigned k = 0; k < WIRE_NAME_BYTES; k++)
            n->device[k] = device[k];
        __atomic_store_n(&n->state, NOTE_READY, __ATOMIC_RELEASE);
        break;
    }
    __atomic_fetch_add(&adding, 1, __ATOMIC_SEQ_CST);
    add_function *add = __atomic_load_n(&add_later, __ATOMIC_SEQ_CST);
    if (add)
        add(call_later, NULL);
    __atomic_fetch_sub(&adding, 1, __ATOMIC_SEQ_CST);
}

/* Nobody calls the interpreter any more, in no thread. Of a forked child, whose parent's thread was in there, not for
 * ever. What it has not read is not told to its successor. */
static void end_later(void)
{
    const struct observer *o = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
    __atomic_store_n(&add_later, NULL, __ATOMIC_SEQ_CST);
    if (o && o->function == take_note)
        __atomic_compare_exchange_n(&observer, &o, NULL, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 1000 && __atomic_load_n(&adding, __ATOMIC_SEQ_CST); i++)
        sys_sleep_ns(100000);
    for (unsigned i = 0; i < NOTES; i++) {
        uint32_t ready = NOTE_READY;
        __atomic_compare_exchange_n(&notes[i].state, &ready, NOTE_FREE, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
}

/* add NULL: the interpreter is about to end. */
EXPORT int memprof_hook_oom_later(add_function *add, later_function *call);
EXPORT int memprof_hook_oom_later(add_function *add, later_function *call)
{
    if (!add) {
        end_later();
        return 1;
    }
    call_later = call;
    __atomic_store_n(&add_later, add, __ATOMIC_SEQ_CST);
    return memprof_hook_on_oom(take_note, NULL);
}

/* The oldest note, of one reader. 0: there is none. */
EXPORT int memprof_hook_oom_next(char device[WIRE_NAME_BYTES], uint64_t *size_bytes);
EXPORT int memprof_hook_oom_next(char device[WIRE_NAME_BYTES], uint64_t *size_bytes)
{
    struct note *oldest = NULL;
    for (unsigned i = 0; i < NOTES; i++)
        if (__atomic_load_n(&notes[i].state, __ATOMIC_ACQUIRE) == NOTE_READY &&
            (!oldest || notes[i].number < oldest->number))
            oldest = &notes[i];
    if (!oldest)
        return 0;
    for (unsigned k = 0; k < WIRE_NAME_BYTES; k++)
        device[k] = oldest->device[k];
    *size_bytes = oldest->size_bytes;
    __atomic_store_n(&oldest->state, NOTE_FREE, __ATOMIC_RELEASE);
    return 1;
}
