#include "stack_call.h"

#include <errno.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct call {
    void (*function)(void *argument);
    void *argument;
    ucontext_t back, own;
};

static _Thread_local struct call *entered;

static void enter(void)
{
    struct call *call = entered;
    call->function(call->argument);
}

int stack_call(size_t bytes, void (*function)(void *argument), void *argument)
{
    struct call call = {.function = function, .argument = argument};
    void *stack =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    int rc = 0;
    if (mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) || getcontext(&call.own)) {
        rc = -errno;
    } else {
        call.own.uc_stack.ss_sp = stack;
        call.own.uc_stack.ss_size = bytes;
        call.own.uc_link = &call.back;
        entered = &call;
        makecontext(&call.own, enter, 0);
        swapcontext(&call.back, &call.own);
    }
    munmap(stack, bytes);
    return rc;
}
