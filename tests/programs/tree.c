/* tree CHILDREN BLOCKS: a pre-forking server: the parent allocates BLOCKS blocks of 10 bytes in `parent_work`, each of
 * CHILDREN children BLOCKS of 20 bytes in `child_work`, freed, and frees half of its copies of the parent's blocks,
 * which must not count in the parent. Exit status: 0. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char **blocks;

static __attribute__((noinline)) void parent_work(int count)
{
    for (int i = 0; i < count; i++)
        blocks[i] = malloc(10);
}
static __attribute__((noinline)) void child_work(int count)
{
    for (int i = 0; i < count; i++)
        free(malloc(20));
    for (int i = 0; i < count / 2; i++)
        free(blocks[i]);
}

int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 4, count = argc > 2 ? atoi(argv[2]) : 1000;
    blocks = calloc(count, sizeof *blocks);
    parent_work(count);
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            child_work(count);
            _exit(i % 3);
        }
    }
    for (int i = 0; i < children; i++)
        if (wait(NULL) < 0)
            return 1;
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    free(blocks);
    return 0;
}
