// Control flow that leaves frames early: longjmp over frames, exceptions thrown from deep below and from constructors,
// bad_alloc out of operator new. 1,000 rounds; in each, `thrower` allocates 1 block of 123 bytes that its handler
// frees.
#include <csetjmp>
#include <cstdlib>
#include <new>
#include <stdexcept>

static std::jmp_buf target;
static char *held;
#pragma GCC diagnostic ignored "-Winfinite-recursion" // it ends in a longjmp
static volatile int bottom;
[[gnu::noinline]] static void jumper(int depth)
{
    if (depth == bottom) {
        held = static_cast<char *>(std::malloc(122));
        std::longjmp(target, 1);
    }
    jumper(depth - 1);
    asm volatile("");
}
[[gnu::noinline]] static void thrower(int depth)
{
    if (depth == 0) {
        held = static_cast<char *>(std::malloc(123));
        throw std::runtime_error("from below");
    }
    thrower(depth - 1);
    asm volatile("");
}
struct Bad {
    char bytes[124];
    Bad()
    {
        throw 1;
    }
};

int main()
{
    volatile int caught = 0;
    volatile std::size_t huge = ~0ul / 4;
    for (int i = 0; i < 1000; i++) {
        if (setjmp(target) == 0)
            jumper(10);
        std::free(held);
        try {
            thrower(20);
        } catch (const std::exception &) {
            std::free(held);
            caught = caught + 1;
        }
        try {
            new Bad;
        } catch (int) {
            caught = caught + 1;
        }
        try {
            delete[] new char[huge];
        } catch (const std::bad_alloc &) {
            caught = caught + 1;
        }
    }
    return caught == 3000 ? 0 : 1;
}
