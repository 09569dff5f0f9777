/*
 * By the thread's whole stack, from .eh_frame, up to its beginning; a stack that cannot be walked to there is not safe.
 * Nothing on it may be in the loader, in the allocator or in our library. Of libc there may only be: at the inner end
 * a function that is known to sleep without one of these locks, at the outer end what starts threads and the program,
 * and in between what calls back without a lock.
 */
#include "safe.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 1024u

/* Whoever called them: none of the code that takes these locks calls them meanwhile. */
static const char *const calls[] = {
    "read",       "write",       "readv",        "writev",       "pread64",         "pwrite64", "recv",
    "recvfrom",   "recvmsg",     "recvmmsg",     "send",         "sendto",          "sendmsg",  "sendmmsg",
    "accept",     "accept4",     "connect",      "poll",         "ppoll",           "select",   "pselect",
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "nanosleep",    "clock_nanosleep", "pause",    "sigsuspend",
    "sigwait",    "sigwaitinfo", "sigtimedwait", "wait4",        "waitpid",         "waitid",   "flock",
    "fsync",      "fdatasync",   "sched_yield",  "io_getevents", "mq_timedreceive", "msgrcv",   "semop",
    "semtimedop",
};
/* Those that wait for a futex, as malloc does for its lock: by whom the program has called. */
static const char *const waits[] = {
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "pthread_barrier_wait",
    "pthread_join",
    "pthread_timedjoin_np",
    "pthread_clockjoin_np",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "syscall",
};
static const char *const callers[] = {"qsort", "qsort_r", "bsearch"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct range {
    uint64_t start, end;
};

struct safe {
    const struct target *target;
    struct range call[COUNT(calls)], wait[COUNT(waits)], caller[COUNT(callers)], exit, start;
    unsigned frame_count;
    uint64_t frames[FRAMES_MAX]; /* addresses that are in the function */
};

static void find_ranges(const struct target *t, const char *const *names, size_t count, struct range *ranges)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t size = 0, at = remote_symbol(&t->remote, t->libc, names[i], &size);
        ranges[i] = at ? (struct range){at, at + size} : (struct range){0, 0};
    }
}

struct safe *safe_open(const struct target *t)
{
    static const char *const ends[] = {"exit"}, *const starts[] = {"__libc_start_main"};
    struct safe *s = xcalloc(1, sizeof *s);
    s->target = t;
    find_ranges(t, calls, COUNT(calls), s->call);
    find_ranges(t, waits, COUNT(waits), s->wait);
    find_ranges(t, callers, COUNT(callers), s->caller);
    find_ranges(t, ends, 1, &s->exit);
    find_ranges(t, starts, 1, &s->start);
    return s;
}

void safe_close(struct safe *s)
{
    free(s);
}

static int is_in(const struct range *ranges, size_t count, uint64_t pc)
{
    for (size_t i = 0; i < count; i++)
        if (pc >= ranges[i].start && pc < ranges[i].end)
            return 1;
    return 0;
}

static int is_libc(const struct safe *s, unsigned frame)
{
    return frame < s->frame_count && remote_holds(s->target->libc, s->frames[frame]);
}

/* In the rest of the page behind an object's code, where code of one of us may lie that was killed. */
static int is_behind_code(const struct remote *r, uint64_t pc)
{
    for (size_t i = 0; i < r->count; i++)
        if (pc >= r->objects[i].code_end && pc < remote_code_page_end(&r->objects[i]))
            return 1;
    return 0;
}

static int is_frame_safe(const struct safe *s, uint64_t pc)
{
    const struct target *t = s->target;
    return !is_behind_code(&t->remote, pc) && !remote_holds(t->loader, pc) && !remote_holds(t->library, pc) &&
           (t->allocator == t->libc || !remote_holds(t->allocator, pc)) && !is_in(&s->exit, 1, pc);
}

static int are_frames_safe(const struct safe *s)
{
    unsigned inner = 0, outer = s->frame_count;
    for (unsigned i = 0; i < s->frame_count; i++)
        if (!is_frame_safe(s, s->frames[i]))
            return 0;
    while (is_libc(s, inner))
        inner++;
    if (outer > 1 && is_in(&s->start, 1, s->frames[outer - 2])) /* _start */
        outer--;
    while (outer > inner && is_libc(s, outer - 1))
        outer--;
    if (inner && !is_in(s->call, COUNT(calls), s->frames[0]) && !is_in(s->wait, COUNT(waits), s->frames[inner - 1]))
        return 0;
    for (unsigned i = inner; i < outer; i++)
        if (is_libc(s, i) && !is_in(s->caller, COUNT(callers), s->frames[i]))
            return 0;
    return inner < s->frame_count;
}

static int add_frame(Dwfl_Frame *frame, void *arg)
{
    struct safe *s = arg;
    Dwarf_Addr pc;
    bool is_exact;
    if (s->frame_count == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &is_exact))
        return DWARF_CB_ABORT;
    s->frames[s->frame_count++] = is_exact ? pc : pc - 1;
    return DWARF_CB_OK;
}

/* Nothing is looked for elsewhere, least of all on the network. */
static int no_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                         const char *link, GElf_Word crc, char **path)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)path;
    return -1;
}

int safe_is(struct safe *s, pid_t tid)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_debug_file};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    s->frame_count = 0;
    int is_whole = dwfl && dwfl_linux_proc_report(dwfl, s->target->pid) == 0 &&
                   dwfl_report_end(dwfl, NULL, NULL) == 0 && dwfl_linux_proc_attach(dwfl, s->target->pid, true) == 0 &&
                   dwfl_getthread_frames(dwfl, tid, add_frame, s) == 0;
    dwfl_end(dwfl);
    return is_whole && s->frame_count && remote_is_consistent(&s->target->remote) && are_frames_safe(s);
}
