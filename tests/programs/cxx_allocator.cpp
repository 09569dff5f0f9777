// Arrays of a known size; failing forms of operator new, by exception and without; a new-handler that frees and
// allocates; and blocks after all that. "throws": the allocator throws std::bad_alloc (mimalloc, built as C, aborts).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

enum { ARRAYS = 3000, ARRAY_BYTES = 1000, REFUSALS = 20, AFTER = 100, AFTER_BYTES = 10 };
static volatile std::size_t too_large = PTRDIFF_MAX - 4096;
static const std::align_val_t wide{64};
static char *arrays[ARRAYS], *reserve, *volatile kept;
static int handled, caught;

extern "C" {
__attribute__((noinline)) void fill()
{
    for (int i = 0; i < ARRAYS; i++)
        arrays[i] = new char[ARRAY_BYTES];
}

__attribute__((noinline)) void empty()
{
    for (int i = 0; i < ARRAYS; i++)
        delete[] arrays[i];
}

__attribute__((noinline)) void refused_nothrow()
{
    for (int i = 0; i < REFUSALS; i++)
        if ((kept = static_cast<char *>(operator new(too_large, std::nothrow))) ||
            (kept = static_cast<char *>(operator new(too_large, wide, std::nothrow))))
            abort();
}

__attribute__((noinline)) void refused_throwing()
{
    for (int i = 0; i < REFUSALS; i++) {
        try {
            if (i % 2)
                kept = static_cast<char *>(operator new(too_large));
            else
                kept = static_cast<char *>(operator new[](too_large, wide));
            abort();
        } catch (const std::bad_alloc &) {
            caught++;
        }
    }
}

__attribute__((noinline)) void make_reserve()
{
    reserve = new char[5000];
}

__attribute__((noinline)) void handler_keeps()
{
    kept = new char[77];
}

__attribute__((noinline)) void refused_in_handler()
{
    try {
        kept = static_cast<char *>(operator new(too_large));
        abort();
    } catch (const std::bad_alloc &) {
        caught++;
    }
}

static void handler()
{
    handled++;
    delete[] reserve;
    std::set_new_handler(nullptr);
    refused_in_handler();
    handler_keeps();
    free(malloc(33));
}

__attribute__((noinline)) void refused_with_handler()
{
    make_reserve();
    std::set_new_handler(handler);
    try {
        kept = static_cast<char *>(operator new(too_large));
        abort();
    } catch (const std::bad_alloc &) {
        caught++;
    }
}

__attribute__((noinline)) void after()
{
    for (int i = 0; i < AFTER; i++) {
        char *volatile p = new char[AFTER_BYTES];
        delete[] p;
        operator delete(nullptr);
        operator delete[](nullptr, std::size_t(1), wide);
    }
}
}

int main(int argc, char **argv)
{
    fill();
    refused_nothrow();
    if (argc > 1 && !strcmp(argv[1], "throws")) {
        refused_throwing();
        refused_with_handler();
    }
    after();
    empty();
    printf("handled %d caught %d\n", handled, caught);
    return kept && kept[0] == 1 ? 3 : 0;
}
