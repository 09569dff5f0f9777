/* The figures of scopes against a ledger of its own, in four threads: 200,000 random calls in up to four nested scopes
 * each, asked for after every 97th. Prints what differs; 0: nothing does. "unknown": not recorded. */
#include <memprof.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 3000, CALLS = 200000, DEPTH = 4, THREADS = 4 };

struct ledger {
    unsigned seed, depth;
    uint64_t birth;
    struct {
        void *p;
        size_t size;
        uint64_t birth;
    } block[BLOCKS];
    struct {
        struct memprof_figures figures;
        uint64_t birth;
    } scope[DEPTH];
    unsigned asked;
    int differs;
};

static unsigned draw(struct ledger *l, unsigned below)
{
    l->seed = l->seed * 1664525u + 1013904223u;
    return (l->seed >> 8) % below;
}

static void took(struct ledger *l, int i, void *p, size_t size)
{
    l->block[i].p = p;
    l->block[i].size = size;
    l->block[i].birth = ++l->birth;
    for (unsigned k = 0; k < l->depth; k++) {
        struct memprof_figures *f = &l->scope[k].figures;
        f->alloc_count++;
        f->alloc_bytes += size;
        f->live_count++;
        f->live_bytes += size;
        if (f->live_bytes > f->peak_bytes)
            f->peak_bytes = f->live_bytes;
    }
}

static void gave(struct ledger *l, int i)
{
    for (unsigned k = 0; k < l->depth; k++) {
        struct memprof_figures *f = &l->scope[k].figures;
        f->free_count++;
        if (l->block[i].birth > l->scope[k].birth) {
            f->live_count--;
            f->live_bytes -= l->block[i].size;
        }
    }
    l->block[i].p = NULL;
}

static void call(struct ledger *l)
{
    int i = (int)draw(l, BLOCKS);
    size_t size = draw(l, 100) ? draw(l, 500) + 1 : draw(l, 200000) + 1;
    void *p = l->block[i].p;
    if (!p && draw(l, 5000) == 0) {
        size = ((size_t)5 << 30) + size; /* a record of its own kind */
        if ((p = malloc(size)))
            took(l, i, p, size);
    } else if (!p && draw(l, 8) == 0) {
        if (posix_memalign(&p, 64, size) == 0)
            took(l, i, p, size);
    } else if (!p) {
        p = draw(l, 4) ? malloc(size) : calloc(1, size);
        took(l, i, p, size);
    } else if (draw(l, 4) == 0 && l->block[i].size < 1u << 20) {
        p = realloc(p, size);
        gave(l, i);
        took(l, i, p, size);
    } else {
        free(p);
        gave(l, i);
    }
}

static void ask(struct ledger *l)
{
    struct memprof_figures f;
    const struct memprof_figures *own = &l->scope[l->depth - 1].figures;
    if (!memprof_scope_figures(&f)) {
        l->differs |= 2;
        return;
    }
    l->asked++;
    if (memcmp(&f, own, sizeof f) != 0 && !(l->differs & 1)) {
        l->differs |= 1;
        printf("depth %u: allocs %llu %llu, bytes %llu %llu, frees %llu %llu, live %llu %llu, peak %llu %llu\n",
               l->depth, (unsigned long long)f.alloc_count, (unsigned long long)own->alloc_count,
               (unsigned long long)f.alloc_bytes, (unsigned long long)own->alloc_bytes,
               (unsigned long long)f.free_count, (unsigned long long)own->free_count, (unsigned long long)f.live_bytes,
               (unsigned long long)own->live_bytes, (unsigned long long)f.peak_bytes,
               (unsigned long long)own->peak_bytes);
    }
}

/* So many calls in a scope, in which others nest by chance. asks: how often, 0: at its end only. */
static void scope(struct ledger *l, int calls, int asks)
{
    MEMPROF_SCOPE_FIGURES("a scope");
    memset(&l->scope[l->depth], 0, sizeof l->scope[0]);
    l->scope[l->depth++].birth = l->birth;
    for (int i = 0; i < calls; i++) {
        call(l);
        if (asks && i % asks == 0)
            ask(l);
        if (l->depth < DEPTH && draw(l, 400) == 0)
            scope(l, (int)draw(l, 300), asks);
    }
    ask(l);
    l->depth--;
}

static void *work(void *arg)
{
    struct ledger *l = arg;
    for (int i = 0; i < 1000; i++)
        call(l); /* older blocks */
    scope(l, CALLS / 2, 97);
    scope(l, CALLS / 2, 0);
    for (int i = 0; i < BLOCKS; i++)
        free(l->block[i].p);
    return NULL;
}

static int forked(void)
{
    struct memprof_figures f;
    MEMPROF_SCOPE_FIGURES("around a fork");
    free(malloc(10));
    pid_t child = fork();
    if (child == 0) {
        int old = memprof_scope_figures(&f), new;
        {
            void *p = malloc(20);
            MEMPROF_SCOPE_FIGURES("of the child");
            free(p);
            new = memprof_scope_figures(&f);
        }
        _exit(old * 2 + new);
    }
    int status;
    waitpid(child, &status, 0);
    if (!memprof_scope_figures(&f) || f.alloc_count != 1)
        return -1;
    return WEXITSTATUS(status);
}

int main(void)
{
    static struct ledger ledger[THREADS];
    struct memprof_figures f;
    pthread_t thread[THREADS];
    int differs = 0;
    unsigned asked = 0;
    if (memprof_scope_figures(&f))
        return puts("without a scope"), 1;
    for (int i = 0; i < THREADS; i++) {
        ledger[i].seed = (unsigned)i + 1;
        pthread_create(&thread[i], NULL, work, &ledger[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        differs |= ledger[i].differs;
        asked += ledger[i].asked;
    }
    printf("asked %s\n", asked > 2000 ? "often" : "seldom");
    printf("differs %d\nforked %d\n", differs, forked());
    return 0;
}
