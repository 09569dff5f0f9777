#include "stub.h"

#include <stddef.h>

/* The stack is mapped anew: the thread's own may be small, or nobody's but a scheduler's in user space. Calls while it
 * waits must not be of those that the kernel restarts by restart_syscall, as the thread may be in the middle of one. */
#define STACK_BYTES "262144"

#define WORD(name)         "stub_place + " NUMBER(name) "(%rip)"
#define NUMBER(name)       OFFSET_##name
#define OFFSET_library     "0"
#define OFFSET_symbol      "8"
#define OFFSET_argument    "16"
#define OFFSET_dlopen      "24"
#define OFFSET_dlsym       "32"
#define OFFSET_dlerror     "40"
#define OFFSET_function    "48"
#define OFFSET_state_bytes "56"
#define OFFSET_all_signals "64"
#define OFFSET_no_signals  "72"
#define OFFSET_own_signals "80"
#define OFFSET_nap         "88"
#define OFFSET_flags       "104"
#define OFFSET_rip         "112"
#define OFFSET_rsp         "120"
#define OFFSET_rax         "128"
#define OFFSET_rbx         "136"
#define OFFSET_rcx         "144"
#define OFFSET_rdx         "152"
#define OFFSET_rsi         "160"
#define OFFSET_rdi         "168"
#define OFFSET_rbp         "176"
#define OFFSET_r8          "184"
#define OFFSET_r9          "192"
#define OFFSET_r10         "200"
#define OFFSET_r11         "208"
#define OFFSET_r12         "216"
#define OFFSET_r13         "224"
#define OFFSET_r14         "232"
#define OFFSET_r15         "240"
_Static_assert(offsetof(struct stub_words, dlopen) == 24 && offsetof(struct stub_words, state_bytes) == 56 &&
                   offsetof(struct stub_words, nap) == 88 && offsetof(struct stub_words, flags) == 104 &&
                   offsetof(struct stub_words, rax) == 128 && offsetof(struct stub_words, r15) == 240,
               "the numbers above");

#define TEXT(x)  TEXT_(x)
#define TEXT_(x) #x

/* clang-format off */
#define RESTORE(name) "mov " WORD(name) ", %" #name "\n"

__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    ".globl stub_code, stub_entry, stub_alone, stub_place, stub_end\n"
    "stub_code:\n"
    ".ascii \"" STUB_NAME "\"\n"

    "stub_entry:\n"
    "cld\n"
    /* rt_sigprocmask: no signal handler may leave the calls by longjmp */
    "mov $14, %eax\n"
    "mov $2, %edi\n"
    "lea " WORD(all_signals) ", %rsi\n"
    "xor %edx, %edx\n"
    "mov $8, %r10d\n"
    "syscall\n"
    /* mmap: private, anonymous, without reserve */
    "mov $9, %eax\n"
    "xor %edi, %edi\n"
    "mov $" STACK_BYTES ", %esi\n"
    "mov $3, %edx\n"
    "mov $0x4022, %r10d\n"
    "mov $-1, %r8\n"
    "xor %r9d, %r9d\n"
    "syscall\n"
    "mov %rax, %rbx\n"
    "cmp $-4096, %rax\n"
    "ja 4f\n"
    "lea " STACK_BYTES "(%rbx), %r12\n"
    "sub " WORD(state_bytes) ", %r12\n"
    "and $-64, %r12\n"
    "mov $-1, %eax\n"
    "mov $-1, %edx\n"
    "xsave64 (%r12)\n"
    "mov %r12, %rsp\n"
    "xor %ebp, %ebp\n"

    "mov " WORD(dlopen) ", %rax\n"
    "test %rax, %rax\n"
    "jz 1f\n"
    "mov " WORD(library) ", %rdi\n"
    "mov $0x1002, %esi\n" /* RTLD_NOW | RTLD_NODELETE */
    "call *%rax\n"
    "test %rax, %rax\n"
    "jz 3f\n"
    "mov %rax, %rdi\n"
    "mov " WORD(symbol) ", %rsi\n"
    "mov " WORD(dlsym) ", %rax\n"
    "call *%rax\n"
    "test %rax, %rax\n"
    "jz 3f\n"
    "jmp 2f\n"
    "1: mov " WORD(function) ", %rax\n"
    "2: mov " WORD(argument) ", %rdi\n"
    "call *%rax\n"
    "movslq %eax, %r14\n"
    "mov $" TEXT(STUB_CALLED) ", %r13d\n"
    "jmp 5f\n"
    "3: mov " WORD(dlerror) ", %rax\n"
    "call *%rax\n"
    "mov %rax, %r14\n"
    "mov $" TEXT(STUB_NOT_LOADED) ", %r13d\n"
    "jmp 5f\n"
    "4: mov %rax, %r14\n"
    "mov $" TEXT(STUB_NO_MEMORY) ", %r13d\n"
    "jmp 6f\n"

    "5: mov $-1, %eax\n"
    "mov $-1, %edx\n"
    "xrstor64 (%r12)\n"
    "mov " WORD(rsp) ", %rsp\n"
    /* munmap */
    "mov $11, %eax\n"
    "mov %rbx, %rdi\n"
    "mov $" STACK_BYTES ", %esi\n"
    "syscall\n"
    /* rt_sigtimedwait for no signal */
    "6: mov $" TEXT(STUB_NAPS) ", %r15d\n"
    "7: mov $128, %eax\n"
    "lea " WORD(no_signals) ", %rdi\n"
    "xor %esi, %esi\n"
    "lea " WORD(nap) ", %rdx\n"
    "mov $8, %r10d\n"
    "syscall\n"
    "dec %r15d\n"
    "jnz 7b\n"

    /* nobody came. Flags by popf from where they can only be read; from then on nothing changes them */
    "stub_alone:\n"
    "lea " WORD(flags) ", %rsp\n"
    "popfq\n"
    "mov " WORD(rsp) ", %rsp\n"
    /* rt_sigprocmask */
    "mov $14, %eax\n"
    "mov $2, %edi\n"
    "lea " WORD(own_signals) ", %rsi\n"
    "mov $0, %edx\n"
    "mov $8, %r10d\n"
    "syscall\n"
    RESTORE(rax) RESTORE(rbx) RESTORE(rcx) RESTORE(rdx) RESTORE(rsi) RESTORE(rdi) RESTORE(rbp)
    RESTORE(r8) RESTORE(r9) RESTORE(r10) RESTORE(r11) RESTORE(r12) RESTORE(r13) RESTORE(r14) RESTORE(r15)
    "jmp *" WORD(rip) "\n"
    ".balign 16\n"
    "stub_place:\n"
    ".zero 256\n"
    "stub_end:\n"
    ".popsection\n");
/* clang-format on */
_Static_assert(sizeof(struct stub_words) <= 256, "its words have their room");
