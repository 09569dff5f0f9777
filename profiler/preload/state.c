#include "state.h"

#include "real.h"
#include "record.h"
#include "unwind/modules.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

extern char **__environ;
extern void *__libc_stack_end;

__thread struct thread self;
struct gate gate __attribute__((aligned(4096)));
struct process process;

static pthread_key_t end_key;
static int end_key_usable;

/* --- this process --- */

static const char *environment_value(const char *entry, const char *name)
{
    while (*name && *entry == *name)
        entry++, name++;
    return !*name && *entry == '=' ? entry + 1 : NULL;
}

static const char *environment(const char *name)
{
    const char *value = NULL;
    char **e = __environ;
    /* The executable's DT_PREINIT_ARRAY runs before libc has set it: argc, argv, NULL, then the environment. */
    if (!e && __libc_stack_end)
        e = (char **)__libc_stack_end + *(long *)__libc_stack_end + 2;
    for (; !value && e && *e; e++)
        value = environment_value(*e, name);
    return value;
}

#define RING_BYTES ((uint64_t)WIRE_RING_WORDS * sizeof(uint64_t))
/* Mapped at the start: 32 MiB. Threads take the rings of lower numbers first. */
#define RINGS_FIRST 64u

static void *session_map_part(int fd, uint64_t offset, uint64_t size_bytes)
{
    long at =
        sys_call6(SYS_mmap, 0, (long)size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (long)offset);
    if (at < 0 && at > -4096)
        return NULL;
    sys_call(SYS_madvise, at, size_bytes, MADV_DONTDUMP);
    return (void *)at;
}

static int session_valid(const struct wire_control *c)
{
    return c->magic == WIRE_MAGIC && c->version == WIRE_VERSION && c->ring_count <= WIRE_RINGS &&
           c->ring_words == WIRE_RING_WORDS && c->proc_count <= WIRE_PROCS && c->depth_max > 0 &&
           c->depth_max <= WIRE_STACK_MAX;
}

/* Fills process.control and process.data from the file that the environment names. */
static void session_map(const char *path)
{
    struct stat st;
    int fd = sys_open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    if (sys_call(SYS_fstat, fd, &st, 0) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == WIRE_TOTAL_BYTES) {
        uint64_t mapped_bytes = WIRE_DATA_OFFSET + RINGS_FIRST * RING_BYTES;
        process.control = session_map_part(fd, 0, mapped_bytes);
        if (process.control)
            process.data = (char *)process.control + WIRE_DATA_OFFSET;
        else
            process.control = session_map_part(fd, 0, mapped_bytes = WIRE_DATA_OFFSET);
        if (process.control && !session_valid(process.control)) {
            sys_unmap(process.control, mapped_bytes);
            process.control = NULL;
            process.data = NULL;
        }
    }
    sys_close(fd);
}

/* Where the path cannot be opened (another root, another user): a shared mapping can be had once more from one that is
 * there, and longer; its part before the ring goes again. */
static void *ring_map_again(uint64_t offset)
{
    if (!process.data)
        return NULL;
    long at = sys_call6(SYS_mremap, (long)process.data, 0, (long)(offset + RING_BYTES), MREMAP_MAYMOVE, 0, 0);
    if (at < 0 && at > -4096)
        return NULL;
    sys_unmap((void *)at, offset);
    sys_call(SYS_madvise, at + (long)offset, RING_BYTES, MADV_DONTDUMP);
    return (char *)at + offset;
}

/* A program may limit its address space at any time (RLIMIT_AS), so no more of it is taken than rings are used. */
static uint64_t *ring_words(uint32_t index)
{
    static uint64_t *maps[WIRE_RINGS]; /* kept for the ring's next thread; its present one writes here */
    uint64_t offset = (uint64_t)index * RING_BYTES;
    if (process.data && index < RINGS_FIRST)
        return (uint64_t *)(process.data + offset);
    if (maps[index])
        return maps[index];
    int fd = sys_open(process.control->session_path, O_RDWR | O_CLOEXEC);
    void *words = NULL;
    if (fd >= 0) {
        words = session_map_part(fd, WIRE_DATA_OFFSET + offset, RING_BYTES);
        sys_close(fd);
    }
    if (!words)
        words = ring_map_again(offset);
    maps[index] = words;
    return words;
}

static struct wire_proc *slot_at(uint32_t i)
{
    return (struct wire_proc *)((char *)process.control + WIRE_PROCS_OFFSET) + i;
}

static struct wire_ring *ring_at(uint32_t i)
{
    return (struct wire_ring *)((char *)process.control + WIRE_HEADERS_OFFSET) + i;
}

/* From the link "pid:[4026531836]". */
static uint64_t pid_namespace(void)
{
    char link[64];
    uint64_t number = 0;
    long n = sys_readlink("/proc/self/ns/pid", link, sizeof link);
    for (long i = 5; i < n && link[i] >= '0' && link[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(link[i] - '0');
    return number;
}

static int slot_claim(uint32_t start_kind, uint32_t parent_slot, int parent_pid)
{
    uint32_t count = process.control->proc_count;
    uint64_t own_namespace = pid_namespace();
    for (uint32_t i = 0; i < count; i++) {
        struct wire_proc *p = slot_at(i);
        uint32_t expected = WIRE_PROC_FREE;
        if (__atomic_load_n(&p->state, __ATOMIC_RELAXED) != WIRE_PROC_FREE ||
            !__atomic_compare_exchange_n(&p->state, &expected, WIRE_PROC_CLAIMED, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        /* at once: should we be killed here, the collector must know whose slot it is */
        p->pid_namespace = own_namespace;
        __atomic_store_n(&p->pid, process.pid, __ATOMIC_RELEASE);
        p->parent_pid = parent_pid;
        p->parent_slot = parent_slot;
        p->start_kind = start_kind;
        p->counters = (struct wire_counters){0};
        long n = sys_readlink("/proc/self/exe", p->exe, sizeof p->exe - 1);
        p->exe[n > 0 ? n : 0] = 0;
        int fd = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : sys_read(fd, p->command, sizeof p->command);
        if (fd >= 0)
            sys_close(fd);
        p->command_bytes = n > 0 ? (uint32_t)n : 0;
        p->start_stamp = clock_now();
        process.slot = p;
        process.slot_index = i;
        __atomic_store_n(&p->state, WIRE_PROC_LIVE, __ATOMIC_RELEASE);
        return 1;
    }
    __atomic_fetch_add(&process.control->procs_refused, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Makes a forked child notice that it is one. */
static uint32_t gate_guard(void)
{
    gate.own = 1;
    process.guard = NULL;
    if (sys_call(SYS_madvise, &gate, sizeof gate, MADV_WIPEONFORK) == 0)
        return GATE_OPEN;
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

static void process_start(uint32_t start_kind, uint32_t parent_slot, int parent_pid)
{
    process.pid = sys_getpid();
    if (__atomic_load_n(&process.control->state, __ATOMIC_RELAXED) != WIRE_STATE_ON ||
        !slot_claim(start_kind, parent_slot, parent_pid)) {
        process.state = PROCESS_OFF;
        return;
    }
    unwind_counters = &process.slot->counters;
    if (real.program_has_malloc)
        COUNT(own_malloc, 1);
    process.heap_sample_interval = process.control->sample_interval;
    process.heap_sample_due = process.control->sample_interval ? 0 : UINT64_MAX; /* 0: with the first allocation */
    process.heap_walk = (struct heap_walk){0};
    uint32_t on = gate_guard();
    process.state = PROCESS_ON;
    __atomic_store_n(&gate.on, on, __ATOMIC_RELEASE);
}

void process_attach(void)
{
    uint32_t expected = PROCESS_NEW;
    if (!__atomic_compare_exchange_n(&process.state, &expected, PROCESS_ATTACHING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    const char *path = environment(WIRE_ENV_SESSION);
    if (path && *path)
        session_map(path);
    if (!process.control) {
        process.state = PROCESS_OFF;
        return;
    }
    process.use_tsc = process.control->flags & WIRE_CLOCK_TSC;
    process_start(WIRE_START_EXEC, 0, (int)sys_call(SYS_getppid, 0, 0, 0));
}

/* Where a hook goes on in a forked child that has no ring: it finishes its record here, and nobody reads it. */
static struct wire_ring orphan_ring;
static uint64_t orphan_words[WIRE_RING_WORDS];

static void thread_orphan(struct thread *t)
{
    if (gate.on)
        process_stop();
    t->words = orphan_words;
    t->head = 0;
    t->limit = WIRE_RING_WORDS / 2;
    orphan_ring.pid = process.pid;
    orphan_ring.tid = t->tid;
    orphan_ring.state = WIRE_RING_LIVE;
    t->ring = &orphan_ring;
}

static int thread_attach(struct thread *t);

void process_after_fork(int libc_knows, int torn)
{
    uint32_t parent_slot = process.slot_index + 1;
    struct thread *t = &self;
    uint32_t depth =
        t->depth; /* not 0: of a hook that this fork's signal handler interrupted; it goes on in the child */
    t->depth = 1;
    barrier();
    t->ring = NULL;
    t->writing = t->refused = 0;
    if (depth && torn && process.control->flags & WIRE_FOLLOW)
        COUNT(stopped, 1); /* to the parent: the child gets no slot */
    process.slot = NULL;
    unwind_counters = NULL;
    gate.on = GATE_SHUT;
    if (!libc_knows && !__libc_single_threaded)
        process.heap_locks_unsure = 1;
    if ((depth && torn) || !(process.control->flags & WIRE_FOLLOW)) {
        process.state = PROCESS_OFF;
    } else {
        process.state = PROCESS_ATTACHING;
        unwind_after_fork();
        record_forget_stacks(depth != 0);
        process_start(WIRE_START_FORK, parent_slot, process.pid);
    }
    if (gate.on)
        thread_attach(t);
    if (depth && !t->ring)
        thread_orphan(t);
    barrier();
    t->depth = depth;
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

/* --- this thread --- */

static uint64_t stack_top(uint64_t sp)
{
    /* glibc puts a thread's descriptor, which fs points to, at the top of its stack; the first thread's lies elsewhere
     */
    uint64_t descriptor;
    __asm__("mov %%fs:0, %0" : "=r"(descriptor));
    if (sp < descriptor)
        return descriptor;
    return sp < (uint64_t)__libc_stack_end ? (uint64_t)__libc_stack_end : 0;
}

#define ADDRESSES_BYTES (2ul * WIRE_STACK_MAX * sizeof(uint64_t))

int thread_memory(struct thread *t)
{
    size_t bytes = (unwind_thread_bytes() + 63) & ~63ul;
    char *memory = sys_map(bytes + ADDRESSES_BYTES);
    if (!memory) {
        COUNT(map_refused, 1);
        return 0;
    }
    t->addresses = (uint64_t *)(memory + bytes);
    t->unwind = (struct unwind_thread *)memory;
    unwind_thread_init(t->unwind, stack_top((uint64_t)__builtin_frame_address(0)), process.control->depth_max);
    return 1;
}

void thread_closing(struct thread *t)
{
    if (!t->ring)
        return;
    t->depth++; /* hooks of signal handlers stay out while the buffers go */
    barrier();
    if (t->unwind) {
        void *memory = t->unwind;
        t->unwind = NULL;
        sys_unmap(memory, ((unwind_thread_bytes() + 63) & ~63ul) + ADDRESSES_BYTES);
    }
    if (t->python) {
        void *memory = t->python;
        t->python = NULL;
        record_unmap_python(memory);
    }
    if (thread_owns_ring(t))
        __atomic_store_n(&t->ring->state, WIRE_RING_CLOSING, __ATOMIC_RELEASE);
    barrier();
    t->depth--;
}

/* Destructors of thread-specific data run in up to four rounds, and others may allocate in each: ours is done in the
 * last. */
static void thread_end(void *round)
{
    if ((uintptr_t)round < 4)
        pthread_setspecific(end_key, (void *)((uintptr_t)round + 1));
    else
        thread_closing(&self);
}

static struct wire_ring *ring_pop(void)
{
    uint64_t *list = &process.control->free_rings;
    uint64_t old = __atomic_load_n(list, __ATOMIC_ACQUIRE);
    for (;;) {
        uint32_t index = (uint32_t)old;
        if (!index || index > process.control->ring_count)
            return NULL;
        struct wire_ring *r = ring_at(index - 1);
        uint32_t next = __atomic_load_n(&r->next_free, __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(list, &old, ((old >> 32) + 1) << 32 | next, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return r;
    }
}

static int thread_attach(struct thread *t)
{
    struct wire_ring *r = ring_pop();
    if (!r) {
        t->refused = 1;
        __atomic_fetch_add(&process.control->rings_refused, 1, __ATOMIC_RELAXED);
        return 0;
    }
    uint64_t *words = ring_words((uint32_t)(r - ring_at(0)));
    if (!words) { /* the ring stays off the free list: the collector sees it closing, and its thread alive */
        t->refused = 1;
        COUNT(map_refused, 1);
    }
    r->proc_slot = process.slot_index;
    r->pid = process.pid;
    r->tid = t->tid = sys_gettid();
    r->is_main = r->tid == r->pid;
    r->start_stamp = clock_now();
    __atomic_store_n(&r->busy, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&r->state, words ? WIRE_RING_LIVE : WIRE_RING_CLOSING, __ATOMIC_RELEASE);
    if (!words)
        return 0;
    t->words = words;
    t->head = r->head;
    t->limit = t->head;
    t->writing = 0;
    if (t->unwind) /* a forked child keeps its parent's buffers, not what they remember */
        unwind_thread_init(t->unwind, stack_top((uint64_t)__builtin_frame_address(0)), process.control->depth_max);
    else
        thread_memory(t);
    t->ring = r;
    /* The first 32 keys live in the thread itself; a later one would allocate here. */
    if (end_key_usable && end_key < 32)
        pthread_setspecific(end_key, (void *)1);
    return 1;
}

/* The outermost hook of this thread was left by longjmp out of a signal handler; what it was writing never becomes
 * visible. Another one begins. */
static int enter_anew(struct thread *t, struct unwind_state s)
{
    if (t->writing) {
        t->head = t->ring->head;
        t->writing = 0;
        __atomic_store_n(&t->ring->busy, 0, __ATOMIC_RELEASE);
    }
    t->depth = 1;
    t->outer_sp = s.sp;
    barrier();
    if (t->ring || (!t->refused && thread_attach(t)))
        return 1;
    t->depth = 0;
    return 0;
}

static __attribute__((noinline)) int enter_nested(struct thread *t, struct unwind_state s)
{
    enum unwind_above above = unwind_above(t->unwind, s, t->outer_sp);
    if (above == UNWIND_NO_HOOK)
        return enter_anew(t, s);
    if (!t->ring || !t->unwind)
        return 0;
    if (t->depth < 2 && above == UNWIND_SIGNAL) {
        COUNT(nested_recorded, 1);
        t->depth++;
        return 1;
    }
    COUNT(nested_skipped, 1);
    return 0;
}

static __attribute__((noinline)) int enter_first(struct thread *t, struct unwind_state s)
{
    t->depth = 1;
    t->outer_sp = s.sp;
    barrier();
    if (likely(t->ring || (!t->refused && thread_attach(t))))
        return 1;
    COUNT(lost_event, 1);
    barrier();
    t->depth = 0;
    return 0;
}

static __attribute__((noinline)) void process_meet(struct thread *t, struct unwind_state s)
{
    if (process.state == PROCESS_ON && process_is_child()) {
        process_after_fork(0, t->writing != 0);
    } else if (process.state == PROCESS_NEW && !t->depth) {
        t->depth = 1;
        t->outer_sp = s.sp;
        barrier();
        real_init();
        process_attach();
        barrier();
        t->depth = 0;
    }
}

int thread_enter_slow(struct thread *t, struct unwind_state s)
{
    if (gate.on != GATE_OPEN) {
        process_meet(t, s);
        if (!gate.on) {
            /* not a child's: its parent's slot may be another's by now */
            if (process.state == PROCESS_STOPPED && !process.guard && gate.own && !t->depth)
                COUNT(lost_event, 1);
            return 0;
        }
    }
    return t->depth ? enter_nested(t, s) : enter_first(t, s);
}

int thread_enter_inside(struct thread *t)
{
    if (!gate.on || !t->ring || t->depth == 0)
        return 0;
    t->depth++;
    barrier();
    return 1;
}

/* --- start and end --- */

/* Where children are not followed, their environment must not bring them here. */
static void environment_strip(void)
{
    const char *library = process.control->library_path;
    char **to = __environ;
    for (char **from = __environ; from && *from; from++) {
        char *value = (char *)(uintptr_t)environment_value(*from, WIRE_ENV_PRELOAD);
        if (environment_value(*from, WIRE_ENV_SESSION))
            continue;
        if (value) {
            size_t n = 0;
            while (library[n] && value[n] == library[n])
                n++;
            if (!library[n] && !value[n])
                continue;
            if (!library[n] && (value[n] == ':' || value[n] == ' ')) { /* ours is first: what follows is the user's */
                size_t i = 0;
                do
                    value[i] = value[n + 1 + i];
                while (value[i++]);
            }
        }
        *to++ = *from;
    }
    if (to)
        *to = NULL;
}

static void process_exit(int status, void *unused)
{
    (void)unused;
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    /* the child of a vfork runs its parent's handlers where it calls exit */
    if (sys_getpid() != process.pid && gate.on)
        return;
    if (!thread_enter(t, s))
        return;
    record_heap_sample(t);
    uint64_t words[] = {WIRE_WORD1(WIRE_EXIT, 0, (uint32_t)status)};
    record_words(t, words, 2);
    thread_leave(t);
}

__attribute__((constructor)) static void library_start(void)
{
    struct thread *t = &self;
    real_init();
    t->outer_sp = (uint64_t)__builtin_frame_address(0);
    t->depth++; /* what libc allocates here is not the program's */
    barrier();
    process_attach();
    if (gate.on) {
        end_key_usable = pthread_key_create(&end_key, thread_end) == 0;
        on_exit(process_exit, NULL);
        if (!(process.control->flags & WIRE_FOLLOW))
            environment_strip();
    }
    barrier();
    t->depth--;
    if (gate.on && !t->ring) {
        struct unwind_state s;
        UNWIND_HERE(s);
        if (thread_enter(t, s))
            thread_leave(t);
    }
}
