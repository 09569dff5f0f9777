/*
 * desk MODE: figures of memprof.h against a ledger of its own. Prints what differs; "differs 0": nothing does.
 *   alone          what the calls say without memprof
 *   host [CALLS]   random calls in four threads, each under one lock, and a question after each of them: bytes, blocks,
 *                  counts and the peak of the epoch, and the asking thread's own figures
 *   busy [CALLS]   the same, as two threads allocate without pause beside it: the thread's figures alone; how long the
 *                  questions took
 *   handler        questions in a signal handler, whatever it interrupts; then an exact one
 *   fork           a child's questions
 *   dies           those of a thread whose destructors run already
 *   end            questions until the collector is gone or stopped, and how long the longest took
 *   cost           what each call takes
 *   sync FILE      after memprof_sync, what a reader of FILE finds
 */
#include <memprof.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 300, THREADS = 4, BUSY = 2, BLOCK = 4096, CHURN = 64, TRIES = 60000 };

struct ledger { /* of all threads; the lock is theirs */
    uint64_t active_bytes, active_count, peak, alloc_count, alloc_bytes, free_count, free_bytes, epoch;
};

struct thread {
    unsigned seed, calls, failed;
    struct block {
        void *p;
        size_t size;
    } block[BLOCKS];
    struct ledger own; /* peak and epoch: not used */
    uint64_t *ns;      /* of each question */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static struct ledger all;
static struct memprof_device_figures base;
static int differs, is_alone;
static volatile int is_over;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static unsigned draw(struct thread *t, unsigned below)
{
    t->seed = t->seed * 1664525u + 1013904223u;
    return (t->seed >> 8) % below;
}

static void add(struct ledger *l, size_t size)
{
    l->active_bytes += size;
    l->active_count++;
    l->alloc_bytes += size;
    l->alloc_count++;
    l->peak = l->active_bytes > l->peak ? l->active_bytes : l->peak;
}

static void drop(struct ledger *l, size_t size)
{
    l->active_bytes -= size;
    l->active_count--;
    l->free_bytes += size;
    l->free_count++;
}

static void took(struct thread *t, struct block *b, void *p, size_t size)
{
    *b = (struct block){p, size};
    add(&all, size);
    add(&t->own, size);
}

static void gave(struct thread *t, struct block *b)
{
    drop(&all, b->size);
    drop(&t->own, b->size);
    b->p = NULL;
}

static void call(struct thread *t)
{
    struct block *b = &t->block[draw(t, BLOCKS)];
    size_t size = draw(t, 20) ? draw(t, 900) + 1 : draw(t, 300000) + 1;
    if (!b->p) {
        took(t, b, draw(t, 4) ? malloc(size) : calloc(1, size), size);
    } else if (draw(t, 3) == 0) {
        void *p = realloc(b->p, size);
        gave(t, b);
        took(t, b, p, size);
    } else {
        free(b->p);
        gave(t, b);
    }
}

static void differ(const char *what, uint64_t have, uint64_t want)
{
    if (have != want && differs++ < 10)
        printf("%s: %llu, by the ledger %llu\n", what, (unsigned long long)have, (unsigned long long)want);
}

/* What is not of this program's ledger was live before, in base. */
static void compare_all(const struct memprof_device_figures *f)
{
    differ("active bytes", f->active_bytes - base.active_bytes, all.active_bytes);
    differ("active count", f->active_count - base.active_count, all.active_count);
    differ("allocated bytes", f->allocated_bytes, f->active_bytes);
    differ("peak", f->peak_active_bytes - base.active_bytes, all.peak);
    differ("allocations", f->alloc_count, all.alloc_count);
    differ("bytes allocated", f->alloc_bytes, all.alloc_bytes);
    differ("frees", f->free_count, all.free_count);
    differ("bytes freed", f->free_bytes, all.free_bytes);
    differ("epoch", f->epoch, all.epoch);
    differ("reserved is at least active", f->reserved_bytes >= f->active_bytes, 1);
    differ("its peak is at least it", f->peak_reserved_bytes >= f->reserved_bytes, 1);
}

static void compare_own(const struct memprof_device_figures *f, const struct ledger *own)
{
    differ("thread's active bytes", f->thread_active_bytes, own->active_bytes);
    differ("thread's active count", f->thread_active_count, own->active_count);
    differ("thread's allocations", f->thread_alloc_count, own->alloc_count);
    differ("thread's bytes allocated", f->thread_alloc_bytes, own->alloc_bytes);
    differ("thread's frees", f->thread_free_count, own->free_count);
    differ("thread's bytes freed", f->thread_free_bytes, own->free_bytes);
}

/* Up to here, however long the collector gets no processor. */
static int now_at_last(const char *device, struct memprof_device_figures *f)
{
    int status = memprof_figures_now(device, f);
    for (unsigned tries = 0; status == MEMPROF_NO_ANSWER && tries < TRIES; tries++) {
        usleep(1000);
        status = memprof_figures_now(device, f);
    }
    return status;
}

static void ask(struct thread *t, unsigned i)
{
    struct memprof_device_figures f;
    uint64_t begin = now_ns();
    int status = now_at_last(is_alone || i % 2 ? "host" : NULL, &f);
    t->ns[i] = now_ns() - begin;
    t->failed += status != MEMPROF_OK;
    if (status != MEMPROF_OK)
        return;
    if (is_alone)
        compare_all(&f);
    compare_own(&f, &t->own);
}

/* Its peaks and counts begin here: those of the ledger, too. */
static void epoch(void)
{
    memprof_epoch("an epoch");
    all.epoch++;
    all.peak = all.active_bytes;
    all.alloc_count = all.alloc_bytes = all.free_count = all.free_bytes = 0;
}

static void *work(void *arg)
{
    struct thread *t = arg;
    pthread_barrier_wait(&barrier); /* all threads have their stacks, and main its figures from before them */
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < t->calls; i++) {
        if (is_alone)
            pthread_mutex_lock(&lock);
        call(t);
        if (is_alone && i % 100 == 99)
            epoch();
        ask(t, i);
        if (is_alone)
            pthread_mutex_unlock(&lock);
    }
    pthread_barrier_wait(&barrier); /* none of them ends before all have asked */
    return NULL;
}

static void *churn(void *arg)
{
    void *block[CHURN] = {NULL};
    for (unsigned i = 0; !is_over; i++) {
        free(block[i % CHURN]);
        block[i % CHURN] = malloc(i % 500 + 1);
    }
    for (unsigned i = 0; i < CHURN; i++)
        free(block[i]);
    return arg;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* threads: how many ask; busy: how many allocate beside them. */
static int run(unsigned threads, unsigned busy, unsigned calls)
{
    static struct thread thread[THREADS];
    pthread_t id[THREADS + BUSY];
    unsigned failed = 0, per = calls / threads;
    uint64_t *ns = calloc(calls, sizeof *ns);
    is_alone = !busy;
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        thread[i] = (struct thread){.seed = i + 1, .calls = per, .ns = ns + i * per};
        pthread_create(&id[i], NULL, work, &thread[i]);
    }
    for (unsigned i = 0; i < busy; i++)
        pthread_create(&id[threads + i], NULL, churn, NULL);
    pthread_barrier_wait(&barrier);
    all.epoch = 1;
    memprof_epoch("the first one");
    failed += now_at_last("host", &base) != MEMPROF_OK;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    is_over = 1;
    for (unsigned i = 0; i < threads + busy; i++)
        pthread_join(id[i], NULL);
    for (unsigned i = 0; i < threads; i++)
        failed += thread[i].failed;
    qsort(ns, per * threads, sizeof *ns, by_value);
    fprintf(stderr, "questions %u, median %llu us, p99 %llu us, longest %llu us\n", per * threads,
            (unsigned long long)ns[per * threads / 2] / 1000, (unsigned long long)ns[per * threads * 99 / 100] / 1000,
            (unsigned long long)ns[per * threads - 1] / 1000);
    printf("asked %u\nfailed %u\ndiffers %d\n", per * threads, failed, differs);
    printf("median_us %llu\n", (unsigned long long)ns[per * threads / 2] / 1000);
    free(ns);
    return 0;
}

/* --- where nobody may wait, or nobody answers --- */

static volatile unsigned handled, answered, refused, others;

static void expect_ok(const char *what, int status)
{
    if (status == MEMPROF_OK)
        return;
    others++;
    write(2, what, strlen(what));
}

static void handler(int number)
{
    struct memprof_device_figures f;
    int status = memprof_figures_now("host", &f);
    (void)number;
    handled++;
    answered += status == MEMPROF_OK;
    refused += status == MEMPROF_NOT_HERE;
    expect_ok("now, in a handler\n", status == MEMPROF_NOT_HERE || status == MEMPROF_NO_ANSWER ? MEMPROF_OK : status);
    expect_ok("in a handler\n", memprof_figures("host", &f));
}

static int in_handler(void)
{
    struct memprof_device_figures before, after;
    struct itimerval timer = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
    signal(SIGALRM, handler);
    now_at_last("host", &before);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (unsigned i = 0; handled < 500; i++) {
        free(malloc(i % 1000 + 1));
        if (i % 1000 == 0)
            expect_ok("between handlers\n", now_at_last("host", &after));
    }
    setitimer(ITIMER_REAL, &none, NULL);
    int status = now_at_last("host", &after);
    differ("active bytes after handlers", after.active_bytes, before.active_bytes);
    printf("answered %d\nrefused %d\nothers %u\nat the end %d\ndiffers %d\n", answered > 0, refused > 0, others, status,
           differs);
    return 0;
}

static int in_child(void)
{
    struct memprof_device_figures before, f;
    void *kept = malloc(1000);
    int status = now_at_last("host", &before);
    pid_t child = fork();
    if (child == 0) {
        void *own = malloc(123456);
        int got = now_at_last("host", &f);
        int is_it = got == MEMPROF_OK && f.active_bytes == before.active_bytes + 123456 &&
                    f.thread_active_bytes == 123456 && memprof_figures("host", &f) == MEMPROF_OK;
        free(own);
        _exit(got == MEMPROF_OK ? 10 + is_it : -got);
    }
    int how;
    waitpid(child, &how, 0);
    printf("parent %d\nchild %d\n", status, WEXITSTATUS(how));
    /* a vfork's child is its parent's to everybody */
    free(kept);
    return 0;
}

static pthread_key_t key;
static unsigned rounds;

static void as_it_dies(void *arg)
{
    struct memprof_device_figures f;
    void *p = malloc(1000);
    expect_ok("in a destructor\n", now_at_last("host", &f));
    differ("thread's active bytes", f.thread_active_bytes, 1000);
    free(p);
    if (++rounds < 4)
        pthread_setspecific(key, arg);
}

static void *dies(void *arg)
{
    pthread_setspecific(key, &key);
    return arg;
}

static int in_destructors(void)
{
    pthread_t id;
    pthread_key_create(&key, as_it_dies);
    pthread_create(&id, NULL, dies, NULL);
    pthread_join(id, NULL);
    printf("rounds %u\nothers %u\ndiffers %d\n", rounds, others, differs);
    return 0;
}

/* The parent says when: by a line. */
static int to_the_end(void)
{
    struct memprof_device_figures f;
    int status = now_at_last("host", &f), last;
    char line[16];
    printf("before %d\n", status);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 1;
    uint64_t begin = now_ns();
    last = memprof_figures_now("host", &f);
    uint64_t first_ns = now_ns() - begin;
    for (unsigned i = 0; i < 1000; i++)
        memprof_figures_now("host", &f);
    uint64_t all_ns = now_ns() - begin;
    printf("after %d, first %s, a thousand more %s, sync %d\n", last, first_ns < 5000000000u ? "soon" : "late",
           all_ns - first_ns < 5000000000u ? "soon" : "late", memprof_sync());
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 1;
    printf("again %d\n", now_at_last("host", &f));
    return 0;
}

static void last(void)
{
    struct memprof_device_figures f;
    memprof_figures("host", &f);
}

static void now(void)
{
    struct memprof_device_figures f;
    memprof_figures_now("host", &f);
}

static void sync_file(void)
{
    memprof_sync();
}

static void next_epoch(void)
{
    memprof_epoch("next");
}

static void cost(const char *name, void (*function)(void), unsigned count, unsigned pause_us)
{
    uint64_t *ns = calloc(count, sizeof *ns);
    for (unsigned i = 0; i < count; i++) {
        usleep(pause_us);
        uint64_t begin = now_ns();
        function();
        ns[i] = now_ns() - begin;
    }
    qsort(ns, count, sizeof *ns, by_value);
    printf("%s: median %.1f us, p99 %.1f us\n", name, (double)ns[count / 2] / 1e3, (double)ns[count * 99 / 100] / 1e3);
    free(ns);
}

static int costs(void)
{
    cost("memprof_figures", last, 10000, 0);
    cost("memprof_epoch", next_epoch, 1000, 0);
    cost("memprof_figures_now", now, 2000, 0);
    cost("memprof_figures_now, each 30 ms", now, 100, 30000);
    cost("memprof_sync", sync_file, 200, 0);
    return 0;
}

static int __attribute__((noinline)) synced(const char *file)
{
    char command[4096];
    void *kept = malloc(7654321);
    int status = memprof_sync();
    for (unsigned tries = 0; status == MEMPROF_NO_ANSWER && tries < TRIES; tries++) {
        usleep(1000);
        status = memprof_sync();
    }
    snprintf(command, sizeof command,
             "sqlite3 -readonly '%s' \"SELECT peak_active_bytes > 7654320 FROM total "
             "WHERE kind = 'heap' AND device_id = 0\"",
             file);
    printf("status %d\n", status);
    fflush(stdout);
    int rc = system(command);
    free(kept);
    return rc;
}

int main(int argc, char **argv)
{
    struct memprof_device_figures f;
    const char *mode = argc > 1 ? argv[1] : "host";
    unsigned calls = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
    static char buffer[4096];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (!strcmp(mode, "alone")) {
        memprof_epoch("none");
        printf("%d %d %d\n", memprof_figures("host", &f), memprof_figures_now(NULL, &f), memprof_sync());
        return 0;
    }
    if (!strcmp(mode, "busy"))
        return run(1, BUSY, calls);
    if (!strcmp(mode, "handler"))
        return in_handler();
    if (!strcmp(mode, "fork"))
        return in_child();
    if (!strcmp(mode, "dies"))
        return in_destructors();
    if (!strcmp(mode, "end"))
        return to_the_end();
    if (!strcmp(mode, "cost"))
        return costs();
    if (!strcmp(mode, "sync"))
        return synced(argv[2]);
    return run(THREADS, 0, calls);
}
