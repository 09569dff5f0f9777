/* Closes every descriptor from 3 on, then opens files at those numbers and checks that nobody else writes to or closes
 * them; then allocates 1,000 blocks of 21 bytes in `work`, half of them in a forked child. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) void work(int count)
{
    for (int i = 0; i < count; i++)
        free(malloc(21));
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int fds[10];
    for (int i = 0; i < 10; i++)
        fds[i] = open(argv[1], O_RDWR | O_CREAT, 0600);
    work(500);
    pid_t pid = fork();
    if (pid == 0) {
        work(500);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    struct stat s;
    for (int i = 0; i < 10; i++)
        if (fds[i] != 3 + i || fstat(fds[i], &s) || s.st_size || close(fds[i]))
            return 1;
    return 0;
}
