/* Memory that is asked for, and memory that is there, in pages of 4,096 bytes. In functions of their own:
 *   touched    maps 16,384 pages (64 MiB), without huge pages, and writes the first 3,000 of them
 *   zeroed     calloc of 8,192 pages, never touched: malloc maps it
 *   returned   maps 2,000 pages, writes all, gives 500 of them back (MADV_DONTNEED)
 *   shared     maps 700 pages that a child would share, and writes 300
 *   reserved   maps 64 GiB without access and without a page
 *   small      100,000 blocks of 100 bytes, written
 *   read_only  maps 1,000 pages and reads them: the kernel's zero page, which takes no memory
 * What the kernel says of these (mincore) is written, a line each; then it sleeps. With "fork" a child writes 200
 * pages of `touched`, and reads what is written of `shared`, before both sleep, so that 2,800 and 300 are shared by the
 * two; with "exit" the sleep is left out; with "hidden" it lets nobody look who has no right above its user's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, SMALL = 100000 };
static char *blocks[SMALL];

static char *map(size_t pages, int flags)
{
    char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
    return p;
}
static __attribute__((noinline)) char *touched(void)
{
    char *p = map(16384, MAP_PRIVATE);
    memset(p, 1, 3000 * PAGE);
    return p;
}
static __attribute__((noinline)) char *zeroed(void)
{
    return calloc(8192, PAGE);
}
static __attribute__((noinline)) char *returned(void)
{
    char *p = map(2000, MAP_PRIVATE);
    memset(p, 1, 2000 * PAGE);
    madvise(p + 1000 * PAGE, 500 * PAGE, MADV_DONTNEED);
    return p;
}
static __attribute__((noinline)) char *shared(void)
{
    char *p = map(700, MAP_SHARED);
    memset(p, 1, 300 * PAGE);
    return p;
}
static __attribute__((noinline)) char *reserved(void)
{
    return mmap(NULL, 64ul << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static __attribute__((noinline)) void small(void)
{
    for (int i = 0; i < SMALL; i++)
        blocks[i] = memset(malloc(100), 1, 100);
}
static __attribute__((noinline)) char *read_only(void)
{
    char *p = map(1000, MAP_PRIVATE);
    for (int i = 0; i < 1000; i++)
        (void)*(volatile char *)(p + i * PAGE);
    return p;
}

static void tell(const char *name, char *p, size_t pages)
{
    static unsigned char vec[16384];
    size_t there = 0;
    if (mincore(p, pages * PAGE, vec))
        exit(1);
    for (size_t i = 0; i < pages; i++)
        there += vec[i] & 1;
    printf("%s %zu\n", name, there);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "hidden") == 0)
        prctl(PR_SET_DUMPABLE, 0);
    char *a = touched(), *b = zeroed(), *c = returned(), *d = shared(), *e = reserved(), *f = read_only();
    if (e == MAP_FAILED || !b)
        return 1;
    small();
    tell("touched", a, 16384);
    tell("returned", c, 2000);
    tell("shared", d, 700);
    printf("%d %d\n", f[0], b[0] == 0);
    fflush(stdout);
    pid_t child = strcmp(how, "fork") == 0 ? fork() : -1;
    if (child == 0) {
        memset(a, 2, 200 * PAGE);
        for (int i = 0; i < 300; i++)
            (void)*(volatile char *)(d + i * PAGE);
    }
    if (strcmp(how, "exit") != 0)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    if (child > 0)
        waitpid(child, NULL, 0);
    return 0;
}
