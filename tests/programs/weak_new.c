/* A C program that would use C++'s operator new where there is one. */
#include <stddef.h>
#include <stdio.h>

extern void *_Znwm(size_t size) __attribute__((weak));
extern void *_ZnwmSt11align_val_t(size_t size, size_t alignment) __attribute__((weak));
extern void _ZdlPv(void *p) __attribute__((weak));

__attribute__((noinline)) static int use(void)
{
    int wrong = 0;
    for (int i = 0; i < 10; i++) {
        char *p = _Znwm(100), *q = _ZnwmSt11align_val_t(200, 512);
        wrong |= !p || !q || (size_t)q % 512;
        _ZdlPv(p);
        _ZdlPv(q);
    }
    return wrong;
}

int main(void)
{
    if (_Znwm && _ZnwmSt11align_val_t && _ZdlPv)
        return use();
    puts("none");
    return 0;
}
