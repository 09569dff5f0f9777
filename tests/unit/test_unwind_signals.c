/* Stacks from signal handlers, coroutines and threads: each compared with libunwind's in the same place. */
#include "unwind_take.h"

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

/* --- signals --- */

static volatile sig_atomic_t handled;
static uint64_t outer_sp;
static int above;

static void handler(int number)
{
    struct unwind_state s;
    (void)number;
    UNWIND_HERE(s);
    above = unwind_above(thread, s, outer_sp);
    leaf();
    handled = 1;
}

static NO_INLINE void interrupted(void)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    outer_sp = s.sp;
    raise(SIGUSR1);
    __asm__ volatile("");
}

static void use_handler(int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    interrupted();
    assert_true(handled);
    handled = 0;
    check_taken(0);
    assert_int_equal(above, UNWIND_SIGNAL);
}

static void test_signal(void **state)
{
    (void)state;
    use_handler(0);
    use_handler(SA_SIGINFO);
}

static void test_signal_other_stack(void **state)
{
    (void)state;
    static char space[65536];
    char *mapped = mmap(NULL, 32768, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *own = __builtin_alloca(65536); /* a signal stack within the thread's own stack */
    assert_true(mapped != MAP_FAILED);
    stack_t stacks[] = {{.ss_sp = space, .ss_size = sizeof space},
                        {.ss_sp = mapped, .ss_size = 32768},
                        {.ss_sp = own, .ss_size = 65536}};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sigaltstack(&stacks[i], NULL), 0);
        use_handler(SA_ONSTACK);
    }
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(mapped, 32768);
}

/* A fault's address is exact: the first instruction of a function too. */
void asm_fault(void);
__asm__(".text\n"
        ".type asm_fault, @function\n"
        "asm_fault:\n"
        ".cfi_startproc\n"
        "ud2\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size asm_fault, .-asm_fault\n");

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    leaf();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void test_fault(void **state)
{
    (void)state;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(SIGILL, &action, NULL), 0);
    asm_fault();
    signal(SIGILL, SIG_DFL);
    unsigned i = 0;
    while (i < ours.depth && ours.pcs[i] != (uint64_t)asm_fault + 1)
        i++;
    assert_true(i < ours.depth);
    check_taken(0);
}

/* A handler that returns to code without CFI, known by its instructions. */
void asm_restorer(void);
__asm__(".text\n"
        ".type asm_restorer, @function\n"
        ".skip 16, 0x90\n"
        "asm_restorer:\n"
        "movq $15, %rax\n"
        "syscall\n"
        ".size asm_restorer, .-asm_restorer\n");

static NO_INLINE void raise_with(void (*restorer)(void))
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action, old;
    assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 8), 0);
    old = action;
    action.restorer = restorer ? restorer : action.restorer;
    assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8), 0);
    interrupted();
    assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, &old, NULL, 8), 0);
}

static void test_signal_restorer(void **state)
{
    (void)state;
    static struct stack usual;
    signal(SIGUSR1, handler);
    for (volatile int i = 0; i < 2; i++) { /* not unrolled: one call, one address */
        raise_with(i ? asm_restorer : NULL);
        assert_int_equal(ours.flags, 0);
        check_same(&ours, &remembered);
        if (i == 0)
            usual = ours;
    }
    taken = handled = 0;
    signal(SIGUSR1, SIG_DFL);
    /* the same but for the restorer's frame (libunwind loses its way here) */
    assert_int_equal(ours.depth, usual.depth);
    unsigned differing = 0;
    for (unsigned i = 0; i < ours.depth; i++)
        if (ours.pcs[i] == (uint64_t)asm_restorer)
            differing++;
        else
            assert_true(ours.pcs[i] == usual.pcs[i]);
    assert_int_equal(differing, 1);
}

/* A handler that allocates and leaves by longjmp an unwind that was under way: what is remembered stays sound. */
static sigjmp_buf out_of_handler;

static void leave(int number)
{
    (void)number;
    siglongjmp(out_of_handler, 1);
}

static void test_left_by_longjmp(void **state)
{
    (void)state;
    struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    uint64_t random = 0x9876543212345ull;
    volatile int left = 0;
    signal(SIGALRM, leave);
    for (volatile int i = 0; i < 200; i++) {
        if (sigsetjmp(out_of_handler, 1) == 0) {
            setitimer(ITIMER_REAL, &every, NULL);
            for (int k = 0; k < 1000000; k++) {
                struct unwind_state s;
                struct unwind_stack out;
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                UNWIND_HERE(s);
                s.pc = random & 1 ? s.pc : ours.pcs[1]; /* two innermost frames in turn */
                thread->same_count = thread->patience;  /* all of it is remembered */
                unwind_stack(thread, s, &out);
            }
        } else {
            left++;
        }
        setitimer(ITIMER_REAL, &never, NULL);
        leaf();
        check_taken(0);
    }
    signal(SIGALRM, SIG_DFL);
    assert_true(left > 0);
}

static void test_no_signal_above(void **state)
{
    struct unwind_state s;
    (void)state;
    UNWIND_HERE(s);
    /* this program is linked with the library's objects, so its own functions count as the library's */
    assert_int_equal(unwind_above(thread, s, s.sp), UNWIND_HOOK);
    assert_int_equal(unwind_above(thread, s, 0), UNWIND_HOOK);
    s.sp = 0x1230; /* nonsense is survived */
    assert_int_not_equal(unwind_above(thread, s, 0), UNWIND_SIGNAL);
}

/* --- coroutines and threads --- */

static ucontext_t main_context, coroutine_context;

static void coroutine(void)
{
    leaf();
    asm_rbx(leaf);
    __asm__ volatile("");
}

static void run_coroutine(char *space, size_t bytes)
{
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = space;
    coroutine_context.uc_stack.ss_size = bytes;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    swapcontext(&main_context, &coroutine_context);
    assert_int_equal(taken, 2);
    taken = 0;
    /* The outermost address is one that makecontext put there. libunwind sometimes goes on into garbage. */
    assert_int_equal(ours.depth, 4);
    assert_int_equal(ours.flags, 0);
    theirs.depth = ours.depth;
    check_same(&ours, &theirs);
    check_same(&remembered, &theirs);
}

static void test_coroutine(void **state)
{
    (void)state;
    static char space[65536];
    char *own = __builtin_alloca(65536);
    run_coroutine(space, sizeof space);
    run_coroutine(own, 65536);
    for (int i = 0; i < 10; i++) { /* the same addresses, mapped, gone, mapped again, of other sizes */
        size_t bytes = 32768 + 4096 * (size_t)(i % 3);
        char *mapped = mmap((void *)0x600000000000, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(mapped != MAP_FAILED);
        run_coroutine(mapped, bytes);
        munmap(mapped, bytes);
        leaf();
        check_taken(0);
    }
}

static void *thread_main(void *argument)
{
    uint64_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    struct unwind_thread *saved = thread;
    thread = calloc(1, unwind_thread_bytes());
    unwind_thread_init(thread, argument ? 0 : self, 512);
    leaf();
    leaf();
    taken--;
    free(thread);
    thread = saved;
    return NULL;
}

static void test_thread(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 0; i < 4; i++) { /* with a known top and without */
        assert_int_equal(pthread_create(&id, i < 2 ? NULL : &attributes, thread_main, i & 1 ? thread_main : NULL), 0);
        pthread_join(id, NULL);
        check_taken(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal),          cmocka_unit_test(test_signal_other_stack),
        cmocka_unit_test(test_fault),           cmocka_unit_test(test_signal_restorer),
        cmocka_unit_test(test_left_by_longjmp), cmocka_unit_test(test_no_signal_above),
        cmocka_unit_test(test_coroutine),       cmocka_unit_test(test_thread),
    };
    return cmocka_run_group_tests(tests, take_set_up, NULL);
}
