/* A library whose constructor allocates before others run: 3 blocks of 33 bytes, of which one is freed by the program,
 * one at exit. */
#include <stdlib.h>

void *from_ctor;
static void *other;
static __attribute__((noinline)) void ctor_work(void)
{
    from_ctor = malloc(33);
    other = malloc(33);
    free(malloc(33));
}
__attribute__((constructor(101))) static void ctor(void)
{
    ctor_work();
}
__attribute__((destructor)) static void dtor(void)
{
    free(other);
}
