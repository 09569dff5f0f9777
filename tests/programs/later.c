/*
 * Maps 300 MiB, writes to 150 MiB of it and rests for as many milliseconds as the first argument says, in which all of
 * that is seen; then it writes to 8 MiB more, and returns from main at once. "gone": it gives all of it back before.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ul << 20)

static __attribute__((noinline)) char *table(void)
{
    char *held = mmap(NULL, 300 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (held == MAP_FAILED)
        exit(1);
    madvise(held, 300 * MIB, MADV_NOHUGEPAGE);
    return held;
}

int main(int argc, char **argv)
{
    char *held = table();
    memset(held, 1, 150 * MIB);
    usleep(argc > 1 ? 1000 * (unsigned)atoi(argv[1]) : 1000000);
    memset(held + 150 * MIB, 1, 8 * MIB);
    if (argc > 2)
        munmap(held, 300 * MIB);
    return 0;
}
