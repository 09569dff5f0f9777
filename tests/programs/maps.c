/* Memory that the program maps itself, in pages of 4,096 bytes. In `work`:
 *   map 100 pages; unmap the middle 20; unmap the rest in one call over the hole;
 *   map 10, grow to 50 by mremap, unmap;
 *   reserve 1,000 without access (not counted), make 30 of them accessible (counted), unmap all.
 * Its active bytes peak at 100 pages. In `keep`: 7 pages by mmap64, never unmapped. In `breaks`: the break up by 3
 * pages and down again (sbrk), up by 2 and down (brk): 2 blocks, 5 pages, none of them left. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };
static char *map(size_t pages, int protection)
{
    return mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static __attribute__((noinline)) int work(void)
{
    char *a = map(100, PROT_READ | PROT_WRITE);
    memset(a, 1, 100 * PAGE);
    munmap(a + 40 * PAGE, 20 * PAGE);
    munmap(a, 100 * PAGE);
    char *b = map(10, PROT_READ | PROT_WRITE);
    b = mremap(b, 10 * PAGE, 50 * PAGE, MREMAP_MAYMOVE);
    if (b == MAP_FAILED)
        return 1;
    b[50 * PAGE - 1] = 1;
    munmap(b, 50 * PAGE);
    char *c = map(1000, PROT_NONE);
    if (mprotect(c, 30 * PAGE, PROT_READ | PROT_WRITE))
        return 1;
    c[0] = 1;
    munmap(c, 1000 * PAGE);
    return 0;
}
static __attribute__((noinline)) int keep(void)
{
    char *d = mmap64(NULL, 7 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return d == MAP_FAILED;
}
static __attribute__((noinline)) int breaks(void)
{
    char *start = sbrk(3 * PAGE);
    if (start == (char *)-1)
        return 1;
    memset(start, 1, 3 * PAGE);
    if (sbrk(-3 * PAGE) == (void *)-1 || brk(start + 2 * PAGE))
        return 1;
    start[2 * PAGE - 1] = 1;
    return brk(start);
}

int main(void)
{
    return work() | keep() | breaks();
}
