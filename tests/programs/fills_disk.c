/* fills_disk FILE: allocates 1,000 blocks, lets 60 ms pass, fills the disk that FILE is on, allocates 500 more, and
 * after a second 10 more; ends with status 5. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile kept;

__attribute__((noinline)) static void work(int count)
{
    for (int i = 0; i < count; i++)
        kept = malloc(100);
}

int main(int argc, char **argv)
{
    static char block[4096];
    work(1000);
    usleep(60000);
    memset(block, 'x', sizeof block);
    int fd = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    size_t bytes = sizeof block;
    while (fd >= 0 && bytes)
        if (write(fd, block, bytes) <= 0)
            bytes /= 2;
    work(500);
    usleep(1000000);
    work(10);
    return 5;
}
