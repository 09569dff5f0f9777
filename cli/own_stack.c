#include "own_stack.h"

#include "../common/stack_call.h"

#include <pthread.h>
#include <sys/resource.h>

enum { LEAST_BYTES = 2 << 20, OWN_BYTES = 8 << 20 };

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

struct call {
    own_stack_main *main;
    char **argv;
    int argc, status;
};

static void enter(void *argument)
{
    struct call *call = argument;
    widen_threads();
    call->status = call->main(call->argc, call->argv);
}

int own_stack_run(own_stack_main *main, int argc, char **argv)
{
    struct rlimit limit;
    struct call call = {.main = main, .argv = argv, .argc = argc};
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= LEAST_BYTES || stack_call(OWN_BYTES, enter, &call))
        return main(argc, argv);
    return call.status;
}
