/* A library that loses its symbols: one function keeps its name, the rest is reached through it or through a pointer.
 */
#include <stdlib.h>
#include <string.h>

/* What assembler exports without a size: the code behind it is none of its. */
__asm__(".text\n.globl stripped_mark\n.type stripped_mark, @function\nstripped_mark: ret\n");

__attribute__((visibility("hidden"), noinline)) void *hidden_fill(size_t size)
{
    char *p = malloc(size);
    memset(p, 1, size);
    return p;
}

static __attribute__((noinline)) void *between(size_t size)
{
    return hidden_fill(size);
}

static void callback(void)
{
    for (volatile int i = 0; i < 10; i++)
        between(1000);
}

void (*const stripped_callback)(void) = callback;

__attribute__((noinline)) void stripped_open(void)
{
    for (volatile int i = 0; i < 7; i++)
        between(100);
}
