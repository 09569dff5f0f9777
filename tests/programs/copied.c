/*
 * Pages of before a fork that are written to after it: 60 MiB that their process touched, of which the child or its
 * parent ("parent") writes to 50 MiB, some time after all memory was there, by which the resident bytes of neither
 * change. The first argument is how many milliseconds each of the three times is.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

static __attribute__((noinline)) char *table(void)
{
    char *held = mmap(NULL, 60 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (held == MAP_FAILED)
        exit(1);
    madvise(held, 60 * MIB, MADV_NOHUGEPAGE);
    return memset(held, 1, 60 * MIB);
}

int main(int argc, char **argv)
{
    unsigned ms = argc > 1 ? (unsigned)atoi(argv[1]) : 500;
    const char *how = argc > 2 ? argv[2] : "child";
    char *held = table();
    pid_t child = fork();
    usleep(ms * 1000);
    if ((child == 0) == (strcmp(how, "child") == 0))
        memset(held, 2, 50 * MIB);
    usleep(2000 * ms);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
