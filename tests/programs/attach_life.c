/*
 * A process to attach to that changes meanwhile. A thread of its own starts others all the time, which allocate. It
 * does what lines on standard input say, and answers each with one:
 *
 *   fork            a child that sleeps; its PID
 *   load FILE       a library, whose function allocate(COUNT) is called with 100; how much that allocated
 *   title TEXT      writes that over its arguments
 *   exec PROGRAM    becomes it
 *   end             exits with status 7
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int is_over;
static unsigned long started;

static void *allocate(void *arg)
{
    char *volatile p = malloc(100 + (size_t)arg % 1000);
    p[0] = 1;
    free(p);
    return NULL;
}

static void *start_threads(void *arg)
{
    pthread_t thread;
    while (!is_over)
        if (pthread_create(&thread, NULL, allocate, (void *)started++) == 0)
            pthread_join(thread, NULL);
    return arg;
}

static void load(const char *file)
{
    void *library = dlopen(file, RTLD_LAZY);
    unsigned long (*make)(unsigned) = NULL;
    if (library)
        *(void **)&make = dlsym(library, "allocate");
    if (!make) {
        puts("not loaded");
        return;
    }
    usleep(100000); /* a look at what is new comes each 10 ms */
    printf("loaded %lu\n", make(100));
}

/* As setproctitle does: what is left of the arguments is nothing but ends of strings. */
static void name_oneself(int argc, char **argv, const char *title)
{
    char *end = argv[argc - 1] + strlen(argv[argc - 1]);
    memset(argv[0], 0, (size_t)(end - argv[0]));
    snprintf(argv[0], (size_t)(end - argv[0]), "%s", title);
    puts("named");
}

int main(int argc, char **argv)
{
    char line[4096];
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_create(&thread, NULL, start_threads, NULL);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "title ", 6)) {
            name_oneself(argc, argv, line + 6);
        } else if (!strcmp(line, "fork")) {
            pid_t child = fork();
            if (child == 0)
                for (;;)
                    pause();
            printf("child %d\n", (int)child);
        } else if (!strncmp(line, "load ", 5)) {
            load(line + 5);
        } else if (!strncmp(line, "exec ", 5)) {
            execl(line + 5, line + 5, "30", (char *)NULL);
        } else if (!strcmp(line, "end")) {
            exit(7);
        }
    }
    is_over = 1;
    pthread_join(thread, NULL);
    puts("good");
    return 0;
}
