/*
 * thread.h: a thread of another process under ptrace: seized, stopped, let go, with its registers. All calls by the
 * same thread of ours. When that ends, however it does, the kernel lets the other one go on.
 */
#ifndef MEMPROF_ATTACH_THREAD_H
#define MEMPROF_ATTACH_THREAD_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct thread {
    pid_t tid;
    int is_stopped, is_gone;
    /* as it was stopped: */
    struct user_regs_struct registers;
    uint64_t signals;     /* which it blocks */
    uint64_t state_bytes; /* of the rest of the processor's state; 0: not known */
};

/* All but those that code itself may raise. */
#define THREAD_SIGNAL(number) (1ul << ((number)-1))
#define THREAD_OTHER_SIGNALS                                                                                           \
    (~(THREAD_SIGNAL(SIGILL) | THREAD_SIGNAL(SIGTRAP) | THREAD_SIGNAL(SIGBUS) | THREAD_SIGNAL(SIGFPE) |                \
       THREAD_SIGNAL(SIGSEGV) | THREAD_SIGNAL(SIGSYS)))

#define THREAD_UNBLOCKED (THREAD_SIGNAL(SIGKILL) | THREAD_SIGNAL(SIGSTOP)) /* by the kernel, whatever is asked for */

/* All return 0 or -errno: -ESRCH it is gone, or its process has become another program, -EFAULT it got a signal that
 * its own code raised, and is stopped, -ETIMEDOUT it does not stop now. */
int thread_seize(struct thread *t, pid_t tid);
/* Lets it go for good: it is gone then. It may be running; where it does not stop now it is still ours. */
void thread_release(struct thread *t);
int thread_stop(struct thread *t);
int thread_go(struct thread *t);
/* Where it is stopped: goes on with these registers. */
int thread_go_with(struct thread *t, const struct user_regs_struct *r);
/* Whatever came to it while it runs is passed on; where it stops only now, as thread_stop had asked, it goes on. */
int thread_look(struct thread *t);
/* The same of one that runs none of our code: what its own code raised is passed on, too. */
int thread_look_other(struct thread *t);
/* Whether it sleeps in sigtimedwait with a time at this address. */
int thread_waits_at(const struct thread *t, uint64_t address);
/* Which signals it blocks now, as it runs. 0: not known. */
int thread_blocks(const struct thread *t, uint64_t *signals);
/* Where it is stopped: registers and blocked signals as they are in *t, from where it then goes on. */
int thread_put_back(struct thread *t);

/* Whether it runs code of 64 bits, and can be made to call something. */
int thread_is_plain(const struct thread *t);
/* What the kernel would do of a call that was interrupted, as registers. */
void thread_restart(struct user_regs_struct *r);

#endif
