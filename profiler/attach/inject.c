#include "inject.h"

#include "../../common/array.h"
#include "../../common/monotonic.h"
#include "safe.h"
#include "stub.h"
#include "thread.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS  10000000000ull /* to find a thread at a safe place, and for its call */
#define LOOK_NS      1000000ull     /* between two rounds over all threads; longer each time, up to: */
#define LOOK_MOST_NS 50000000ull
#define TEXT_BYTES   512u /* of library, symbol and argument together */

static void nap(uint64_t ns)
{
    nanosleep(&(struct timespec){0, (long)ns}, NULL);
}

/* What one call has to do with. */
struct work {
    struct target *target;
    const struct inject_call *call;
    struct safe *safe;
    struct thread leader;
    struct thread *late; /* asked to stop, and had not in their time; see look_at_others */
    size_t late_count, late_room;
    int *result;
    struct error *err;
};

/* --- a place for the code --- */

#define CODE_BYTES ((size_t)(stub_end - stub_code))

/* Whether what lies there is the code of one that was killed in the middle, whose thread may still be running it: that
 * is over where it is the thread that is to run it now, or has ended. */
static int is_taken(pid_t pid, uint64_t at, pid_t tid)
{
    char name[sizeof STUB_NAME] = "", path[64];
    uint64_t its;
    if (!remote_read(pid, at, name, sizeof name - 1))
        return 1;
    if (memcmp(name, STUB_NAME, sizeof STUB_NAME - 1) != 0)
        return 0;
    if (!remote_read(pid, at + (uint64_t)(stub_place - stub_code) + offsetof(struct stub_words, tid), &its, sizeof its))
        return 1;
    snprintf(path, sizeof path, "/proc/%d/task/%llu", (int)pid, (unsigned long long)its);
    return its != (uint64_t)tid && access(path, F_OK) == 0;
}

/* Behind the code of an object its last page is filled up with what nobody runs or reads. 0: there is none so long that
 * is free. */
static uint64_t find_place(const struct target *t, size_t bytes, pid_t tid)
{
    for (size_t i = 0; i < t->remote.count; i++) {
        uint64_t end = t->remote.objects[i].code_end, page_end = remote_code_page_end(&t->remote.objects[i]);
        for (uint64_t at = (end + 63) & ~63ul; end && at + bytes <= page_end; at += (bytes + 63) & ~63ul)
            if (!is_taken(t->pid, at, tid))
                return at;
    }
    return 0;
}

struct code {
    uint64_t at;
    char bytes[2048], before[2048];
    struct stub_words *words; /* in bytes */
    size_t used;
};
_Static_assert(sizeof(struct stub_words) + TEXT_BYTES < 1024, "and the code has the other half");

static uint64_t add_text(struct code *c, const char *text)
{
    uint64_t at = c->at + c->used;
    size_t n = text ? strlen(text) + 1 : 0;
    if (!text)
        return 0;
    memcpy(c->bytes + c->used, text, n);
    c->used += n;
    return at;
}

static int write_word(pid_t tid, const struct code *c, const char *bytes, size_t at)
{
    long word;
    memcpy(&word, bytes + at, sizeof word);
    return ptrace(PTRACE_POKEDATA, tid, c->at + at, word) ? -errno : 0;
}

/* Its name, by which it is known to be taken, last. */
static int write_code(pid_t tid, const struct code *c)
{
    int rc = 0;
    for (size_t at = c->used; at > 0 && rc == 0;)
        rc = write_word(tid, c, c->bytes, at -= sizeof(long));
    return rc;
}

/* The name first: nobody runs it any more. */
static void erase_code(pid_t tid, const struct code *c)
{
    for (size_t at = 0; at < c->used; at += sizeof(long))
        write_word(tid, c, c->before, at);
}

static int make_code(const struct work *w, struct code *c, pid_t tid)
{
    const struct target *t = w->target;
    const struct inject_call *call = w->call;
    const char *texts[] = {call->library, call->library ? call->symbol : NULL, call->argument};
    size_t text_bytes = 8;
    for (unsigned i = 0; i < 3; i++)
        text_bytes += texts[i] ? strlen(texts[i]) + 1 : 0;
    if (text_bytes > TEXT_BYTES || CODE_BYTES + TEXT_BYTES > sizeof c->bytes)
        return error_set(w->err, ENAMETOOLONG, "%s: a path too long to attach with; install memprof in a shorter one",
                         call->library ? call->library : call->argument);
    memset(c, 0, sizeof *c);
    c->at = find_place(t, CODE_BYTES + text_bytes, tid);
    if (!c->at)
        return error_set(
            w->err, EINVAL,
            "%d: no loaded object has room behind its code, or memprof was killed too often while it used that",
            (int)t->pid);
    memcpy(c->bytes, stub_code, CODE_BYTES);
    c->used = CODE_BYTES;
    c->words = (struct stub_words *)(void *)(c->bytes + (stub_place - stub_code));
    *c->words = (struct stub_words){
        .library = add_text(c, texts[0]),
        .symbol = add_text(c, texts[1]),
        .argument = add_text(c, texts[2]),
        .dlopen = call->library ? t->dlopen : 0,
        .dlsym = t->dlsym,
        .dlerror = t->dlerror,
        .function = call->function,
        .all_signals = THREAD_OTHER_SIGNALS,
        .nap = {0, STUB_NAP_NS},
        .tid = (uint64_t)tid,
    };
    c->used = (c->used + 7) & ~7ul;
    return remote_read(t->pid, c->at, c->before, c->used) ? 0 : target_refused(t->pid, w->err);
}

/* --- the call --- */

static void set_registers(struct stub_words *w, const struct thread *th)
{
    struct user_regs_struct r = th->registers;
    thread_restart(&r); /* nobody may be there to tell the kernel that a call was interrupted */
    w->own_signals = th->signals;
    w->state_bytes = (th->state_bytes + 4096) & ~63ul;
    w->flags = r.eflags, w->rip = r.rip, w->rsp = r.rsp;
    w->rax = r.rax, w->rbx = r.rbx, w->rcx = r.rcx, w->rdx = r.rdx, w->rsi = r.rsi, w->rdi = r.rdi, w->rbp = r.rbp;
    w->r8 = r.r8, w->r9 = r.r9, w->r10 = r.r10, w->r11 = r.r11, w->r12 = r.r12, w->r13 = r.r13, w->r14 = r.r14;
    w->r15 = r.r15;
}

/* What comes to them meanwhile is passed on. One that stops only now, as it had been asked to, may hold a lock that the
 * call waits for: it goes on at once. */
static void look_at_others(struct work *w, const struct thread *th)
{
    if (th != &w->leader)
        thread_look_other(&w->leader);
    for (size_t i = 0; i < w->late_count; i++)
        thread_look_other(&w->late[i]);
}

/* It waits in the code, and leaves it by itself a little later. */
static int stop_in_code(struct work *w, struct thread *th, const struct code *c, uint64_t end_ns)
{
    int rc;
    while ((rc = thread_stop(th)) == -ETIMEDOUT && monotonic_ns() < end_ns)
        look_at_others(w, th);
    if (rc)
        return rc;
    const uint64_t rip = th->registers.rip, alone = c->at + (uint64_t)(stub_alone - stub_code);
    return rip >= c->at && rip < alone ? 0 : -EINTR;
}

/* It blocks signals until it goes on by itself. */
static int is_alone(const struct thread *th, const struct code *c)
{
    uint64_t blocked;
    return thread_blocks(th, &blocked) && blocked == c->words->own_signals &&
           (blocked | THREAD_UNBLOCKED) != c->words->all_signals;
}

/* Until the thread waits in the code, having made its calls. 0: it does, and is stopped there. -EINTR: it waited too
 * long for us, and went on by itself. */
static int wait_for_end(struct work *w, struct thread *th, const struct code *c)
{
    const uint64_t begin_ns = monotonic_ns(), end_ns = begin_ns + PATIENCE_NS;
    const uint64_t nap_at = c->at + (uint64_t)(stub_place - stub_code) + offsetof(struct stub_words, nap);
    for (uint64_t naps = 0, now_ns = begin_ns; now_ns < end_ns; now_ns = monotonic_ns()) {
        int rc = thread_look(th);
        if (rc)
            return rc;
        look_at_others(w, th);
        if (thread_waits_at(th, nap_at))
            return stop_in_code(w, th, c, end_ns);
        if (now_ns - begin_ns > STUB_NAPS * (uint64_t)STUB_NAP_NS && is_alone(th, c))
            return -EINTR;
        nap(naps++ < 100 ? 200000 : 5000000);
    }
    return -ETIMEDOUT;
}

static int not_loaded(const struct target *t, uint64_t text, struct error *err)
{
    char why[768] = "";
    if (!text || !remote_string(t->pid, text, why, sizeof why))
        snprintf(why, sizeof why, "no reason was given");
    return error_set(err, ELIBACC, "%d: libmemprof.so could not be loaded into it: %s", (int)t->pid, why);
}

static int told(const struct work *w, const struct user_regs_struct *r)
{
    if (r->r13 == STUB_CALLED) {
        *w->result = (int)r->r14;
        return 0;
    }
    if (r->r13 == STUB_NOT_LOADED)
        return not_loaded(w->target, r->r14, w->err);
    return error_set(w->err, ENOMEM, "%d: it could not get the memory for a stack (%s)", (int)w->target->pid,
                     strerror(-(int)r->r14));
}

static int call_failed(const struct target *t, int rc, struct error *err)
{
    const int pid = (int)t->pid;
    if (rc == -ESRCH)
        return error_set(err, ESRCH, "%d: it has ended, or become another program, meanwhile", pid);
    if (rc == -EFAULT)
        return error_set(err, EFAULT, "%d: the call in it failed; it goes on as before", pid);
    if (rc == -EINTR)
        return error_set(err, EINTR,
                         "%d: memprof was stopped, or got no processor, for %d s, and it went on; try again", pid,
                         (int)(STUB_NAPS * (uint64_t)STUB_NAP_NS / 1000000000u));
    return error_set(err, ETIMEDOUT,
                     "%d: the call in it has not returned within %d s; it ends by itself, as soon as the loader's lock "
                     "is free",
                     pid, (int)(PATIENCE_NS / 1000000000u));
}

/* The thread is stopped at a safe place. After -EINTR its code stays, as the thread may be in a signal handler on top
 * of it. */
static int call_in(struct work *w, struct thread *th)
{
    static struct code code;
    struct code *c = &code;
    const struct thread before = *th;
    struct user_regs_struct r = th->registers;
    int rc = make_code(w, c, th->tid);
    if (rc)
        return rc;
    set_registers(c->words, th);
    if (write_code(th->tid, c))
        return target_refused(w->target->pid, w->err);
    r.rip = c->at + (uint64_t)(stub_entry - stub_code);
    r.orig_rax = (unsigned long long)-1;
    rc = thread_go_with(th, &r);
    if (rc == 0)
        rc = wait_for_end(w, th, c);
    if (rc && rc != -EFAULT)
        return call_failed(w->target, rc, w->err);
    rc = rc ? call_failed(w->target, rc, w->err) : told(w, &th->registers);
    th->registers = before.registers;
    th->signals = before.signals;
    if (thread_put_back(th) == 0)
        erase_code(th->tid, c);
    return rc;
}

/* --- the thread --- */

/* 1: it was done, and *rc is what came of it; 0: this thread is at no safe place just now. */
static int try_thread(struct work *w, struct thread *th, int *rc)
{
    if (thread_stop(th))
        return 0;
    if (!thread_is_plain(th) || !safe_is(w->safe, th->tid)) {
        thread_go(th);
        return 0;
    }
    *rc = call_in(w, th);
    return 1;
}

static int is_number(const char *text)
{
    return isdigit((unsigned char)*text);
}

static void let_go(struct work *w, struct thread *th)
{
    thread_release(th);
    if (th->is_gone)
        return;
    *ARRAY_ADD(w->late, w->late_count, w->late_room) = *th;
}

static int try_round(struct work *w, int *rc)
{
    char path[64];
    if (try_thread(w, &w->leader, rc))
        return 1;
    snprintf(path, sizeof path, "/proc/%d/task", (int)w->target->pid);
    DIR *directory = opendir(path);
    int is_done = 0;
    for (struct dirent *e; directory && !is_done && (e = readdir(directory));) {
        struct thread th;
        if (!is_number(e->d_name) || atoi(e->d_name) == w->target->pid || thread_seize(&th, atoi(e->d_name)))
            continue;
        is_done = try_thread(w, &th, rc);
        let_go(w, &th);
    }
    if (directory)
        closedir(directory);
    return is_done;
}

static int try_until_done(struct work *w)
{
    const struct target *t = w->target;
    uint64_t end_ns = monotonic_ns() + PATIENCE_NS, look_ns = LOOK_NS;
    int rc = 0;
    while (!try_round(w, &rc)) {
        if (w->leader.is_gone)
            return call_failed(t, -ESRCH, w->err);
        if (monotonic_ns() > end_ns)
            return error_set(w->err, ETIMEDOUT,
                             "%d: none of its threads came to a place where it can be asked safely; try again",
                             (int)t->pid);
        look_at_others(w, NULL);
        nap(look_ns);
        look_ns = look_ns * 2 < LOOK_MOST_NS ? look_ns * 2 : LOOK_MOST_NS;
    }
    return rc;
}

/* What does not stop in this time the kernel lets go as this process ends. */
static void release_all(struct work *w)
{
    thread_release(&w->leader);
    for (size_t i = 0; i < w->late_count; i++)
        thread_release(&w->late[i]);
    free(w->late);
}

/* The first thread is held all the time: the kernel lets nobody else trace it then, so that there is one of us. */
int inject(struct target *t, const struct inject_call *call, int *result, struct error *err)
{
    struct work w = {.target = t, .call = call, .result = result, .err = err};
    int rc = thread_seize(&w.leader, t->pid);
    if (rc)
        return rc == -ESRCH ? call_failed(t, rc, err) : target_refused(t->pid, err);
    if (target_refresh(t)) { /* another one may have been here in between */
        rc = call_failed(t, -ESRCH, err);
    } else {
        w.safe = safe_open(t);
        rc = try_until_done(&w);
        safe_close(w.safe);
    }
    release_all(&w);
    return rc;
}
