/* Children that take over a heap with holes, free a part of it and allocate their own, and their parents, which go on
 * with the same heap. Each counts the pages of its own blocks by itself, and what malloc_trim(0) gives back by
 * /proc/self/pagemap. Allocates nothing else. */
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OLD = 2000, OWN = 1000, LEAF = 500, PAGE = 4096, PAGES_MAX = 1 << 14 };
enum { OLD_BYTES = 1000, OWN_BYTES = 1200, LEAF_BYTES = 5000, LATE_BYTES = 2500 };

static char *old[OLD], *rows[OLD], *own[OWN], *leaf[LEAF], *late[OLD];
static uint8_t lines[PAGES_MAX]; /* of each page: a bit for each line that has a block there */
static size_t heap_start;

static __attribute__((noinline)) char *keep_old(void)
{
    char *block = malloc(OLD_BYTES); /* old */
    return memset(block, 'o', OLD_BYTES);
}

static __attribute__((noinline)) char *keep_own(void)
{
    char *block = malloc(OWN_BYTES); /* own */
    return memset(block, 'w', OWN_BYTES);
}

static __attribute__((noinline)) char *keep_leaf(void)
{
    char *block = malloc(LEAF_BYTES); /* leaf */
    return memset(block, 'l', LEAF_BYTES);
}

static __attribute__((noinline)) char *keep_late(void)
{
    char *block = malloc(LATE_BYTES); /* late: of the parent, after the fork */
    return memset(block, 'a', LATE_BYTES);
}

/* A chunk begins 16 bytes before its block; the last 8 usable bytes lie in the next one, and are the block's where it
 * asked for so many. */
static void touch(char *const *blocks, size_t count, size_t size, unsigned line)
{
    for (size_t i = 0; i < count; i++) {
        size_t block = (size_t)blocks[i], end = block ? block + malloc_usable_size(blocks[i]) - 8 : 0;
        end = end < block + size ? block + size : end;
        for (size_t page = (block - 16) / PAGE; block && page < (end + PAGE - 1) / PAGE; page++)
            lines[page - heap_start / PAGE] |= (uint8_t)(1u << line);
    }
}

static size_t live(char *const *blocks, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += blocks[i] != NULL;
    return found;
}

static void say(const char *name)
{
    size_t only[4] = {0}, shared = 0, last = 0, sum;
    char text[400];
    memset(lines, 0, sizeof lines);
    touch(old, OLD, OLD_BYTES, 0);
    touch(own, OWN, OWN_BYTES, 1);
    touch(leaf, LEAF, LEAF_BYTES, 2);
    touch(late, OLD, LATE_BYTES, 3);
    for (size_t i = 0; i < PAGES_MAX; i++) {
        for (unsigned k = 0; k < 4; k++)
            only[k] += lines[i] == 1u << k;
        shared += (lines[i] & (lines[i] - 1)) != 0;
        last = lines[i] ? i + 1 : last;
    }
    sum = only[0] + only[1] + only[2] + only[3] + shared;
    int n = snprintf(text, sizeof text, "%s %zu|%zu %zu|%zu %zu|%zu %zu|%zu %zu|%zu\n", name, live(old, OLD),
                     only[0] * PAGE, live(own, OWN), only[1] * PAGE, live(leaf, LEAF), only[2] * PAGE, live(late, OLD),
                     only[3] * PAGE, shared * PAGE, (last - sum) * PAGE);
    if (write(1, text, (size_t)n) != n)
        _exit(1);
}

static void drop(char **blocks, size_t count, size_t every, size_t from)
{
    for (size_t i = from; i < count; i += every) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

/* Bytes of the heap on pages that are there. */
static size_t present(void)
{
    static uint64_t words[PAGES_MAX];
    size_t count = ((size_t)sbrk(0) - heap_start) / PAGE, found = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY);
    if (pread(fd, words, count * 8, (off_t)(heap_start / PAGE * 8)) != (ssize_t)(count * 8))
        _exit(1);
    close(fd);
    for (size_t i = 0; i < count; i++)
        found += words[i] >> 63;
    return found * PAGE;
}

static void trim(void)
{
    char text[100];
    size_t before = present();
    malloc_trim(0);
    int n = snprintf(text, sizeof text, "fell %zu\n", before - present());
    if (write(1, text, (size_t)n) != n)
        _exit(1);
}

static void grandchild(int is_trimmed)
{
    prctl(PR_SET_NAME, "grandchild");
    drop(old, OLD, 5, 0); /* some are gone already */
    drop(own, OWN, 2, 1);
    for (int i = 0; i < LEAF; i++)
        leaf[i] = keep_leaf();
    say("grandchild");
    if (is_trimmed)
        trim();
    _exit(0);
}

static void child(int is_trimmed)
{
    prctl(PR_SET_NAME, "child");
    usleep(400000); /* with all that it took over */
    drop(old, OLD, 4, 0);
    for (int i = 0; i < OWN; i++)
        own[i] = keep_own();
    for (int i = 1; i < OLD; i += 100) /* what grows is the child's, wherever it lies */
        old[i] = realloc(old[i], 1008);
    drop(old, OLD, 100, 1);
    if (fork() == 0)
        grandchild(is_trimmed);
    drop(own, OWN, 10, 0);
    wait(NULL);
    say("child");
    _exit(0);
}

int main(int argc, char **argv)
{
    heap_start = (size_t)sbrk(0) & ~(size_t)(PAGE - 1); /* nothing was allocated yet */
    (void)argv;
    for (int i = 0; i < OLD; i++) {
        old[i] = keep_old();
        rows[i] = malloc(7000);
        memset(rows[i], 'r', 7000);
    }
    drop(rows, OLD, 1, 0);
    say("fork");
    if (fork() == 0)
        child(argc > 1);
    drop(old, OLD, 2, 0); /* at once: the child has them all the same */
    for (int i = 0; i < OLD; i++)
        late[i] = keep_late();
    wait(NULL);
    say("parent");
    return 0;
}
