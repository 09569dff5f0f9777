/* stripped LIBRARY: calls a library without symbols, once through a pointer and once by name; then code in no module.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline)) static void through_pointer(void (*call)(void))
{
    call();
}

__attribute__((noinline)) static void by_name(void (*call)(void))
{
    call();
}

/* A copy of a function that calls malloc(50): push %rbp; mov %rsp, %rbp; mov $50, %edi; movabs $malloc, %rax; call
 * *%rax; pop %rbp; ret */
__attribute__((noinline)) static void generated(void)
{
    unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xbf, 50, 0, 0,    0,    0x48, 0xb8, 0,
                            0,    0,    0,    0,    0,    0,  0, 0xff, 0xd0, 0x5d, 0xc3};
    void *(*target)(size_t) = malloc;
    memcpy(code + 11, &target, sizeof target);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    void *(*call)(void);
    memcpy(&call, &page, sizeof page);
    for (volatile int i = 0; i < 5; i++)
        call();
    munmap(page, 4096);
}

int main(int argc, char **argv)
{
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (**callback)(void) = dlsym(library, "stripped_callback");
    void (*open)(void);
    void *symbol = dlsym(library, "stripped_open");
    memcpy(&open, &symbol, sizeof symbol);
    through_pointer(*callback);
    by_name(open);
    generated();
    return 0;
}
