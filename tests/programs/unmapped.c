/* unmapped: a thread allocates on a coroutine's stack right below its own, unmaps that, and allocates on one below. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 65536, THREAD_BYTES = 262144 };
static ucontext_t thread_context, coroutine;
static char *base; /* second coroutine's stack, first one's, thread's */

__attribute__((noinline)) static void counted(void)
{
    for (int i = 0; i < 50; i++)
        free(malloc(100));
}

static void run(void)
{
    counted();
    swapcontext(&coroutine, &thread_context);
}

static void run_on(char *stack)
{
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = STACK_BYTES;
    makecontext(&coroutine, run, 0);
    swapcontext(&thread_context, &coroutine);
}

static void *thread(void *unused)
{
    free(malloc(3));
    run_on(base + STACK_BYTES);
    munmap(base + STACK_BYTES, STACK_BYTES);
    run_on(base);
    return unused;
}

int main(void)
{
    pthread_attr_t on_top;
    pthread_t t;
    base = mmap(NULL, 2 * STACK_BYTES + THREAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&on_top);
    if (base == MAP_FAILED || pthread_attr_setstack(&on_top, base + 2 * STACK_BYTES, THREAD_BYTES) ||
        pthread_create(&t, &on_top, thread, NULL))
        return 2;
    return pthread_join(t, NULL);
}
