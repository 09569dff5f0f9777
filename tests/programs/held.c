/* Blocks of known numbers, made and freed by functions that a test knows, then nothing: "ready" and a pause. A forked
 * child holds some of its own and pauses, too; another one ends with some. See tests/faults/collector_end.sh for the
 * arithmetic. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
static void *blocks[3000];

static NOINLINE void small(int count)
{
    for (int i = 0; i < count; i++)
        blocks[i] = malloc(24);
}

static NOINLINE void *grown(void)
{
    void *block = malloc(1000);
    return realloc(block, 5000);
}

static NOINLINE void mapped(void)
{
    for (int i = 1; i <= 5; i++) {
        char *map = mmap(NULL, (size_t)i << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (i % 2)
            munmap(map, (size_t)i << 16);
    }
}

static NOINLINE void in_child(int count)
{
    for (int i = 0; i < count; i++)
        blocks[i] = malloc(100);
}

static void idle(void)
{
    for (;;)
        pause();
}

int main(void)
{
    static void *keep[10];
    int up[2];
    char c;
    small(3000);
    for (int i = 0; i < 3000; i += 3)
        free(blocks[i]);
    for (int i = 0; i < 10; i++)
        keep[i] = grown();
    free(keep[3]);
    mapped();
    if (pipe(up))
        return 1;
    if (fork() == 0) {
        in_child(70);
        _exit(0);
    }
    wait(NULL);
    if (fork() == 0) {
        in_child(50);
        free(blocks[7]);
        if (write(up[1], "x", 1) != 1)
            return 1;
        idle();
    }
    if (read(up[0], &c, 1) != 1 || write(1, "ready\n", 6) != 6)
        return 1;
    idle();
}
