/*
 * A parent with 64 MiB of heap forks twice; the first child writes to 16 MiB of that and to 8 MiB of its own, the
 * second one does nothing. All stay for a while; the first one prints what the kernel counts of its memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

/* Without an allocation. */
static void tell(void)
{
    char text[4096];
    int fd = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (n <= 0 || write(1, text, (size_t)n) != n)
        _exit(1);
    close(fd);
}

static void work(char *inherited, unsigned stay_us)
{
    memset(inherited, 2, 16 * MIB);
    char *own = malloc(8 * MIB);
    memset(own, 3, 8 * MIB);
    usleep(stay_us);
    tell();
    usleep(300000);
    free(own);
    _exit(0);
}

int main(int argc, char **argv)
{
    unsigned stay_us = 1000000 * (argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    char *held = memset(malloc(64 * MIB), 1, 64 * MIB);
    pid_t first = fork();
    if (first == 0)
        work(held, stay_us);
    pid_t second = fork();
    if (second == 0) {
        usleep(stay_us + 300000);
        _exit(0);
    }
    waitpid(first, NULL, 0);
    waitpid(second, NULL, 0);
    free(held);
    return 0;
}
