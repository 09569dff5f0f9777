/* far_stack: a thread whose stack reaches down 48 MiB to a page that cannot be read; below that lies the stack of a
 * coroutine, on which it allocates and frees 200 blocks of 50 bytes in `far`, then as many on its own in `near`. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define OWN   (48ul << 20)
#define OTHER (256ul << 10)

static ucontext_t here, there;

static __attribute__((noinline)) void far(void)
{
    for (int i = 0; i < 200; i++)
        free(malloc(50));
}

static __attribute__((noinline)) void near(void)
{
    for (int i = 0; i < 200; i++)
        free(malloc(50));
}

static void *thread(void *other)
{
    getcontext(&there);
    there.uc_stack.ss_sp = other;
    there.uc_stack.ss_size = OTHER;
    there.uc_link = &here;
    makecontext(&there, far, 0);
    swapcontext(&here, &there);
    near();
    return other;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t t;
    char *pages = mmap(NULL, OTHER + 4096 + OWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + OTHER, 4096, PROT_NONE))
        return 1;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, pages + OTHER + 4096, OWN) || pthread_create(&t, &attributes, thread, pages))
        return 1;
    return pthread_join(t, NULL);
}
