#include "inject.h"

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

#define PATIENCE_NS  10000000000ull /* to find a thread at a safe place, and for its call */
#define LOOK_NS      1000000ull     /* between two rounds over all threads; longer each time, up to: */
#define LOOK_MOST_NS 50000000ull
#define TEXT_BYTES   512u /* of library, symbol and argument together */
#define PAGE         4096ul

static void nap(uint64_t ns)
{
    nanosleep(&(struct timespec){0, (long)ns}, NULL);
}

/* --- a place for the code --- */

#define CODE_BYTES ((size_t)(stub_end - stub_code))

/* Whether what lies there is the code of one that was killed in the middle: its thread may still be running it. */
static int is_taken(const struct target *t, uint64_t at)
{
    char name[sizeof STUB_NAME] = "";
    return !remote_read(t->pid, at, name, sizeof name - 1) || !memcmp(name, STUB_NAME, sizeof STUB_NAME - 1);
}

/* Behind the code of an object its last page is filled up with what nobody runs or reads. 0: there is none so long that
 * is free. */
static uint64_t find_place(const struct target *t, size_t bytes)
{
    for (size_t i = 0; i < t->remote.count; i++) {
        uint64_t end = t->remote.objects[i].code_end, page_end = (end + PAGE - 1) & ~(PAGE - 1);
        for (uint64_t at = (end + 63) & ~63ul; end && at + bytes <= page_end; at += (bytes + 63) & ~63ul)
            if (!is_taken(t, at))
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

static int make_code(const struct target *t, const struct inject_call *call, struct code *c, struct error *err)
{
    const char *texts[] = {call->library, call->library ? call->symbol : NULL, call->argument};
    size_t text_bytes = 8;
    for (unsigned i = 0; i < 3; i++)
        text_bytes += texts[i] ? strlen(texts[i]) + 1 : 0;
    memset(c, 0, sizeof *c);
    c->at = find_place(t, CODE_BYTES + text_bytes);
    if (text_bytes > TEXT_BYTES || CODE_BYTES + TEXT_BYTES > sizeof c->bytes)
        return error_set(err, ENAMETOOLONG, "%s: a path too long to attach with; install memprof in a shorter one",
                         call->library ? call->library : call->argument);
    if (!c->at)
        return error_set(
            err, EINVAL,
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
    };
    c->used = (c->used + 7) & ~7ul;
    return remote_read(t->pid, c->at, c->before, c->used) ? 0 : target_refused(t->pid, err);
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

static int is_in_code(const struct code *c, uint64_t rip)
{
    return rip >= c->at && rip < c->at + CODE_BYTES;
}

/* Until the thread waits in the code, having made its calls. 0: it does, and is stopped there, with its registers in
 * *r. */
static int wait_for_end(struct thread *th, const struct code *c, struct user_regs_struct *r)
{
    uint64_t end_ns = monotonic_ns() + PATIENCE_NS, naps = 0;
    while (monotonic_ns() < end_ns) {
        int rc = thread_look(th);
        if (rc)
            return rc;
        if (thread_waits_at(th, c->at + (uint64_t)(stub_place - stub_code) + offsetof(struct stub_words, nap))) {
            rc = thread_stop(th);
            if (rc)
                return rc;
            *r = th->registers;
            if (is_in_code(c, r->rip))
                return 0;
            return -EINTR; /* it waited too long for us, and went on by itself */
        }
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

static int told(const struct target *t, const struct user_regs_struct *r, int *result, struct error *err)
{
    if (r->r13 == STUB_CALLED) {
        *result = (int)r->r14;
        return 0;
    }
    if (r->r13 == STUB_NOT_LOADED)
        return not_loaded(t, r->r14, err);
    return error_set(err, ENOMEM, "%d: it could not get the memory for a stack (%s)", (int)t->pid,
                     strerror(-(int)r->r14));
}

static int call_failed(const struct target *t, int rc, struct error *err)
{
    if (rc == -ESRCH)
        return error_set(err, ESRCH, "%d: it has ended, or become another program, meanwhile", (int)t->pid);
    if (rc == -EFAULT)
        return error_set(err, EFAULT, "%d: the call in it failed; it goes on as before", (int)t->pid);
    return error_set(err, ETIMEDOUT,
                     "%d: the call in it has not returned within %d s; it ends by itself, as soon as the loader's lock "
                     "is free",
                     (int)t->pid, (int)(PATIENCE_NS / 1000000000u));
}

/* The thread is stopped at a safe place. */
static int call_in(struct target *t, struct thread *th, struct code *c, int *result, struct error *err)
{
    struct user_regs_struct r = th->registers;
    const struct thread before = *th;
    set_registers(c->words, th);
    if (write_code(th->tid, c))
        return target_refused(t->pid, err);
    r.rip = c->at + (uint64_t)(stub_entry - stub_code);
    r.orig_rax = (unsigned long long)-1;
    int rc = thread_go_with(th, &r);
    if (rc == 0)
        rc = wait_for_end(th, c, &r);
    if (rc == -EINTR) /* its code stays, as the thread may be in a signal handler on top of it */
        return error_set(err, EINTR, "%d: memprof was stopped for too long; try again", (int)t->pid);
    if (rc && rc != -EFAULT)
        return call_failed(t, rc, err);
    int told_rc = rc ? call_failed(t, rc, err) : told(t, &r, result, err);
    th->registers = before.registers;
    th->signals = before.signals;
    if (thread_put_back(th) == 0)
        erase_code(th->tid, c);
    return told_rc;
}

/* --- the thread --- */

/* 1: it was done, and rc is what came of it; 0: this thread is at no safe place just now. */
static int try_thread(struct target *t, struct safe *s, struct thread *th, struct code *c, int *result, int *rc,
                      struct error *err)
{
    if (thread_stop(th))
        return 0;
    if (!thread_is_plain(th) || !safe_is(s, th->tid)) {
        thread_go(th);
        return 0;
    }
    *rc = call_in(t, th, c, result, err);
    return 1;
}

static int is_number(const char *text)
{
    return isdigit((unsigned char)*text);
}

static int try_round(struct target *t, struct safe *s, struct thread *leader, struct code *c, int *result, int *rc,
                     struct error *err)
{
    char path[64];
    if (try_thread(t, s, leader, c, result, rc, err))
        return 1;
    snprintf(path, sizeof path, "/proc/%d/task", (int)t->pid);
    DIR *directory = opendir(path);
    int is_done = 0;
    for (struct dirent *e; directory && !is_done && (e = readdir(directory));) {
        struct thread th;
        if (!is_number(e->d_name) || atoi(e->d_name) == t->pid || thread_seize(&th, atoi(e->d_name)))
            continue;
        is_done = try_thread(t, s, &th, c, result, rc, err);
        thread_release(&th);
    }
    if (directory)
        closedir(directory);
    return is_done;
}

/* The first thread is held all the time: the kernel lets nobody else trace it then, so that there is one of us. */
int inject(struct target *t, const struct inject_call *call, int *result, struct error *err)
{
    struct thread leader;
    struct code code;
    int rc = thread_seize(&leader, t->pid), is_done = 0;
    if (rc)
        return rc == -ESRCH ? call_failed(t, rc, err) : target_refused(t->pid, err);
    if (target_refresh(t)) /* another one may have been here in between */
        rc = call_failed(t, -ESRCH, err);
    if (rc == 0)
        rc = make_code(t, call, &code, err);
    struct safe *s = rc ? NULL : safe_open(t);
    uint64_t end_ns = monotonic_ns() + PATIENCE_NS, look_ns = LOOK_NS;
    while (rc == 0 && !is_done) {
        is_done = try_round(t, s, &leader, &code, result, &rc, err);
        if (is_done)
            break;
        if (leader.is_gone)
            rc = call_failed(t, -ESRCH, err);
        else if (monotonic_ns() > end_ns)
            rc = error_set(err, ETIMEDOUT,
                           "%d: none of its threads came to a place where it can be asked safely; try again",
                           (int)t->pid);
        nap(look_ns);
        look_ns = look_ns * 2 < LOOK_MOST_NS ? look_ns * 2 : LOOK_MOST_NS;
    }
    safe_close(s);
    thread_release(&leader);
    return rc;
}
