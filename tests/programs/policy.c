/* A program under a policy (run --policy). Argument: what to do. Whatever it waits for comes within MOST_S, or it says
 * so. */
#include "../../include/memprof.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1024, BLOCKS = 64 * 1024, KEPT_EVERY = 16, MOST_S = 60 };

static char *blocks[BLOCKS];
static atomic_int called, dropped, is_ready;
static volatile sig_atomic_t signals;

static long resident_mib(void)
{
    long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
        exit(3);
    fclose(f);
    return resident / 256;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 2000000}, NULL);
}

static time_t now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* 64 MiB of 1 KiB blocks, of which each 16th stays: on each fourth page. 48 MiB are whole free pages. Returns what was
 * resident before they were. */
static long make_holes(void)
{
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(BLOCK), i, BLOCK);
    const long full_mib = resident_mib();
    for (int i = 0; i < BLOCKS; i++)
        if (i % KEPT_EVERY) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    return full_mib;
}

static void check_holes(void)
{
    for (int i = 0; i < BLOCKS; i += KEPT_EVERY)
        if (blocks[i][0] != (char)i || blocks[i][BLOCK - 1] != (char)i)
            exit(4);
}

/* The action behind a trim: that was answered before. */
static void see_after(const char *order, const char *device, void *arg)
{
    (void)order, (void)device, (void)arg;
    atomic_fetch_add(&called, 1);
}

/* Without an allocation of its own, as a server that waits. most_mib 0: there is nothing to wait for. */
static void holes(int is_polling, long most_mib)
{
    int done = 0;
    memprof_on("after", see_after, NULL);
    if (is_polling)
        memprof_poll();
    long before = make_holes(), after = resident_mib();
    for (time_t end = now_s() + MOST_S; most_mib && (after > most_mib || !atomic_load(&called)) && now_s() < end;
         after = resident_mib()) {
        done += is_polling ? memprof_poll() : 0;
        nap();
    }
    check_holes();
    printf("before %s, after %s%s\n", before > 60 ? "full" : "?", after <= 30 ? "trimmed" : "full",
           is_polling && done ? ", polled" : "");
}

static void drop(const char *order, const char *device, void *arg)
{
    printf("%s %s %s\n", order, device, (const char *)arg);
    fflush(stdout);
    while (!atomic_load(&is_ready)) /* of memprof's own thread */
        nap();
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    atomic_fetch_add(&dropped, 1);
}

static void wait_for_call(int is_polling)
{
    for (time_t end = now_s() + MOST_S; !(atomic_load(&dropped) && atomic_load(&called)) && now_s() < end;) {
        if (is_polling)
            memprof_poll();
        nap();
    }
    printf("called %s\n", atomic_load(&dropped) && atomic_load(&called) ? "yes" : "no");
}

static void callback(int is_polling)
{
    char arg[] = "arg";
    if (is_polling)
        memprof_poll();
    printf("on %d %d\n", memprof_on("drop", drop, arg), memprof_on("after", see_after, NULL));
    fflush(stdout);
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(BLOCK), i, BLOCK);
    atomic_store(&is_ready, 1);
    wait_for_call(is_polling);
}

static void handle(int number)
{
    signals += number == SIGUSR1;
}

static void by_signal(void)
{
    struct sigaction a = {.sa_handler = handle};
    sigaction(SIGUSR1, &a, NULL);
    char *block = malloc(1 << 20);
    for (time_t end = now_s() + MOST_S; !signals && now_s() < end;)
        nap();
    free(block);
    printf("signal %s\n", signals ? "yes" : "no");
}

/* What a program may not say. */
static void text(void)
{
    static const char *const texts[] = {
        "host 0-101 active >= 0 mark",
        "host 0-101 active >= 0 signal KILL",
        "host 0-101 active >= 0 run touch owned",
        "host 0-101 active >= 0 mark, run touch owned",
        "host 50 active >= 0 mark",
        "\n\n# nothing\n",
        "host 0-101 idle >= 99999999999999999999999 mark",
    };
    char *long_text = malloc(9000);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        printf("%d\n", memprof_policy(texts[i], strlen(texts[i])));
    memset(long_text, '#', 9000);
    printf("%d %d %d\n", memprof_policy(long_text, 8000), memprof_policy(long_text, 9000), memprof_policy("a\0b", 3));
    printf("%d\n", memprof_policy("host 0-101 reserved >= 1 keyframe", 33));
    free(long_text);
}

/* A policy from inside, whose order its own new thread takes. */
static void inside(void)
{
    static const char said[] = "host 0-101 idle >= 56MiB malloc-trim, callback after";
    printf("policy %d\n", memprof_policy(said, sizeof said - 1));
    holes(0, 30);
}

/* The child has no such thread when it begins. It allocates on, as a server does. */
static void forked(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        memprof_on("after", see_after, NULL);
        make_holes();
        long after = resident_mib();
        for (time_t end = now_s() + MOST_S; (after > 30 || !atomic_load(&called)) && now_s() < end;
             after = resident_mib()) {
            free(malloc(100));
            nap();
        }
        check_holes();
        printf("child %s\n", after <= 30 ? "trimmed" : "full");
        fflush(stdout);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("status %d\n", status);
}

/* Without an allocation, at which a thread may begin. */
static int thread_count(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "\nThreads:");
    return line ? atoi(line + strlen("\nThreads:")) : 0;
}

static void allocate(int number)
{
    (void)number;
    free(malloc(100));
}

/* A child that has an order, as its parent has had the same one by then, and allocates in handlers alone at first: what
 * they interrupted may hold any lock. */
static void handlers(void)
{
    int ready[2], go[2], status;
    char byte;
    struct sigaction a = {.sa_handler = allocate};
    if (pipe(ready) || pipe(go))
        exit(3);
    memprof_on("after", see_after, NULL);
    free(malloc(100));
    pid_t pid = fork();
    if (pid == 0) {
        sigaction(SIGUSR2, &a, NULL);
        if (write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(3);
        for (int i = 0; i < 40; i++) { /* samples, by which orders are noticed, are due each 10 ms */
            raise(SIGUSR2);
            nap();
        }
        int in_handlers = thread_count();
        for (time_t end = now_s() + MOST_S; thread_count() < 2 && now_s() < end; nap())
            free(malloc(100));
        printf("threads %d %d\n", in_handlers, thread_count());
        fflush(stdout);
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1)
        exit(3);
    atomic_store(&called, 0);
    for (time_t end = now_s() + MOST_S; !atomic_load(&called) && now_s() < end;)
        nap();
    if (write(go[1], "", 1) != 1)
        exit(3);
    waitpid(pid, &status, 0);
    printf("status %d\n", status);
}

static void *worker(void *unused)
{
    (void)unused;
    nap();
    printf("worker\n");
    fflush(stdout);
    return NULL;
}

/* Its first thread ends before the others: the program ends with the last of its own. */
static void first_ends(void)
{
    pthread_t id;
    pthread_create(&id, NULL, worker, NULL);
    pthread_exit(NULL);
}

/* What glibc has each thread do, by a signal that it waits for. */
static void rights(void)
{
    printf("setuid %d\n", setuid(getuid()));
}

/* Refused where there are other threads. */
static void enter_namespace(void)
{
    char *block = malloc(100);
    printf("namespace %d\n", unshare(CLONE_NEWUSER));
    free(block);
}

static void never(void)
{
    memprof_poll();
    make_holes();
    for (time_t end = now_s() + MOST_S; now_s() < end && getchar() != EOF;)
        ;
    check_holes();
    printf("done\n");
}

/* Ends while somebody may be trimming. */
static void ends(void)
{
    make_holes();
    for (int i = 0; i < 25; i++)
        nap();
    check_holes();
    printf("done\n");
    exit(7);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "holes"))
        holes(0, 30);
    else if (!strcmp(mode, "poll"))
        holes(1, 30);
    else if (!strcmp(mode, "stay"))
        holes(0, 0);
    else if (!strcmp(mode, "callback"))
        callback(0);
    else if (!strcmp(mode, "callback_poll"))
        callback(1);
    else if (!strcmp(mode, "signal"))
        by_signal();
    else if (!strcmp(mode, "text"))
        text();
    else if (!strcmp(mode, "inside"))
        inside();
    else if (!strcmp(mode, "fork"))
        forked();
    else if (!strcmp(mode, "handlers"))
        handlers();
    else if (!strcmp(mode, "first"))
        first_ends();
    else if (!strcmp(mode, "rights"))
        rights();
    else if (!strcmp(mode, "namespace"))
        enter_namespace();
    else if (!strcmp(mode, "namespaces")) {
        enter_namespace();
        holes(0, 30);
    } else if (!strcmp(mode, "never"))
        never();
    else if (!strcmp(mode, "ends"))
        ends();
    else
        return 2;
    return 0;
}
