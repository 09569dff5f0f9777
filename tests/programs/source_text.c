/* Driven by tests/e2e/source_text.sh: memprof_source of memprof.h. argv[1]: what it has to return. */
#include <memprof.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int bad;

static void expect(const char *what, int got, int expected)
{
    if (got == expected)
        return;
    fprintf(stderr, "%s: %d, expected %d\n", what, got, expected);
    bad = 1;
}

/* Each of 9 KiB, so in parts, which those of the others may lie between. */
static void *say(void *number)
{
    char name[32], text[9000];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "<thread %ld-%d>", (long)number, i);
        memset(text, 'a' + (int)(long)number, sizeof text);
        memprof_source(name, text, sizeof text);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static char large[1 << 20];
    const int status = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t threads[4];
    memset(large, 'x', sizeof large);
    expect("a text", memprof_source("<made>", "one\ntwo\n", 8), status);
    expect("no name", memprof_source("", "one", 3), -1);
    expect("null", memprof_source(NULL, NULL, 0), -1);
    expect("too large with its name", memprof_source("<large>", large, sizeof large), -1);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, say, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    expect("as much as there is left", memprof_source("<rest>", large, 1 << 19), status);
    expect("more than that", memprof_source("<more>", large, 1 << 19), -1);
    return bad;
}
