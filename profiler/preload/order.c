#include "order.h"

#include "real.h"
#include "record_heap.h"
#include "record_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>

#define LOOK_NS      999999999l /* between two looks whether the program and its collector still live */
#define STOP_LOOK_NS 1000000
#define STOP_LOOKS   2000u
/* Signals that glibc sends to each thread: one that blocks them would let setuid or a cancellation wait for ever. */
#define SIGNALS_OF_LIBC (SYS_SIGNAL(32) | SYS_SIGNAL(33))
enum { CALLBACKS = 64, STAT_BYTES = 512 };

typedef void order_function(const char *order, const char *device, void *arg);

/* Written once each, and never given back: who is called while another one takes over still finds his own. */
static struct callback {
    char name[WIRE_NAME_BYTES];
    order_function *function; /* NULL: none any more */
    void *arg;
    uint32_t is_there;
} callbacks[CALLBACKS];
static uint32_t callback_count;

static uint32_t taken;      /* number of the newest order that somebody took */
static int helped_pid;      /* the process that has the thread */
static int helper_tid;      /* 0: it has not begun yet */
static uint32_t is_halted;  /* it is to end, and none is to begin */
static uint32_t is_polling; /* the program takes its orders itself */

static struct wire_proc *own_slot(void)
{
    struct wire_proc *slot = process.slot;
    return slot && slot->pid == process.pid ? slot : NULL;
}

void order_begin(void)
{
    taken = __atomic_load_n(&process.slot->ordered, __ATOMIC_ACQUIRE);
}

/* --- doing one --- */

static uint64_t number_in(const char *text, long length, unsigned field)
{
    long at = 0;
    uint64_t number = 0;
    for (; field && at < length; at++)
        field -= text[at] == ' ';
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
        number = number * 10 + (uint64_t)(text[at] - '0');
    return number;
}

static long read_file(const char *path, char *text, size_t size)
{
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? -1 : sys_read(fd, text, size);
    if (fd >= 0)
        sys_close(fd);
    return n > 0 ? n : 0;
}

static uint64_t resident_bytes(void)
{
    char text[STAT_BYTES];
    return number_in(text, read_file("/proc/self/statm", text, sizeof text), 1) * 4096;
}

static uint32_t trim_heap(struct wire_order *o)
{
    if (!real.malloc_trim || !real.malloc_is_libc || process.heap_locks_unsure)
        return WIRE_ORDER_NOT_POSSIBLE;
    o->before_bytes = resident_bytes();
    real.malloc_trim(0);
    o->after_bytes = resident_bytes();
    struct mallinfo2 info = real.mallinfo2();
    o->arena_bytes = info.arena;
    o->mapped_bytes = info.hblkhd;
    return WIRE_ORDER_DONE;
}

static uint32_t trim_pools(struct wire_order *o, int is_sync)
{
    return cuda_pools_trim && cuda_pools_trim(o->ordinal, is_sync, &o->before_bytes, &o->after_bytes)
               ? WIRE_ORDER_DONE
               : WIRE_ORDER_NOT_POSSIBLE;
}

static int is_name(const char *a, const char *b)
{
    unsigned i = 0;
    while (i < WIRE_NAME_BYTES && a[i] == b[i])
        i++;
    return i == WIRE_NAME_BYTES;
}

static struct callback *find_callback(const char *name)
{
    uint32_t count = __atomic_load_n(&callback_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = count < CALLBACKS ? count : CALLBACKS; i-- > 0;)
        if (__atomic_load_n(&callbacks[i].is_there, __ATOMIC_ACQUIRE) && is_name(callbacks[i].name, name))
            return &callbacks[i];
    return NULL;
}

/* What is resident; of a GPU what its pools reserve, as far as there are any. */
static uint64_t held_bytes(const struct wire_order *o)
{
    uint64_t bytes = 0;
    if (o->ordinal == WIRE_DEVICE_HOST)
        return resident_bytes();
    return cuda_pools_reserved && cuda_pools_reserved(o->ordinal, &bytes) ? bytes : 0;
}

static uint32_t call_back(struct wire_order *o)
{
    const struct callback *c = find_callback(o->name);
    if (!c || !c->function)
        return WIRE_ORDER_NOT_POSSIBLE;
    o->before_bytes = held_bytes(o);
    c->function(o->name, o->device, c->arg);
    o->after_bytes = held_bytes(o);
    return WIRE_ORDER_DONE;
}

static uint32_t do_order(struct wire_order *o)
{
    switch (o->what) {
    case WIRE_ORDER_MALLOC_TRIM:
        return trim_heap(o);
    case WIRE_ORDER_POOL_TRIM:
    case WIRE_ORDER_POOL_TRIM_SYNC:
        return trim_pools(o, o->what == WIRE_ORDER_POOL_TRIM_SYNC);
    case WIRE_ORDER_CALLBACK:
        return call_back(o);
    default:
        return WIRE_ORDER_NOT_POSSIBLE;
    }
}

/* The next one, copied: what lies in shared memory may change. 0: there is none. */
static int take_order(struct wire_proc *slot, struct wire_order *o)
{
    uint32_t number = __atomic_load_n(&taken, __ATOMIC_RELAXED);
    uint32_t left = __atomic_load_n(&slot->ordered, __ATOMIC_ACQUIRE) - number;
    if (!left || left > WIRE_ORDERS)
        return 0;
    *o = slot->orders[(number + 1) % WIRE_ORDERS];
    o->number = number + 1;
    o->name[WIRE_NAME_BYTES - 1] = o->device[WIRE_NAME_BYTES - 1] = 0;
    o->before_bytes = o->after_bytes = o->arena_bytes = o->mapped_bytes = 0;
    return __atomic_compare_exchange_n(&taken, &number, number + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void answer(struct wire_proc *slot, const struct wire_order *done)
{
    struct wire_order *o = &slot->orders[done->number % WIRE_ORDERS];
    o->result = done->result;
    o->begin_stamp = done->begin_stamp;
    o->end_stamp = done->end_stamp;
    o->before_bytes = done->before_bytes;
    o->after_bytes = done->after_bytes;
    o->arena_bytes = done->arena_bytes;
    o->mapped_bytes = done->mapped_bytes;
    __atomic_store_n(&o->answered, done->number, __ATOMIC_RELEASE);
    record_wake_collector();
}

/* How many were done. */
static int take_orders(struct wire_proc *slot)
{
    struct wire_order o;
    int count = 0;
    while (take_order(slot, &o)) {
        o.begin_stamp = clock_now();
        o.result = do_order(&o);
        o.end_stamp = clock_now();
        if (own_slot() == slot)
            answer(slot, &o);
        count++;
    }
    return count;
}

/* --- the thread --- */

static int is_served(void)
{
    return gate.on && __atomic_load_n(&process.control->state, __ATOMIC_RELAXED) == WIRE_STATE_ON &&
           wire_collector_lives(process.control);
}

/* Whether the program's own threads are gone, the first one by pthread_exit: libc ends a program with its last thread,
 * which this one must not be. */
static int is_alone(void)
{
    char text[STAT_BYTES];
    long n = read_file("/proc/self/stat", text, sizeof text), name_end = n;
    while (name_end > 0 && text[name_end - 1] != ')')
        name_end--;
    const char *state = text + name_end + 1; /* field 3, and 17 further on the number of threads */
    long left = n - name_end - 1;
    return name_end > 0 && left > 0 && *state == 'Z' && number_in(state, left, 17) <= 2;
}

static void *help(void *unused)
{
    static const char name[] = "memprof";
    (void)unused;
    __atomic_store_n(&helper_tid, sys_gettid(), __ATOMIC_RELEASE);
    sys_call(SYS_prctl, PR_SET_NAME, name, 0);
    for (;;) {
        struct wire_proc *slot = own_slot();
        if (!slot || !is_served() || __atomic_load_n(&is_halted, __ATOMIC_ACQUIRE))
            break;
        uint32_t ordered = __atomic_load_n(&slot->ordered, __ATOMIC_ACQUIRE);
        if (!__atomic_load_n(&is_polling, __ATOMIC_RELAXED))
            take_orders(slot);
        if (__atomic_load_n(&slot->ordered, __ATOMIC_ACQUIRE) != ordered)
            continue;
        sys_futex_wait(&slot->ordered, ordered, LOOK_NS);
        if (is_alone())
            break;
    }
    __atomic_store_n(&helped_pid, 0, __ATOMIC_RELEASE);
    return NULL;
}

/* No signal of the program's comes to it: they are blocked before it begins. What libc allocates for it is not the
 * program's: a hook is under way as far as that goes. */
static __attribute__((noinline, force_align_arg_pointer)) void start_thread(struct thread *t)
{
    unsigned long id;
    int saved = errno;
    uint64_t signals = sys_signals_set(SYS_SIGNALS_OTHERS & ~SIGNALS_OF_LIBC);
    __atomic_store_n(&helper_tid, 0, __ATOMIC_RELEASE);
    t->depth++;
    barrier();
    if (!real.pthread_create || !real.pthread_detach || real.pthread_create(&id, NULL, help, NULL) != 0)
        __atomic_store_n(&helped_pid, 0, __ATOMIC_RELEASE);
    else
        real.pthread_detach(id);
    barrier();
    t->depth--;
    sys_signals_set(signals);
    errno = saved;
}

void order_start(void)
{
    int pid = __atomic_load_n(&helped_pid, __ATOMIC_RELAXED);
    if (!gate.on || !process.control->has_orders || process_is_filtered() || pid == process.pid ||
        __atomic_load_n(&is_polling, __ATOMIC_RELAXED) || __atomic_load_n(&is_halted, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&helped_pid, &pid, process.pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    start_thread(&self);
}

void order_start_first(void)
{
    uint64_t collector = 0;
    const char *p = process.control->session_path; /* "/proc/PID/fd/N" */
    for (unsigned slashes = 0; *p && slashes < 3; p++) {
        slashes += *p == '/';
        if (slashes == 2 && *p >= '0' && *p <= '9')
            collector = collector * 10 + (uint64_t)(*p - '0');
    }
    if (collector && (uint64_t)sys_call(SYS_getppid, 0, 0, 0) == collector)
        order_start();
}

/* The kernel knows of no such thread any more. */
static int is_gone(void)
{
    int tid = __atomic_load_n(&helper_tid, __ATOMIC_ACQUIRE);
    return tid ? sys_call(SYS_tgkill, process.pid, tid, 0) == -ESRCH
               : __atomic_load_n(&helped_pid, __ATOMIC_ACQUIRE) != process.pid;
}

int order_stop(void)
{
    struct wire_proc *slot = own_slot();
    if (!slot || __atomic_load_n(&helped_pid, __ATOMIC_ACQUIRE) != process.pid || sys_getpid() != process.pid ||
        __atomic_load_n(&helper_tid, __ATOMIC_ACQUIRE) == sys_gettid())
        return 0;
    __atomic_store_n(&is_halted, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < STOP_LOOKS && !is_gone(); i++) {
        sys_futex_wake(&slot->ordered);
        sys_sleep_ns(STOP_LOOK_NS);
    }
    return 1;
}

void order_go_on(void)
{
    __atomic_store_n(&is_halted, 0, __ATOMIC_RELEASE);
    order_start();
}

static __attribute__((noinline)) int may_be_signal(void)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    return unwind_may_be_signal(s);
}

void order_look(struct thread *t)
{
    const struct wire_proc *slot = own_slot();
    if (likely(!process.control->has_orders) || !slot || t->depth != 1 || t->writing ||
        __atomic_load_n(&helped_pid, __ATOMIC_RELAXED) == process.pid ||
        __atomic_load_n(&slot->ordered, __ATOMIC_RELAXED) == __atomic_load_n(&taken, __ATOMIC_RELAXED) ||
        process.heap_locks_unsure || may_be_signal())
        return;
    order_start();
}

/* --- what a program calls --- */

EXPORT int memprof_hook_poll(void);
EXPORT int memprof_hook_poll(void)
{
    /* a forked child that nothing has become of yet has its parent's slot still */
    struct wire_proc *slot = process.control && gate.on && !process_is_child() ? own_slot() : NULL;
    int saved = errno;
    if (!slot)
        return 0;
    if (unlikely(!is_polling))
        __atomic_store_n(&is_polling, 1, __ATOMIC_RELAXED);
    int count =
        likely(__atomic_load_n(&slot->ordered, __ATOMIC_RELAXED) == __atomic_load_n(&taken, __ATOMIC_RELAXED)) ||
                self.depth
            ? 0
            : take_orders(slot);
    errno = saved;
    return count;
}

/* Returns 0 where there have been too many different ones. */
EXPORT int memprof_hook_on(const char *order, order_function *function, void *arg);
EXPORT int memprof_hook_on(const char *order, order_function *function, void *arg)
{
    char name[WIRE_NAME_BYTES] = "";
    for (unsigned i = 0; order && order[i]; i++) {
        if (i + 1 == WIRE_NAME_BYTES)
            return 0;
        name[i] = order[i];
    }
    uint32_t place = __atomic_load_n(&callback_count, __ATOMIC_RELAXED);
    const struct callback *before = find_callback(name);
    if (!name[0] || place >= CALLBACKS || (before && before->function == function && before->arg == arg))
        return name[0] && place < CALLBACKS;
    place = __atomic_fetch_add(&callback_count, 1, __ATOMIC_ACQ_REL);
    if (place >= CALLBACKS) {
        __atomic_store_n(&callback_count, CALLBACKS, __ATOMIC_RELEASE);
        return 0;
    }
    for (unsigned i = 0; i < WIRE_NAME_BYTES; i++)
        callbacks[place].name[i] = name[i];
    callbacks[place].function = function;
    callbacks[place].arg = arg;
    __atomic_store_n(&callbacks[place].is_there, 1, __ATOMIC_RELEASE);
    return 1;
}
