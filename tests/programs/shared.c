/*
 * shared PROCESSES MILLISECONDS FILE: reads each page of the file through a mapping. shared PROCESSES MILLISECONDS:
 * writes to 32 MiB that the processes have mapped together. Each process stays so long, and has a block of its own.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *map(const char *path, size_t *bytes)
{
    struct stat st = {.st_size = 32 << 20};
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (path && (fd < 0 || fstat(fd, &st)))
        exit(1);
    *bytes = (size_t)st.st_size;
    char *p =
        mmap(NULL, *bytes, path ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
    if (p == MAP_FAILED)
        exit(1);
    return p;
}

int main(int argc, char **argv)
{
    size_t bytes;
    char *p = map(argc > 3 ? argv[3] : NULL, &bytes), sum = 0;
    int count = argc > 2 ? atoi(argv[1]) : 1;
    for (int i = 1; i < count; i++)
        if (fork() == 0)
            count = 0;
    for (size_t at = 0; at < bytes; at += 4096)
        sum ^= argc > 3 ? p[at] : (p[at] = 1);
    char *own = memset(malloc(1 << 20), sum, 1 << 20);
    usleep(argc > 2 ? 1000 * (useconds_t)atoi(argv[2]) : 0);
    free(own);
    while (count && wait(NULL) > 0)
        ;
    return 0;
}
