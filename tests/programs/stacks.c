/* Hooks on unusual stacks: a thread with PTHREAD_STACK_MIN, a signal handler on its own small stack, a recursion of
 * 2,000 frames, a makecontext stack. Each allocates one block of a size of its own in `leaf`, freed. Exit status 0. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

static __attribute__((noinline)) void leaf(int size)
{
    char *p = malloc(size);
    p[0] = 1;
    free(p);
}
static void *small(void *unused)
{
    leaf(1001);
    return unused;
}
static void handler(int number)
{
    (void)number;
    leaf(1002);
}
static __attribute__((noinline)) int deep(int n)
{
    if (n == 0) {
        leaf(1003);
        return 0;
    }
    return deep(n - 1) + 1;
}
static ucontext_t back, other;
static void in_context(void)
{
    leaf(1004);
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, small, NULL))
        return 1;
    pthread_join(thread, NULL);

    static char space[32768];
    stack_t stack = {.ss_sp = space, .ss_size = sizeof space};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);

    if (deep(2000) != 2000)
        return 1;

    static char context_stack[65536];
    getcontext(&other);
    other.uc_stack.ss_sp = context_stack;
    other.uc_stack.ss_size = sizeof context_stack;
    other.uc_link = &back;
    makecontext(&other, in_context, 0);
    swapcontext(&back, &other);
    return 0;
}
