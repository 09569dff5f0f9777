// A program with an operator new of its own: 100 blocks of 48 bytes from an array of its own; "malloc": from malloc.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

static char arena[1 << 16];
static std::size_t arena_used;
static bool from_malloc;

void *operator new(std::size_t size)
{
    void *p = from_malloc ? malloc(size) : arena + arena_used;
    if (!from_malloc)
        arena_used += (size + 15) & ~std::size_t(15);
    if (!p || arena_used > sizeof arena)
        throw std::bad_alloc();
    return p;
}

void operator delete(void *p) noexcept
{
    if (from_malloc)
        free(p);
}

void operator delete(void *p, std::size_t) noexcept
{
    operator delete(p);
}

extern "C" __attribute__((noinline)) void blocks()
{
    for (int i = 0; i < 100; i++) {
        void *volatile p = operator new(48);
        operator delete(p);
    }
}

int main(int argc, char **argv)
{
    from_malloc = argc > 1 && !strcmp(argv[1], "malloc");
    blocks();
    printf("%zu\n", arena_used);
}
