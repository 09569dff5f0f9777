#include "own_stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

enum { LEAST_BYTES = 2 << 20, OWN_BYTES = 8 << 20 };

static struct {
    own_stack_main *main;
    char **argv;
    int argc, status;
    ucontext_t back, own;
} call;

static void enter(void)
{
    call.status = call.main(call.argc, call.argv);
}

/* New threads get as much as the limit says, unless they are told. */
static void widen_threads(void)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return;
    if (pthread_attr_setstacksize(&attributes, OWN_BYTES) == 0)
        pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

int own_stack_run(own_stack_main *main, int argc, char **argv)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= LEAST_BYTES)
        return main(argc, argv);
    void *stack =
        mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || getcontext(&call.own))
        return main(argc, argv);
    widen_threads();
    call.main = main;
    call.argc = argc;
    call.argv = argv;
    call.own.uc_stack.ss_sp = stack;
    call.own.uc_stack.ss_size = OWN_BYTES;
    call.own.uc_link = &call.back;
    makecontext(&call.own, enter, 0);
    swapcontext(&call.back, &call.own);
    return call.status;
}
