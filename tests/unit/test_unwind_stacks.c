/* Stacks of what compilers and people write, of every depth, and of garbage: each compared with libunwind's in the same
 * place. */
#include "unwind_take.h"

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- plain, and what compilers do --- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),      cmocka_unit_test(test_alloca),      cmocka_unit_test(test_realigned),
        cmocka_unit_test(test_noreturn),   cmocka_unit_test(test_cold_part),   cmocka_unit_test(test_rich),
        cmocka_unit_test(test_rich_twice), cmocka_unit_test(test_expression),  cmocka_unit_test(test_no_cfi),
        cmocka_unit_test(test_deep),       cmocka_unit_test(test_depth_exact), cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_smashed),    cmocka_unit_test(test_wander),
    };
    return cmocka_run_group_tests(tests, take_set_up, NULL);
}
