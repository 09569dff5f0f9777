/* Blocks that come and go as lines on standard input say: take N, drop N (the oldest), child N (a forked child takes N
 * and ends), push NAME, pop, name NAME (the oldest block). After each a line: what `take` allocated so far, in blocks
 * and bytes, and what it freed of that: of children, who free nothing, too. */
#include "../../include/memprof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct block {
    struct block *next;
    size_t size;
};
static struct block *first, **last = &first;
static long taken, taken_bytes, dropped, dropped_bytes;

static __attribute__((noinline)) void take(void)
{
    size_t size = sizeof(struct block) + (size_t)(taken * 37 % 3000);
    struct block *b = malloc(size);
    *b = (struct block){NULL, size};
    *last = b;
    last = &b->next;
    taken++;
    taken_bytes += (long)size;
}

static void drop(void)
{
    struct block *b = first;
    first = b->next;
    if (!first)
        last = &first;
    dropped++;
    dropped_bytes += (long)b->size;
    free(b);
}

/* It ends with what it took, and with what it inherited, which is its parent's. */
static void child(long count)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (long i = 0; i < count; i++)
            take();
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    for (long i = 0, n = taken; i < count; i++, n++)
        taken_bytes += (long)sizeof(struct block) + n * 37 % 3000;
    taken += count;
}

static void obey(const char *what, const char *argument)
{
    long count = atol(argument);
    if (!strcmp(what, "child"))
        child(count);
    else if (!strcmp(what, "push"))
        memprof_range_push(argument);
    else if (!strcmp(what, "pop"))
        memprof_range_pop();
    else if (!strcmp(what, "name"))
        memprof_name(first, argument);
    else
        for (long i = 0; i < count; i++)
            (*what == 't' ? take : drop)();
}

int main(void)
{
    char line[100], what[20], argument[50];
    static char in[BUFSIZ], out[BUFSIZ];
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOFBF, sizeof out);
    while (fgets(line, sizeof line, stdin)) {
        *argument = 0;
        if (sscanf(line, "%19s %49s", what, argument) < 1)
            continue;
        obey(what, argument);
        printf("%ld|%ld|%ld|%ld\n", taken, taken_bytes, dropped, dropped_bytes);
        fflush(stdout);
    }
    return 0;
}
