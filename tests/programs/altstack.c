/* altstack BYTES [loop]: a signal handler on a stack of its own of so many bytes, below which a page kills, allocates
 * and frees 3 blocks of 100 bytes in `take`: before the program has allocated anything, and once more. With loop it
 * then interrupts allocations 200 times, which needs an allocator that permits it (lib_bump.so). Prints how many bytes
 * of the stack were used. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile int signals;

static __attribute__((noinline)) void take(void)
{
    void *p = malloc(100);
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
}

static void handler(int number)
{
    (void)number;
    signals++;
    for (int i = 0; i < 3; i++)
        take();
}

static void interrupt_allocations(void)
{
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 200}, {0, 200}}, NULL);
    while (signals < 202)
        free(malloc(24));
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
}

int main(int argc, char **argv)
{
    static char out[256];
    size_t bytes = argc > 1 ? (size_t)atol(argv[1]) : 4096, whole = (bytes + 4095) & ~4095ul;
    char *pages = mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages, 4096, PROT_NONE))
        return 1;
    char *low = pages + 4096 + whole - bytes;
    memset(low, 0x5a, bytes);
    stack_t stack = {.ss_sp = low, .ss_size = bytes};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL))
        return 77; /* smaller than the kernel's own frame */
    setvbuf(stdout, out, _IOFBF, sizeof out);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    raise(SIGUSR1);
    raise(SIGUSR1);
    if (argc > 2)
        interrupt_allocations();
    size_t unused = 0;
    while (unused < bytes && low[unused] == 0x5a)
        unused++;
    printf("%d %zu\n", signals, bytes - unused);
    return 0;
}
