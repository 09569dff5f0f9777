/* Processes, threads and modules: forks, new images and their environment, ends, names, dlclose. None of these records
 * while its real call runs: what libc allocates in it is recorded as in a plain run. */
#include "environment.h"
#include "image.h"
#include "last_look.h"
#include "python/python.h"
#include "real.h"
#include "record.h"
#include "record_heap.h"
#include "unhooked.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NEED(name)                                                                                                     \
    do {                                                                                                               \
        if (unlikely(!real.name))                                                                                      \
            real_init();                                                                                               \
    } while (0)

extern char **__environ;

/* Records one event without a stack, if this process (not a vfork's child that borrows its memory) is recorded. */
/* Returns whether the collector may read it now: not where the hook was called out of another one's work. */
static int note(struct unwind_state s, const uint64_t *words_from_1, unsigned count)
{
    struct thread *t = &self;
    int saved = errno, is_told = 0;
    if (gate.on && sys_getpid() == process.pid && thread_enter(t, s)) {
        record_words(t, words_from_1, count);
        is_told = !t->writing;
        thread_leave(t);
    }
    errno = saved;
    return is_told;
}

/* --- fork and the end --- */

/* What nobody can ask any more once this image is gone. */
static void note_image(struct unwind_state s)
{
    struct thread *t = &self;
    int saved = errno;
    if (gate.on && sys_getpid() == process.pid && thread_enter(t, s)) {
        record_heap_last(t);
        thread_leave(t);
    }
    errno = saved;
    image_ends();
}

static int record_is_torn(void)
{
    return self.ring && self.head != self.ring->head;
}

static pid_t forked(pid_t pid, int libc_knows, int torn)
{
    if (pid == 0 && process.state == PROCESS_ON && process_is_child()) {
        int saved = errno;
        process_after_fork(libc_knows, torn);
        errno = saved;
    } else if (pid == 0 && process.state == PROCESS_REFUSED && process.control->flags & WIRE_FOLLOW) {
        __atomic_fetch_add(&process.control->procs_refused, 1, __ATOMIC_RELAXED);
    }
    self.fork_stamp = 0;
    return pid;
}

EXPORT pid_t fork(void)
{
    NEED(fork);
    int torn = record_is_torn();
    self.fork_stamp = clock_ordered(); /* first of all: the parent goes on while the child is still on its way */
    return forked(real.fork(), 1, torn);
}

EXPORT pid_t _Fork(void)
{
    NEED(_Fork);
    int torn = record_is_torn();
    if (real._Fork) {
        self.fork_stamp = clock_ordered();
        return forked(real._Fork(), 0, torn);
    }
    errno = ENOSYS;
    return -1;
}

static void note_exit(struct unwind_state s, int status)
{
    note_image(s);
    uint64_t words[] = {WIRE_WORD1(WIRE_EXIT, 0, (uint32_t)status)};
    if (note(s, words, 2) && last_look_wait())
        note(s, words, 2);
}

EXPORT void _exit(int status)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(_exit);
    note_exit(s, status);
    real._exit(status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(_exit);
    note_exit(s, status);
    real._exit(status);
    __builtin_unreachable();
}

EXPORT void quick_exit(int status)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(quick_exit);
    note_exit(s, status);
    real.quick_exit(status);
    __builtin_unreachable();
}

/* --- new images --- */

static size_t length_of(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

static int holds(const char *list, const char *word)
{
    size_t n = length_of(word);
    for (const char *p = list; *p; p++) {
        size_t i = 0;
        if (p != list && p[-1] != ':' && p[-1] != ' ')
            continue;
        while (i < n && p[i] == word[i])
            i++;
        if (i == n && (!p[n] || p[n] == ':' || p[n] == ' '))
            return 1;
    }
    return 0;
}

static char *join(char *out, const char *a, const char *b)
{
    while (*a)
        *out++ = *a++;
    while (*b)
        *out++ = *b++;
    *out = 0;
    return out;
}

/* What a new image's environment lacks for it to be recorded. The room for the answer is the caller's stack: a vfork's
 * child shares its parent's memory. */
struct environment_need {
    size_t entries;
    size_t text_bytes;
    const char *preload; /* the value that is there */
    int session, preload_ok;
    int is_apart;        /* an empty session: no part of the recording, as are reports that the program makes of it */
    int without_library; /* it is not found, or not welcome: LD_PRELOAD shall not name it */
};

static int environment_needs(char *const *env, const struct image_target *target, struct environment_need *need)
{
    *need = (struct environment_need){.without_library = (int)target->without_library};
    if (!gate.on || !(process.control->flags & WIRE_FOLLOW))
        return 0;
    for (char *const *e = env; e && *e; e++) { /* NULL: empty, as for the kernel */
        const char *value = environment_value(*e, "LD_PRELOAD");
        if (value) {
            need->preload = value;
            need->preload_ok = holds(value, process.control->library_path);
        }
        value = environment_value(*e, WIRE_ENV_SESSION);
        if (value && !need->session && !*value)
            need->is_apart = need->without_library = 1;
        need->session |= value != NULL;
        need->entries++;
    }
    need->text_bytes = sizeof "LD_PRELOAD=" + length_of(process.control->library_path) + 2 +
                       (need->preload ? length_of(need->preload) : 0) + sizeof WIRE_ENV_SESSION "=" + WIRE_SESSION_MAX;
    return need->without_library ? need->preload_ok : !need->session || !need->preload_ok;
}

/* The words of a list but one. */
static char *join_without(char *out, const char *list, const char *word)
{
    size_t n = length_of(word);
    for (const char *p = list, *end; *p; p = end) {
        end = p;
        while (*end && *end != ':' && *end != ' ')
            end++;
        int is_it = (size_t)(end - p) == n;
        for (size_t i = 0; is_it && i < n; i++)
            is_it = p[i] == word[i];
        end += *end != 0;
        for (; !is_it && p < end; p++)
            *out++ = *p;
    }
    *out = 0;
    return out;
}

#define ENTRIES_MORE    3    /* ours and the end */
#define STACK_BYTES_MAX 4096 /* larger environments are copied to a map: stacks may be small */

static char **environment_build(char *const *env, const struct environment_need *need, void *room)
{
    char **out = room, *text = (char *)(out + need->entries + ENTRIES_MORE);
    size_t n = 0;
    for (char *const *e = env; e && *e; e++)
        if (!(environment_value(*e, "LD_PRELOAD") && need->preload_ok == need->without_library) &&
            !environment_value(*e, WIRE_ENV_SESSION))
            out[n++] = *e;
    if (need->without_library) {
        const char *rest = text + sizeof "LD_PRELOAD=" - 1;
        out[n] = text;
        text = join_without(join(text, "LD_PRELOAD=", ""), need->preload, process.control->library_path) + 1;
        n += *rest != 0;
    } else if (!need->preload_ok) {
        out[n++] = text;
        text = join(text, "LD_PRELOAD=", process.control->library_path);
        if (need->preload && *need->preload)
            text = join(text, ":", need->preload);
        text++;
    }
    out[n++] = text;
    join(text, WIRE_ENV_SESSION "=", need->is_apart ? "" : process.control->session_path);
    out[n] = NULL;
    return out;
}

/* The environment to give the new image: env itself, or a copy on this function's caller's stack or in a map, which
 * ENVIRONMENT_DONE gives back when the call returns. */
#define WITH_ENVIRONMENT(env)                                                                                          \
    struct environment_need need;                                                                                      \
    void *mapped = NULL;                                                                                               \
    size_t room_bytes = 0;                                                                                             \
    const int has_needs = environment_needs((env), &target, &need);                                                    \
    if (need.is_apart)                                                                                                 \
        target.reach = WIRE_REACH_APART;                                                                               \
    if (has_needs) {                                                                                                   \
        room_bytes = (need.entries + ENTRIES_MORE) * sizeof(char *) + need.text_bytes;                                 \
        void *room = room_bytes > STACK_BYTES_MAX ? mapped = sys_map(room_bytes) : alloca(room_bytes);                 \
        if (room)                                                                                                      \
            (env) = environment_build((env), &need, room);                                                             \
    }

#define ENVIRONMENT_DONE()                                                                                             \
    do {                                                                                                               \
        if (mapped)                                                                                                    \
            sys_unmap(mapped, room_bytes);                                                                             \
    } while (0)

static void note_target(struct unwind_state s, enum wire_op op, pid_t pid, struct image_target *t)
{
    unsigned count = 4 + (t->bytes + 7) / 8;
    t->words[0] = (uint64_t)op << 56 | (uint64_t)t->reach << 48 | (uint64_t)count << 32 | t->bytes;
    t->words[1] = (uint64_t)pid;
    note(s, t->words, count);
}

/* A vfork's child has its parent's memory, and so has one that runs beside it (clone with CLONE_VM alone): nothing of
 * this thread is touched. Returns the place. */
static uint64_t note_borrower(pid_t pid, const struct image_target *t)
{
    struct wire_control *c = process.control;
    uint64_t place = __atomic_fetch_add(&c->spawns_begun, 1, __ATOMIC_RELAXED) % WIRE_SPAWNS;
    __atomic_store_n(&c->spawns[place].stamp, clock_now(), __ATOMIC_RELAXED);
    c->spawns[place].reach = t->reach;
    join(c->spawns[place].target, t->bytes ? image_target_path(t) : "", "");
    __atomic_store_n(&c->spawns[place].who, (uint64_t)process.slot_index << 32 | (uint32_t)pid, __ATOMIC_RELEASE);
    __atomic_fetch_add(&c->spawns_told, 1, __ATOMIC_RELEASE);
    return place;
}

static int is_borrower(pid_t pid)
{
    return gate.on && pid != process.pid && !process_is_child();
}

/* The place of a borrower's note. */
static uint64_t note_exec(struct unwind_state s, struct image_target *t)
{
    pid_t pid = sys_getpid();
    if (is_borrower(pid))
        return t->reach == WIRE_REACH_APART ? 0 : note_borrower(pid, t);
    note_image(s);
    note_target(s, WIRE_EXEC, pid, t);
    return 0;
}

/* This image goes on: takes back what note_exec said. */
static void note_exec_failed(struct unwind_state s, struct image_target *t, uint64_t place)
{
    pid_t pid = sys_getpid();
    uint64_t words[] = {WIRE_WORD1(WIRE_PAD, 0, 0)};
    if (is_borrower(pid) && t->reach == WIRE_REACH_APART)
        return; /* nothing was said */
    if (is_borrower(pid)) {
        uint64_t who = (uint64_t)process.slot_index << 32 | (uint32_t)pid;
        t->reach = WIRE_REACH_FAILED;
        t->bytes = 0;
        if (!__atomic_compare_exchange_n(&process.control->spawns[place].who, &who, 0, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            note_borrower(pid, t);
    } else {
        note(s, words, 2);
    }
}

/* The body of a hook of the real function `name`, by which this process becomes the image of file (as execveat takes
 * it with fd, or in PATH): calls with e, the environment to give it. */
#define BECOME_IMAGE(name, fd, file, search, env, call)                                                                \
    struct unwind_state s;                                                                                             \
    UNWIND_HERE(s);                                                                                                    \
    NEED(name);                                                                                                        \
    struct image_target target;                                                                                        \
    image_target(&target, fd, file, search);                                                                           \
    char *const *e = (env);                                                                                            \
    WITH_ENVIRONMENT(e);                                                                                               \
    uint64_t place = note_exec(s, &target);                                                                            \
    int result = (call);                                                                                               \
    ENVIRONMENT_DONE();                                                                                                \
    note_exec_failed(s, &target, place);                                                                               \
    return result

/* The same of one that starts another process: calls with e, and told: where its id is to be. */
#define SPAWN_IMAGE(name, file, search, env, call)                                                                     \
    struct unwind_state s;                                                                                             \
    UNWIND_HERE(s);                                                                                                    \
    NEED(name);                                                                                                        \
    pid_t own, *told = pid ? pid : &own;                                                                               \
    struct image_target target;                                                                                        \
    image_target(&target, AT_FDCWD, file, search);                                                                     \
    char *const *e = (env);                                                                                            \
    WITH_ENVIRONMENT(e);                                                                                               \
    int result = (call);                                                                                               \
    ENVIRONMENT_DONE();                                                                                                \
    if (result == 0 && !need.is_apart)                                                                                 \
        note_target(s, WIRE_SPAWN, *told, &target);                                                                    \
    return result

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
    BECOME_IMAGE(execve, AT_FDCWD, path, IMAGE_AT, env, real.execve(path, argv, e));
}

EXPORT int execv(const char *path, char *const argv[])
{
    BECOME_IMAGE(execve, AT_FDCWD, path, IMAGE_AT, __environ, real.execve(path, argv, e));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
    BECOME_IMAGE(execvpe, AT_FDCWD, file, IMAGE_IN_PATH, env, real.execvpe(file, argv, e));
}

EXPORT int execvp(const char *file, char *const argv[])
{
    BECOME_IMAGE(execvpe, AT_FDCWD, file, IMAGE_IN_PATH, __environ, real.execvpe(file, argv, e));
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
    BECOME_IMAGE(fexecve, fd, "", IMAGE_AT, env, real.fexecve(fd, argv, e));
}

static int no_such_call(void)
{
    errno = ENOSYS;
    return -1;
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const env[], int flags)
{
    BECOME_IMAGE(execveat, fd, path, IMAGE_AT, env,
                 real.execveat ? real.execveat(fd, path, argv, e, flags) : no_such_call());
}

/* The list forms: count, then copy to the stack. */
#define COLLECT_ARGUMENTS(first)                                                                                       \
    va_list args;                                                                                                      \
    size_t count = 1;                                                                                                  \
    va_start(args, first);                                                                                             \
    while (va_arg(args, char *))                                                                                       \
        count++;                                                                                                       \
    va_end(args);                                                                                                      \
    char **argv = alloca((count + 1) * sizeof *argv);                                                                  \
    argv[0] = (char *)(uintptr_t)(first);                                                                              \
    va_start(args, first);                                                                                             \
    for (size_t i = 1; i <= count; i++)                                                                                \
    argv[i] = va_arg(args, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
    COLLECT_ARGUMENTS(first);
    va_end(args);
    return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    COLLECT_ARGUMENTS(first);
    va_end(args);
    return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    COLLECT_ARGUMENTS(first);
    char *const *env = va_arg(args, char *const *);
    va_end(args);
    return execve(path, argv, env);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
    SPAWN_IMAGE(posix_spawn, path, IMAGE_AT, env, real.posix_spawn(told, path, actions, attributes, argv, e));
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
    SPAWN_IMAGE(posix_spawnp, file, IMAGE_IN_PATH, env, real.posix_spawnp(told, file, actions, attributes, argv, e));
}

/* --- ends of children: their exit status is told to their parent alone --- */

static void note_reaped(struct unwind_state s, pid_t pid, int status)
{
    if (pid <= 0 || !(WIFEXITED(status) || WIFSIGNALED(status)))
        return;
    uint64_t words[] = {WIRE_WORD1(WIRE_REAP, 0, (uint64_t)pid), (uint32_t)status};
    note(s, words, 3);
}

/* The body of a hook of the real function `name`, which is called with `told`: where the status is to be. */
#define REAP(name, call)                                                                                               \
    struct unwind_state s;                                                                                             \
    UNWIND_HERE(s);                                                                                                    \
    NEED(name);                                                                                                        \
    int own, *told = status ? status : &own;                                                                           \
    pid_t result = (call);                                                                                             \
    note_reaped(s, result, *told);                                                                                     \
    return result

EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
    REAP(waitpid, real.waitpid(pid, told, options));
}

EXPORT pid_t wait(int *status)
{
    REAP(waitpid, real.waitpid(-1, told, 0));
}

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    REAP(wait4, real.wait4(pid, told, options, usage));
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
    REAP(wait4, real.wait4(-1, told, options, usage));
}

EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    siginfo_t own;
    NEED(waitid);
    if (!info)
        info = &own;
    int result = real.waitid(type, id, info, options);
    if (result == 0 && !(options & WNOWAIT) && info->si_pid) {
        if (info->si_code == CLD_EXITED)
            note_reaped(s, info->si_pid, (info->si_status & 0xff) << 8);
        else if (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)
            note_reaped(s, info->si_pid, info->si_status & 0x7f);
    }
    return result;
}

/* --- names and modules --- */

static void note_name(struct unwind_state s, const char *name)
{
    char text[16] = {0};
    for (unsigned i = 0; i < 15 && name[i]; i++)
        text[i] = name[i];
    uint64_t words[3] = {WIRE_WORD1(WIRE_THREAD_NAME, 0, 0)};
    __builtin_memcpy(words + 1, text, sizeof text);
    note(s, words, 4);
}

EXPORT int pthread_setname_np(unsigned long thread, const char *name)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    unsigned long own;
    __asm__("mov %%fs:0x10, %0" : "=r"(own));
    NEED(pthread_setname_np);
    int result = real.pthread_setname_np(thread, name);
    if (result == 0 && thread == own)
        note_name(s, name);
    return result;
}

EXPORT int prctl(int option, ...)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    va_list args;
    va_start(args, option);
    unsigned long a = va_arg(args, unsigned long), b = va_arg(args, unsigned long), c = va_arg(args, unsigned long),
                  d = va_arg(args, unsigned long);
    va_end(args);
    NEED(prctl);
    /* After these our own system calls, or the time stamp counter, would be the program's end. */
    if ((option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV))
        process_stop();
    else if (option == PR_SET_SECCOMP)
        process.filtered = 1;
    int result = real.prctl(option, a, b, c, d);
    if (option == PR_SET_NAME && result == 0)
        note_name(s, (const char *)a);
    return result;
}

/* What it is about to close cannot be looked at any more. */
static void note_closing(struct unwind_state s, const void *handle)
{
    struct thread *t = &self;
    int saved = errno;
    if (gate.on && sys_getpid() == process.pid && thread_enter(t, s)) {
        unhooked_look_at(t, handle);
        thread_leave(t);
    }
    errno = saved;
}

EXPORT int dlclose(void *handle)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(dlclose);
    note_closing(s, handle);
    int held = python_before_dlclose();
    int result = real.dlclose(handle);
    struct thread *t = &self;
    if (gate.on && thread_enter(t, s)) {
        unwind_after_dlclose();
        thread_leave(t);
    }
    python_after_dlclose(held);
    return result;
}
