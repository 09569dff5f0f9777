/*
 * stub.h: code that is put into another process and run by one of its threads once. It needs nobody to end well: it
 * saves the thread's state, makes its calls on a stack of its own, and puts everything back.
 */
#ifndef MEMPROF_STUB_H
#define MEMPROF_STUB_H

#include <stdint.h>

/* What the code finds beside itself. Written before, only read by it. */
struct stub_words {
    uint64_t library, symbol, argument; /* addresses of texts */
    uint64_t dlopen, dlsym, dlerror;    /* dlopen 0: function is called at once */
    uint64_t function;
    uint64_t state_bytes; /* of the processor's state beside the general registers (xsave), and some more */
    uint64_t all_signals, no_signals, own_signals; /* masks; the last one is the thread's */
    uint64_t nap[2];                               /* a timespec */
    uint64_t flags, rip, rsp;                      /* from here on: the thread's registers */
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t tid; /* of the thread that runs it */
};

/* The code, position-independent, and where in it it begins, goes on without us, and has its words. At its start is a
 * text by which one that was left behind is known. */
extern const char stub_code[], stub_entry[], stub_alone[], stub_place[], stub_end[];
#define STUB_NAME "memprof's attach"

/* In r13 while the code waits, having put all back but the registers: */
#define STUB_CALLED     1
#define STUB_NOT_LOADED 2
#define STUB_NO_MEMORY  3
/* r14: what the function returned; the address of dlerror's text, or 0; the error. It waits so long for whoever put it
 * there to restore the registers, which is the better way: the kernel then restarts an interrupted call as it should.
 */
#define STUB_NAPS   4
#define STUB_NAP_NS 500000000

#endif
