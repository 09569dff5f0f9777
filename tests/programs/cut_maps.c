/* cut_maps SEED STEPS: random maps, of which parts are unmapped, mapped over, made inaccessible and moved, and a ledger
 * with the owner of each page. A map asked for is one block until its last page is gone. Prints for the functions
 * `left` and `right`, which map, and `moved` (mremap): "NAME allocs bytes frees freed peak largest", the highest sum of
 * all of them as "peak". Then a fixed case: `large`, `overlaid`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 3000, SITES = 3 };
#define BASE     ((char *)0x100000000000) /* far from where the kernel puts maps by itself */
#define NOINLINE __attribute__((noinline))

static const char *const names[SITES] = {"left", "right", "moved"};
static struct site {
    long allocs, bytes, frees, freed, peak, largest;
} sites[SITES];
static struct block {
    int site, pages;
} blocks[200000];
static int owner[PAGES], block_count, inaccessible[PAGES];
static long peak;
static unsigned long long seed;

static unsigned below(unsigned limit)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % limit;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void lose(int first, int count)
{
    for (int i = first; i < first + count; i++) {
        struct block *b = &blocks[owner[i]];
        if (owner[i]) {
            sites[b->site].freed += PAGE;
            sites[b->site].frees += --b->pages == 0;
        }
        owner[i] = inaccessible[i] = 0;
    }
}

static void gain(int site, int first, int count)
{
    struct site *s = &sites[site];
    long live = 0;
    blocks[++block_count] = (struct block){site, count};
    for (int i = first; i < first + count; i++)
        owner[i] = block_count;
    s->allocs++;
    s->bytes += (long)count * PAGE;
    for (int i = 0; i < SITES; i++)
        live += sites[i].bytes - sites[i].freed;
    peak = live > peak ? live : peak;
    s->peak = s->bytes - s->freed > s->peak ? s->bytes - s->freed : s->peak;
    s->largest = (long)count * PAGE > s->largest ? (long)count * PAGE : s->largest;
}

static NOINLINE void left(int first, int count)
{
    if (mmap(BASE + (long)first * PAGE, (size_t)count * PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("mmap");
}

static NOINLINE void right(int first, int count)
{
    if (mmap(BASE + (long)first * PAGE, (size_t)count * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
        fail("mmap");
}

static NOINLINE int moved(int first, int count, int to, int to_count)
{
    return mremap(BASE + (long)first * PAGE, (size_t)count * PAGE, (size_t)to_count * PAGE,
                  MREMAP_MAYMOVE | MREMAP_FIXED, BASE + (long)to * PAGE) != MAP_FAILED;
}

/* Pages of one block beside each other, which lie in one map of the kernel's. */
static void move(void)
{
    int first = (int)below(PAGES - 64), count = 1 + (int)below(12), to = (int)below(PAGES - 64);
    int to_count = below(2) ? count : 1 + (int)below(16);
    for (int i = first; i < first + count; i++)
        if (!owner[i] || owner[i] != owner[first])
            count = i - first;
    if (count == 0 || (to < first + count && first < to + to_count))
        return;
    if (!moved(first, count, to, to_count))
        fail("mremap");
    lose(first, count);
    lose(to, to_count);
    gain(2, to, to_count);
}

static void step(void)
{
    int first = (int)below(PAGES - 64), count = 1 + (int)below(below(4) ? 8 : 60);
    switch (below(8)) {
    case 0:
    case 1:
    case 2:
        lose(first, count);
        left(first, count);
        gain(0, first, count);
        break;
    case 3:
        lose(first, count);
        right(first, count);
        gain(1, first, count);
        break;
    case 4:
    case 5:
        lose(first, count);
        if (munmap(BASE + (long)first * PAGE, (size_t)count * PAGE))
            fail("munmap");
        break;
    case 6: /* of what is accessible; nothing is made accessible again */
        for (int i = first; i < first + count; i++)
            if (!owner[i])
                count = i - first;
        if (count && mprotect(BASE + (long)first * PAGE, (size_t)count * PAGE, PROT_NONE))
            fail("mprotect");
        lose(first, count);
        break;
    default:
        move();
    }
}

/* 256 MiB, 1 MiB in its middle mapped anew, its first MiB unmapped: 1 block of 254 MiB and 1 of 1 MiB. */
static NOINLINE char *large(void)
{
    return mmap(BASE - (1l << 30), 256ul << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
static NOINLINE void overlaid(char *at)
{
    if (mmap(at, 1ul << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
        fail("mmap");
}

int main(int argc, char **argv)
{
    char line[200];
    if (argc < 3)
        return 2;
    seed = strtoull(argv[1], NULL, 0) * 77777 + 1;
    for (long i = atol(argv[2]); i > 0; i--)
        step();
    long random_peak = peak;
    char *map = large();
    overlaid(map + (100l << 20));
    munmap(map, 1ul << 20);
    for (int i = 0; i < SITES; i++) {
        const struct site *s = &sites[i];
        int n = snprintf(line, sizeof line, "%s|%ld|%ld|%ld|%ld|%ld|%ld\n", names[i], s->allocs, s->bytes, s->frees,
                         s->freed, s->peak, s->largest);
        if (write(1, line, (size_t)n) != n)
            return 1;
    }
    int n = snprintf(line, sizeof line, "peak|%ld\n", random_peak);
    if (argc > 3)
        for (;;)
            pause();
    return write(1, line, (size_t)n) != n;
}
