/*
 * mallinfo2 takes the lock of each arena in turn. A garbage collector's signal may stop a thread in there, for as long
 * as others may wait for that lock; it may also stop a thread that holds one of the locks while mallinfo2 waits for it,
 * here in the thread that is to let the first one go on, or in one that is to stop as well and cannot with its signals
 * blocked. So in a program with threads none of them calls it: a thread of our own does, which libc and the program do
 * not know and no signal reaches. It holds a lock as long as it works and no longer, and who waits for it can give up.
 */
#include "heap_ask.h"

#include "own.h"
#include "real.h"
#include "thread.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>

#define STACK_BYTES 65536ul
#define TCB_BYTES   8192ul /* struct pthread of any glibc */
#define TLS_SPARE   65536ul
#define CLAIMED     (-1)

static struct {
    int32_t busy; /* 0: nobody; CLAIMED: a thread that writes what follows; else the asking thread's id */
    int32_t has_answer;
    struct heap_answer answer;
    char *stack; /* of the asking thread, and above it its thread-local storage */
    char *tcb;
} asker;

/* Processor time: the way to a lock may be long and costs nothing. */
static uint64_t own_time_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* libc stores aligned; the program's stack may be misaligned */
static __attribute__((noinline, force_align_arg_pointer)) void ask(void)
{
    uint64_t begin_ns = own_time_ns();
    asker.answer.begin = clock_now();
    asker.answer.top = real.sbrk ? (uint64_t)real.sbrk(0) : 0;
    struct mallinfo2 info = real.mallinfo2();
    asker.answer.arena_bytes = info.arena;
    asker.answer.mapped_bytes = info.hblkhd;
    asker.answer.used_bytes = info.uordblks;
    asker.answer.end = clock_now();
    asker.answer.cost_ns = own_time_ns() - begin_ns;
    asker.has_answer = 1;
}

/* With signals blocked from here to asker_release. */
static int asker_claim(void)
{
    int32_t nobody = 0;
    return __atomic_compare_exchange_n(&asker.busy, &nobody, CLAIMED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void asker_release(void)
{
    __atomic_store_n(&asker.busy, 0, __ATOMIC_RELEASE);
}

/* The calling thread's own may go before the answer comes. What libc's code takes for granted is there: the canary, and
 * zeros where thread-local variables are. */
static int asker_memory(void)
{
    uint64_t tcb;
    __asm__("mov %%fs:0, %0" : "=r"(tcb));
    uint64_t lowest = (uint64_t)&self < (uint64_t)&errno ? (uint64_t)&self : (uint64_t)&errno;
    if (!asker.stack) {
        uint64_t tls_bytes = ((tcb - lowest) + TLS_SPARE + 4095) & ~4095ul;
        asker.stack = own_map(STACK_BYTES + tls_bytes + TCB_BYTES);
        if (!asker.stack) {
            COUNT(map_refused, 1);
            return 0;
        }
        asker.tcb = asker.stack + STACK_BYTES + tls_bytes;
    }
    uint64_t *words = (uint64_t *)asker.tcb;
    for (unsigned i = 3; i < 8; i++) /* whether there are threads, the canary, the key of stored pointers */
        words[i] = ((uint64_t *)tcb)[i];
    words[0] = words[2] = (uint64_t)words;
    return 1;
}

/* As pthread_create starts one, which is what a seccomp filter may know. */
static long asker_start(void)
{
    const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    register long child_busy __asm__("r10") = (long)&asker.busy;
    register long tls __asm__("r8") = (long)asker.tcb;
    register void (*work)(void) __asm__("r12") = ask;
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call *%%r12\n\t"
                     "mov %[exit], %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(flags), "S"(asker.stack + STACK_BYTES), "d"(&asker.busy), "r"(child_busy),
                       "r"(tls), "r"(work), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

static int take_answer(struct heap_answer *answer)
{
    if (!asker.has_answer)
        return 0;
    *answer = asker.answer;
    asker.has_answer = 0;
    return 1;
}

static int wait_for_asker(uint64_t patience)
{
    uint64_t end = clock_now() + patience;
    int32_t busy;
    while ((busy = __atomic_load_n(&asker.busy, __ATOMIC_ACQUIRE)) != 0) {
        if (clock_now() >= end)
            return 0;
        struct timespec look_again = {0, 10000000};
        sys_call6(SYS_futex, (long)&asker.busy, FUTEX_WAIT, busy, (long)&look_again, 0, 0);
    }
    return 1;
}

static int wait_for_answer(struct heap_answer *answer, uint64_t patience)
{
    int answered = 0;
    if (!wait_for_asker(patience))
        return 0;
    uint64_t signals = sys_signals_set(SYS_SIGNALS_OTHERS);
    if (asker_claim()) {
        answered = take_answer(answer);
        asker_release();
    }
    sys_signals_set(signals);
    return answered;
}

int heap_ask_is_busy(void)
{
    return __atomic_load_n(&asker.busy, __ATOMIC_RELAXED) > 0;
}

void heap_ask_settle(uint64_t patience)
{
    struct heap_answer late;
    wait_for_answer(&late, patience);
}

int heap_ask(struct heap_answer *answer, uint64_t patience)
{
    int answered = 0, asked = 0;
    uint64_t signals = sys_signals_set(SYS_SIGNALS_OTHERS);
    if (asker_claim()) {
        answered = take_answer(answer);
        if (!answered && __libc_single_threaded) { /* nobody could hold a lock or want one */
            ask();
            answered = take_answer(answer);
        } else if (!answered && sys_getpid() == process.pid) { /* else what it held would stay so after an exec */
            asked = asker_memory() && asker_start() > 0;
        }
        if (!asked)
            asker_release();
    }
    sys_signals_set(signals);
    return asked ? wait_for_answer(answer, patience) : answered;
}

void heap_ask_forget(void)
{
    asker.has_answer = 0;
    asker_release();
}
