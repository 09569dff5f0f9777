/* Stacks of every unusual kind, each compared with libunwind's unw_step in the same place. */
#define UNW_LOCAL_ONLY
#include "../../profiler/preload/careful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <libunwind.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define NO_INLINE __attribute__((noinline))

/* For a build with the unwinder alone; where the recorder is linked, its own are used. */
#pragma weak record_module_load
#pragma weak record_module_unload
int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path)
{
    (void)number, (void)start, (void)end, (void)bias, (void)build_id, (void)build_id_bytes, (void)path;
    return 1;
}

void record_module_unload(uint32_t number)
{
    (void)number;
}

struct stack {
    uint64_t pcs[UNWIND_FRAMES];
    unsigned depth, flags;
    uint64_t hash;
};

static struct unwind_thread *thread;
static struct stack ours, remembered, theirs;
static int taken;
static struct wire_counters counters;
extern void *__libc_stack_end;

static void libunwind_stack(struct stack *s, uint64_t first)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t ip;
    int begun = 0;
    s->depth = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        ip += unw_is_signal_frame(&cursor) > 0; /* interrupted here */
        begun |= ip == first;
        if (begun && ip >= 4096 && s->depth < UNWIND_FRAMES)
            s->pcs[s->depth++] = ip;
    } while (unw_step(&cursor) > 0);
}

static int remember_all; /* at every take */

/* Takes the stack of its caller in all ways. */
static NO_INLINE void take(void)
{
    struct unwind_state s;
    struct unwind_stack out;
    UNWIND_HERE(s);
    unwind_nested(thread, s, &out);
    unwind_nested_addresses(thread, ours.pcs);
    ours.depth = out.depth, ours.flags = out.flags, ours.hash = out.hash;
    if (remember_all)
        thread->same_count = thread->patience;
    unwind_stack(thread, s, &out);
    unwind_addresses(thread, remembered.pcs);
    remembered.depth = out.depth, remembered.flags = out.flags, remembered.hash = out.hash;
    libunwind_stack(&theirs, s.pc);
    taken++;
}

static void check_same(const struct stack *a, const struct stack *b)
{
    if (a->depth != b->depth)
        for (unsigned i = 0; i < a->depth || i < b->depth; i++)
            printf("%2u %lx %lx\n", i, i < a->depth ? a->pcs[i] : 0, i < b->depth ? b->pcs[i] : 0);
    assert_int_equal(a->depth, b->depth);
    assert_memory_equal(a->pcs, b->pcs, a->depth * sizeof a->pcs[0]);
}

/* After exactly one take(): all agree, and nothing is unknown. */
static void check_taken(unsigned flags)
{
    assert_int_equal(taken, 1);
    taken = 0;
    check_same(&ours, &theirs);
    check_same(&remembered, &theirs);
    assert_int_equal(ours.flags, flags);
    assert_int_equal(remembered.flags, flags);
    assert_true(ours.hash == remembered.hash);
}

/* --- plain, and what compilers do --- */

static NO_INLINE void leaf(void)
{
    take();
    __asm__ volatile("");
}

static void test_plain(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        leaf();
        check_taken(0);
        assert_true(ours.depth > 2);
    }
}

static NO_INLINE void with_alloca(size_t n)
{
    char *block = __builtin_alloca(n);
    __asm__ volatile("" : : "r"(block) : "memory");
    leaf();
    __asm__ volatile("" : : "r"(block) : "memory");
}

static void test_alloca(void **state)
{
    (void)state;
    for (size_t n = 1; n < 3000; n += 700) {
        with_alloca(n);
        check_taken(0);
    }
}

/* gcc keeps the caller's stack pointer in r10 and then in the frame: CFA = *(rbp - 8). */
static NO_INLINE __attribute__((target("avx2"))) void realigned(size_t n)
{
    _Alignas(64) volatile char aligned[64];
    char *block = __builtin_alloca(n);
    aligned[0] = 1;
    __asm__ volatile("" : : "r"(block), "r"(aligned) : "memory");
    leaf();
    __asm__ volatile("" : : "r"(block), "r"(aligned) : "memory");
}

static void test_realigned(void **state)
{
    (void)state;
    uint64_t rich = counters.stack_full_cfi;
    for (size_t n = 1; n < 400; n += 33) {
        realigned(n);
        check_taken(0);
    }
    assert_int_equal(counters.stack_full_cfi, rich); /* there is a rule for it */
}

static jmp_buf back;

static NO_INLINE __attribute__((noreturn)) void never_returns(void)
{
    leaf();
    longjmp(back, 1);
}

/* The call is the function's last instruction: its return address belongs to whatever comes next. */
static NO_INLINE void ends_with_call(void)
{
    never_returns();
}

static void test_noreturn(void **state)
{
    (void)state;
    if (setjmp(back) == 0)
        ends_with_call();
    check_taken(0);
}

static NO_INLINE void cold_part(int unlikely_case)
{
    if (__builtin_expect(unlikely_case, 0)) {
        leaf();
        __asm__ volatile("");
        abort();
    }
}

static void on_abort(int number)
{
    (void)number;
    longjmp(back, 1);
}

static void test_cold_part(void **state)
{
    (void)state;
    signal(SIGABRT, on_abort);
    if (setjmp(back) == 0)
        cold_part(1);
    signal(SIGABRT, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGABRT);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    check_taken(0);
}

/* --- hand-written assembly --- */

/* rbx is the CFA register, as in ld.so's lazy binding; rbp is changed and saved. */
void asm_rbx(void (*f)(void));
__asm__(".text\n"
        ".type asm_rbx, @function\n"
        "asm_rbx:\n"
        ".cfi_startproc\n"
        "pushq %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_offset %rbx, -16\n"
        "movq %rsp, %rbx\n"
        ".cfi_def_cfa_register %rbx\n"
        "pushq %rbp\n"
        ".cfi_offset %rbp, -24\n"
        "andq $-64, %rsp\n"
        "subq $128, %rsp\n"
        "movl $12345, %ebp\n"
        "call *%rdi\n"
        "movq -8(%rbx), %rbp\n"
        ".cfi_restore %rbp\n"
        "movq %rbx, %rsp\n"
        ".cfi_def_cfa_register %rsp\n"
        "popq %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbx\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size asm_rbx, .-asm_rbx\n");

static void test_rich(void **state)
{
    (void)state;
    uint64_t rich = counters.stack_full_cfi;
    asm_rbx(leaf);
    check_taken(0);
    assert_true(counters.stack_full_cfi > rich);
}

static void twice(void)
{
    asm_rbx(leaf);
    __asm__ volatile("");
}

static void test_rich_twice(void **state)
{
    (void)state;
    asm_rbx(twice);
    check_taken(0);
}

/* The return address is kept in r12 and at CFA - 16; the CFA is an expression over r13. */
void asm_expression(void (*f)(void));
__asm__(".text\n"
        ".type asm_expression, @function\n"
        "asm_expression:\n"
        ".cfi_startproc\n"
        "pushq %r13\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_offset %r13, -16\n"
        "leaq -184(%rsp), %r13\n"
        ".cfi_escape 0x0f, 0x06, 0x7d, 0xb8, 0x01, 0x23, 0x10, 0x96\n" /* breg13 184; plus_uconst 16; nop */
        "subq $256, %rsp\n"
        "call *%rdi\n"
        "addq $256, %rsp\n"
        ".cfi_def_cfa %rsp, 16\n"
        "popq %r13\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %r13\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size asm_expression, .-asm_expression\n");

static void test_expression(void **state)
{
    (void)state;
    asm_expression(leaf);
    check_taken(0);
}

/* Code without any CFI: the stack ends there, marked. */
static void test_no_cfi(void **state)
{
    (void)state;
    static const unsigned char code[] = {0x48, 0x83, 0xec, 0x18, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x18, 0xc3};
    void (*jit)(void (*)(void)) = NULL;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    memcpy(page, code, sizeof code);
    assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
    *(void **)&jit = page;
    for (int i = 0; i < 5; i++) {
        jit(leaf);
        taken = 0;
        assert_int_equal(ours.flags, WIRE_STACK_UNKNOWN);
        assert_int_equal(ours.depth, 2); /* leaf, the code */
        assert_true(ours.pcs[1] == (uint64_t)page + 6);
        check_same(&ours, &remembered);
        assert_true(ours.hash == remembered.hash);
    }
    munmap(page, 4096);
}

/* --- depth --- */

static NO_INLINE int recurse(int n)
{
    if (n == 0) {
        leaf();
        return 1;
    }
    int depth = recurse(n - 1);
    __asm__ volatile("" : "+r"(depth));
    return depth + 1;
}

static void test_deep(void **state)
{
    (void)state;
    recurse(300);
    check_taken(0);
    recurse(100000);
    taken = 0;
    assert_int_equal(ours.depth, UNWIND_FRAMES);
    assert_int_equal(ours.flags, WIRE_STACK_CUT);
    assert_int_equal(remembered.flags, WIRE_STACK_CUT);
    check_same(&ours, &remembered);
    assert_true(ours.hash == remembered.hash);
    assert_memory_equal(ours.pcs, theirs.pcs, sizeof ours.pcs); /* the innermost ones are kept */
    leaf();
    check_taken(0);
}

static void test_depth_exact(void **state)
{
    (void)state;
    struct unwind_thread *t = calloc(1, unwind_thread_bytes()), *saved = thread;
    leaf();
    taken = 0;
    unsigned whole = ours.depth;
    for (unsigned most = 1; most <= whole + 1; most++) {
        unwind_thread_init(t, (uint64_t)__libc_stack_end, most);
        thread = t;
        leaf();
        thread = saved;
        taken = 0;
        /* this function's call of leaf is another one than above, but as deep */
        assert_int_equal(ours.depth, most < whole ? most : whole);
        assert_int_equal(ours.flags, most < whole ? WIRE_STACK_CUT : 0);
        check_same(&ours, &remembered);
        assert_true(ours.hash == remembered.hash);
    }
    free(t);
}

/* --- other stacks --- */

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
                thread->same_count = thread->patience; /* all of it is remembered */
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

/* --- garbage --- */

/* Whatever state it is given, an unwind ends, and reads nothing that is not there. */
static void test_garbage(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252ull, inside = (uint64_t)leaf + 5;
    char *mapped = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mapped != MAP_FAILED);
    mprotect(mapped + 8192, 4096, PROT_NONE);
    for (int i = 0; i < 20000; i++) {
        struct unwind_stack out;
        uint64_t r[3], bases[] = {0,
                                  (uint64_t)&random,
                                  (uint64_t)mapped,
                                  (uint64_t)mapped + 8192,
                                  (uint64_t)thread,
                                  ~0ull << 47,
                                  1ull << 47,
                                  inside};
        for (int k = 0; k < 3; k++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            r[k] = bases[random >> 60 & 7] + (random >> 20 & (random >> 50 & 1 ? 0xfff : 0x1ff8)) -
                   (random >> 51 & 1 ? 0 : 4096);
        }
        struct unwind_state s = {i & 1 ? theirs.pcs[random % 4] : r[0], r[1], r[2]};
        unwind_nested(thread, s, &out);
        unwind_stack(thread, s, &out);
        unwind_above(thread, s, r[1] + 64);
        assert_true(out.depth <= UNWIND_FRAMES);
    }
    munmap(mapped, 3 * 4096);
    leaf();
    check_taken(0);
}

/* A stack whose saved words are overwritten. */
static NO_INLINE void smash(uint64_t *frame, uint64_t with)
{
    uint64_t saved[64];
    memcpy(saved, frame, sizeof saved);
    for (int i = 0; i < 64; i += 1 + (with & 1))
        if (saved[i] < 4096 || saved[i] > 1ull << 46)
            frame[i] = with;
    struct unwind_state s;
    struct unwind_stack out;
    UNWIND_HERE(s);
    unwind_nested(thread, s, &out);
    unwind_stack(thread, s, &out);
    memcpy(frame, saved, sizeof saved);
    assert_true(out.depth <= UNWIND_FRAMES);
}

static void test_smashed(void **state)
{
    uint64_t block[64] = {0};
    (void)state;
    static const uint64_t with[] = {0, 1, 8, 0x7ffffffff000, 1ull << 63, ~0ull, 0x123456789abcdef0};
    for (unsigned i = 0; i < sizeof with / sizeof with[0]; i++)
        smash(block, with[i]);
    smash(block, (uint64_t)block);
    leaf();
    check_taken(0);
}

/* --- changing stacks against memory --- */

static NO_INLINE void wander(uint64_t *random, int depth)
{
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    if (depth == 0 || (*random >> 40 & 7) == 0) {
        leaf();
        check_taken(0);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (*random >> 30 & 1)
            with_alloca(*random >> 50 & 63), check_taken(0);
        if (*random >> 31 & 1)
            wander(random, depth - 1);
        else if (*random >> 32 & 1)
            wander(random, depth - 2 < 0 ? 0 : depth - 2);
        else
            leaf(), check_taken(0);
    }
}

static void test_wander(void **state)
{
    (void)state;
    uint64_t random = 0x9876543212345ull;
    for (int i = 0; i < 300; i++) {
        remember_all = i & 1;
        wander(&random, 12);
    }
}

static int set_up(void **state)
{
    (void)state;
    thread = calloc(1, unwind_thread_bytes());
    unwind_thread_init(thread, (uint64_t)__libc_stack_end, UNWIND_FRAMES);
    unwind_counters = &counters;
    return thread ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_alloca),
        cmocka_unit_test(test_realigned),
        cmocka_unit_test(test_noreturn),
        cmocka_unit_test(test_cold_part),
        cmocka_unit_test(test_rich),
        cmocka_unit_test(test_rich_twice),
        cmocka_unit_test(test_expression),
        cmocka_unit_test(test_no_cfi),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_depth_exact),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_signal_other_stack),
        cmocka_unit_test(test_fault),
        cmocka_unit_test(test_signal_restorer),
        cmocka_unit_test(test_left_by_longjmp),
        cmocka_unit_test(test_no_signal_above),
        cmocka_unit_test(test_coroutine),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_smashed),
        cmocka_unit_test(test_wander),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
