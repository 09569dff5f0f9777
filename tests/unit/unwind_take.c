#include "unwind_take.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

struct unwind_thread *thread;
struct stack ours, remembered, theirs;
int taken, remember_all;
struct wire_counters counters;

NO_INLINE void take(void)
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
    stack_by_libunwind(&theirs, s.pc);
    taken++;
}

void check_same(const struct stack *a, const struct stack *b)
{
    if (a->depth != b->depth)
        for (unsigned i = 0; i < a->depth || i < b->depth; i++)
            printf("%2u %lx %lx\n", i, i < a->depth ? a->pcs[i] : 0, i < b->depth ? b->pcs[i] : 0);
    assert_int_equal(a->depth, b->depth);
    assert_memory_equal(a->pcs, b->pcs, a->depth * sizeof a->pcs[0]);
}

void check_taken(unsigned flags)
{
    assert_int_equal(taken, 1);
    taken = 0;
    check_same(&ours, &theirs);
    check_same(&remembered, &theirs);
    assert_int_equal(ours.flags, flags);
    assert_int_equal(remembered.flags, flags);
    assert_true(ours.hash == remembered.hash);
}

NO_INLINE void leaf(void)
{
    take();
    __asm__ volatile("");
}

/* as in ld.so's lazy binding; rbp is changed and saved */
__asm__(".text\n"
        ".globl asm_rbx\n"
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

int take_set_up(void **state)
{
    (void)state;
    thread = calloc(1, unwind_thread_bytes());
    unwind_thread_init(thread, (uint64_t)__libc_stack_end, UNWIND_FRAMES);
    unwind_counters = &counters;
    return thread ? 0 : -1;
}
