// Each form of operator new and delete, 10 times 128 bytes, each from a function of its own.
#include <cstdlib>
#include <new>

enum { TIMES = 10, BYTES = 128 };
static const std::align_val_t wide{64};

#define CASE(name, allocate, release)                                                                                  \
    extern "C" __attribute__((noinline)) void new_##name()                                                             \
    {                                                                                                                  \
        void *volatile p = allocate;                                                                                   \
        if (!p)                                                                                                        \
            abort();                                                                                                   \
        release;                                                                                                       \
    }
CASE(plain, operator new(BYTES), operator delete(p, std::size_t(BYTES)))
CASE(array, operator new[](BYTES), operator delete[](p))
CASE(nothrow, operator new(BYTES, std::nothrow), operator delete(p, std::nothrow))
CASE(array_nothrow, operator new[](BYTES, std::nothrow), operator delete[](p, std::size_t(BYTES)))
CASE(aligned, operator new(BYTES, wide), operator delete(p, wide))
CASE(array_aligned, operator new[](BYTES, wide), operator delete[](p, std::size_t(BYTES), wide))
CASE(aligned_nothrow, operator new(BYTES, wide, std::nothrow), operator delete(p, std::size_t(BYTES), wide))
CASE(array_aligned_nothrow, operator new[](BYTES, wide, std::nothrow), operator delete[](p, wide, std::nothrow))

int main()
{
    for (int i = 0; i < TIMES; i++) {
        new_plain();
        new_array();
        new_nothrow();
        new_array_nothrow();
        new_aligned();
        new_array_aligned();
        new_aligned_nothrow();
        new_array_aligned_nothrow();
    }
}
