/* Big blocks with small ones between that stay: the heap cannot shrink. Says what it knows of its own pages, counted by
 * itself, and with "trim" what malloc_trim(0) gave back. Allocates nothing else. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROWS = 8000,
    KEYS = ROWS / 8,
    TAGS = KEYS / 10,
    PAGE = 4096,
    KEY_BYTES = 48,
    TAG_BYTES = 20,
    PAGES_MAX = 1 << 15
};

static char *rows[ROWS], *keys[KEYS], *tags[TAGS];
static char by_key[PAGES_MAX], by_tag[PAGES_MAX];
static size_t heap_start;

static __attribute__((noinline)) char *parse_row(int i)
{
    char *row = malloc(6000 + (size_t)i % 512); /* row */
    memset(row, 'r', 6000 + (size_t)i % 512);
    return row;
}

static __attribute__((noinline)) char *keep_key(void)
{
    char *key = malloc(KEY_BYTES); /* key */
    memset(key, 'k', KEY_BYTES);
    return key;
}

static __attribute__((noinline)) char *keep_tag(void)
{
    char *tag = malloc(TAG_BYTES); /* tag */
    memset(tag, 't', TAG_BYTES);
    return tag;
}

static void import(void)
{
    for (int i = 0; i < ROWS; i++) {
        rows[i] = parse_row(i);
        if (i % 8 == 7)
            keys[i / 8] = keep_key();
        if (i % 80 == 79)
            tags[i / 80] = keep_tag();
    }
    for (int i = 0; i < ROWS; i++)
        free(rows[i]);
}

static size_t resident(void)
{
    char text[100] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? strtoul(strchr(text, ' '), NULL, 10) * PAGE : 0;
}

/* A chunk begins 16 bytes before its block; the last 8 usable bytes lie in the next one, and are the block's where it
 * asked for so many. */
static void touch(char *pages, const char *block, size_t size)
{
    size_t start = (size_t)block - 16, end = (size_t)block + malloc_usable_size((void *)block) - 8;
    if (end < (size_t)block + size)
        end = (size_t)block + size;
    for (size_t page = start / PAGE; page <= (end - 1) / PAGE; page++)
        if (page - heap_start / PAGE < PAGES_MAX)
            pages[page - heap_start / PAGE] = 1;
}

static void count(void)
{
    size_t only[3] = {0}, last = 0;
    for (int i = 0; i < KEYS; i++)
        touch(by_key, keys[i], KEY_BYTES);
    for (int i = 0; i < TAGS; i++)
        touch(by_tag, tags[i], TAG_BYTES);
    for (size_t i = 0; i < PAGES_MAX; i++) {
        only[0] += by_key[i] && !by_tag[i];
        only[1] += by_tag[i] && !by_key[i];
        only[2] += by_tag[i] && by_key[i];
        last = by_tag[i] || by_key[i] ? i : last;
    }
    printf("key=%zu\ntag=%zu\nshared=%zu\nheld=%zu\n", only[0] * PAGE, only[1] * PAGE, only[2] * PAGE,
           (last + 1 - only[0] - only[1] - only[2]) * PAGE);
}

static void *in_thread(void *unused)
{
    import();
    heap_start = (size_t)keys[0] & ~((64ul << 20) - 1); /* where glibc puts the heaps of other arenas */
    (void)unused;
    return NULL;
}

int main(int argc, char **argv)
{
    static char buffer[4096];
    const char *mode = argc > 1 ? argv[1] : "";
    pthread_t thread;
    heap_start = (size_t)sbrk(0); /* nothing was allocated yet */
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (strcmp(mode, "thread") == 0) {
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
    } else {
        import();
    }
    count();
    usleep(strcmp(mode, "short") == 0 ? 0 : 1300000); /* it goes on with next to nothing */
    if (strcmp(mode, "trim") == 0) {
        size_t before = resident();
        malloc_trim(0);
        printf("fell=%zu\n", before - resident());
        usleep(1300000);
    }
    return 0;
}
