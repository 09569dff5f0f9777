/* Allocates in .preinit_array, before any library's constructor has run, and in its own constructors. */
#include <stdlib.h>

static void *early[4];
static __attribute__((noinline)) void preinit_work(void)
{
    early[0] = malloc(44);
    early[1] = calloc(4, 11);
    early[2] = realloc(NULL, 44);
}
static void preinit(int argc, char **argv, char **env)
{
    (void)argc, (void)argv, (void)env;
    preinit_work();
}
__attribute__((section(".preinit_array"), used)) static void (*entry)(int, char **, char **) = preinit;
__attribute__((constructor(101))) static void ctor(void)
{
    early[3] = malloc(55);
}

int main(void)
{
    early[0] = realloc(early[0], 88);
    for (int i = 0; i < 4; i++)
        free(early[i]);
    return 0;
}
