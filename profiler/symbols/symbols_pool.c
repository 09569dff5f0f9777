#include "symbols_pool.h"

#include "../../common/error.h"
#include "../../common/io.h"
#include "symbols_beside.h"
#include "symbols_cache.h"
#include "symbols_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX    8
#define MODULE_TIME_MS 60000 /* then its worker is killed */
#define NO_JOB         UINT32_MAX
#define MESSAGE_MAGIC  0x4d53594du

/* Shared with the workers. A worker that went wild can only make us skip jobs or kill it early. */
struct board {
    _Atomic uint32_t next; /* place in the order of jobs */
    struct {
        _Atomic uint32_t job;
        _Atomic uint64_t start_ms;
    } workers[WORKERS_MAX];
};

struct message {
    uint32_t magic;
    uint32_t job;
    uint64_t length;
};

struct worker {
    pid_t pid; /* 0: none */
    int fd;
    struct buf in;
};

struct pool {
    struct symbols_job *jobs;
    size_t count;
    uint32_t *order; /* of the jobs to be done: expensive ones first */
    size_t order_count;
    uint8_t *done, *tried;
    size_t done_count;
    struct board *board;
    struct worker workers[WORKERS_MAX];
    size_t worker_count;
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- in the worker ----------------------------------------------------------------------------------------------- */

static void do_job(struct symbols_job *job, uint32_t index, int flags, int fd)
{
    struct symbols *s =
        job->path ? symbols_open_flags(job->path, job->build_id, flags) : symbols_open_perf_map(job->perf_pid);
    struct symbols_builder *b = symbols_builder_open();
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    for (size_t i = 0; i < job->count; i++)
        if (!job->cached || symbols_table_find(job->cached, job->offsets[i]) < 0)
            symbols_builder_add(b, job->offsets[i], frames, symbols_lookup(s, job->offsets[i], frames));
    char *probes[SYMBOLS_PROBES_MAX];
    int probe_count = symbols_probes(s, probes);
    for (int i = 0; i < probe_count; i++)
        symbols_builder_probe(b, probes[i]);
    /* a debug file that stands in for the module itself must not be taken for it later */
    int may_cache = symbols_may_cache(s) && probe_count && strcmp(probes[0], job->path) == 0;
    struct buf out = BUF(SYMBOLS_TABLE_MAX);
    if (symbols_builder_write(b, symbols_source(s), may_cache, &out))
        _exit(1);
    struct message m = {MESSAGE_MAGIC, index, out.length};
    if (io_write(fd, &m, sizeof m) || io_write(fd, out.data, out.length))
        _exit(1);
    buf_free(&out);
    symbols_builder_close(b);
    symbols_close(s);
}

static void limit_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    unsigned long size, resident, shared, text, library, data;
    FILE *f = fopen("/proc/self/statm", "re");
    int known = f && fscanf(f, "%lu %lu %lu %lu %lu %lu", &size, &resident, &shared, &text, &library, &data) == 6;
    if (f)
        fclose(f);
    struct rlimit core = {0, 0}, memory;
    setrlimit(RLIMIT_CORE, &core);
    if (known && pages > 0) {
        memory.rlim_cur = memory.rlim_max = ((rlim_t)data + (rlim_t)pages / 2) * (rlim_t)page_bytes;
        setrlimit(RLIMIT_DATA, &memory);
    }
}

_Noreturn static void work(struct pool *p, size_t slot, uint32_t first, int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    static const int to_default[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGPIPE, SIGCHLD};
    for (size_t i = 0; i < sizeof to_default / sizeof *to_default; i++)
        signal(to_default[i], SIG_DFL);
    signal(SIGINT, SIG_IGN); /* the parent decides */
    signal(SIGHUP, SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) { /* what libraries say of bad input is not for the user */
        dup2(null, 1);
        dup2(null, 2);
    }
    limit_memory();
    uint32_t job = first;
    int flags = first == NO_JOB ? 0 : SYMBOLS_NO_DWARF;
    for (;; job = NO_JOB, flags = 0) {
        if (job == NO_JOB) {
            uint32_t at = atomic_fetch_add(&p->board->next, 1);
            if (at >= p->order_count)
                break;
            job = p->order[at];
        }
        atomic_store(&p->board->workers[slot].start_ms, now_ms());
        atomic_store(&p->board->workers[slot].job, job);
        do_job(&p->jobs[job], job, flags, fd);
        atomic_store(&p->board->workers[slot].job, NO_JOB);
    }
    _exit(0);
}

/* --- in the parent ----------------------------------------------------------------------------------------------- */

static int start_worker(struct pool *p, size_t slot, uint32_t first)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return -errno;
    atomic_store(&p->board->workers[slot].job, first);
    atomic_store(&p->board->workers[slot].start_ms, now_ms());
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        work(p, slot, first, fds[1]);
    }
    int error = errno;
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return -error;
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    p->workers[slot].pid = pid;
    p->workers[slot].fd = fds[0];
    p->workers[slot].in = (struct buf)BUF(SYMBOLS_TABLE_MAX + sizeof(struct message));
    return 0;
}

static void stop_worker(struct worker *w)
{
    if (!w->pid)
        return;
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(w->fd);
    buf_free(&w->in);
    w->pid = 0;
}

static void job_done(struct pool *p, uint32_t job, const char *source)
{
    if (p->done[job])
        return;
    p->done[job] = 1;
    p->done_count++;
    snprintf(p->jobs[job].source, sizeof p->jobs[job].source, "%s", source);
}

/* Takes whole messages out of a worker's buffer. Returns -EBADMSG when it sends nonsense. */
static int take_messages(struct pool *p, struct worker *w)
{
    struct message m;
    while (w->in.length >= sizeof m) {
        memcpy(&m, w->in.data, sizeof m);
        if (m.magic != MESSAGE_MAGIC || m.job >= p->count || p->done[m.job] || m.length > SYMBOLS_TABLE_MAX)
            return -EBADMSG;
        if (w->in.length - sizeof m < m.length)
            return 0;
        void *bytes = xmalloc(m.length);
        memcpy(bytes, w->in.data + sizeof m, m.length);
        struct symbols_job *job = &p->jobs[m.job];
        job->fresh = symbols_table_open(bytes, m.length);
        if (!job->fresh)
            return -EBADMSG;
        job_done(p, m.job, symbols_table_source(job->fresh));
        if (job->path)
            job->is_cached = symbols_cache_write(job->build_id, job->fresh, job->cached);
        size_t used = sizeof m + m.length;
        memmove(w->in.data, w->in.data + used, w->in.length - used);
        w->in.length -= used;
    }
    return 0;
}

/* Returns 0 while the worker lives, 1 at its end, -EBADMSG. */
static int read_worker(struct pool *p, struct worker *w)
{
    for (;;) {
        char *room = buf_room(&w->in, 256 << 10);
        if (!room)
            return -EBADMSG;
        ssize_t n = read(w->fd, room, 256 << 10);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : 1;
        if (n == 0)
            return 1;
        w->in.length += (size_t)n;
        int rc = take_messages(p, w);
        if (rc)
            return rc;
    }
}

/* After a worker's death: the job that it had is tried once more without its DWARF, the others go on. */
static void replace_worker(struct pool *p, size_t slot, const char *why)
{
    uint32_t job = atomic_load(&p->board->workers[slot].job);
    stop_worker(&p->workers[slot]);
    uint32_t again = NO_JOB;
    if (job < p->count && !p->done[job]) {
        char source[120];
        snprintf(source, sizeof source, "none: %s", why);
        if (p->tried[job]++ || !p->jobs[job].path)
            job_done(p, job, source);
        else
            again = job;
    }
    if (again != NO_JOB || atomic_load(&p->board->next) < p->order_count)
        start_worker(p, slot, again);
}

static void watch_worker(struct pool *p, size_t slot, short events)
{
    struct worker *w = &p->workers[slot];
    int rc = events ? read_worker(p, w) : 0;
    if (rc)
        replace_worker(p, slot, "its debug information cannot be read (the reader failed)");
    else if (atomic_load(&p->board->workers[slot].job) != NO_JOB &&
             now_ms() > atomic_load(&p->board->workers[slot].start_ms) + MODULE_TIME_MS)
        replace_worker(p, slot, "reading its debug information took too long");
}

static int run_workers(struct pool *p, volatile sig_atomic_t *interrupted, void (*progress)(size_t, size_t))
{
    size_t reported = SIZE_MAX;
    for (;;) {
        struct pollfd fds[WORKERS_MAX];
        size_t slots[WORKERS_MAX], live = 0;
        for (size_t i = 0; i < p->worker_count; i++)
            if (p->workers[i].pid) {
                fds[live] = (struct pollfd){p->workers[i].fd, POLLIN, 0};
                slots[live++] = i;
            }
        if (progress && p->done_count != reported)
            progress(reported = p->done_count, p->count);
        if (!live)
            return 0;
        poll(fds, live, 200);
        if (interrupted && *interrupted)
            return -EINTR;
        for (size_t i = 0; i < live; i++)
            watch_worker(p, slots[i], fds[i].revents);
    }
}

static uint64_t cost_of(const struct symbols_job *job)
{
    struct stat st;
    return (job->path && stat(job->path, &st) == 0 ? (uint64_t)st.st_size : 0) + job->count * 1000;
}

struct costed {
    uint64_t cost;
    uint32_t job;
};

static int by_cost(const void *a, const void *b)
{
    const struct costed *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

static int is_in_cache(const struct symbols_job *job)
{
    if (!job->cached)
        return 0;
    for (size_t i = 0; i < job->count; i++)
        if (symbols_table_find(job->cached, job->offsets[i]) < 0)
            return 0;
    return 1;
}

/* Answers from the cache first; the rest in order of cost. */
static void plan(struct pool *p, const struct symbols_beside *beside)
{
    struct costed *costed = xcalloc(p->count, sizeof *costed);
    for (size_t i = 0; i < p->count; i++) {
        struct symbols_job *job = &p->jobs[i];
        job->cached = job->path ? symbols_cache_read(job->path, job->build_id) : NULL;
        job->is_cached = job->cached != NULL;
        if (!job->cached && job->path)
            job->cached = symbols_beside_read(beside, job->path, job->build_id);
        if (is_in_cache(job))
            job_done(p, (uint32_t)i, symbols_table_source(job->cached));
        else
            costed[p->order_count++] = (struct costed){cost_of(job), (uint32_t)i};
    }
    qsort(costed, p->order_count, sizeof *costed, by_cost);
    for (size_t i = 0; i < p->order_count; i++)
        p->order[i] = costed[i].job;
    free(costed);
}

/* All that the cache does not have, where something of it is new. */
static void keep_beside(const struct pool *p, const char *recording)
{
    struct symbols_beside_writer *w = NULL;
    int is_new = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct symbols_job *job = &p->jobs[i];
        is_new |= job->path && !job->is_cached && job->fresh && symbols_table_may_cache(job->fresh);
    }
    if (!is_new)
        return;
    w = symbols_beside_begin();
    for (size_t i = 0; i < p->count; i++) {
        const struct symbols_job *job = &p->jobs[i];
        if (job->path && !job->is_cached && (job->fresh || job->cached))
            symbols_beside_add(w, job->path, job->build_id, job->fresh, job->cached);
    }
    symbols_beside_end(w, recording);
}

int symbols_pool_run(struct symbols_job *jobs, size_t count, const struct symbols_place *place,
                     volatile sig_atomic_t *interrupted, void (*progress)(size_t done, size_t count))
{
    if (count == 0)
        return 0;
    if (count >= NO_JOB)
        return -EFBIG;
    struct pool p = {.jobs = jobs, .count = count};
    p.order = xcalloc(count, sizeof *p.order);
    p.done = xcalloc(count, 1);
    p.tried = xcalloc(count, 1);
    p.board = mmap(NULL, sizeof *p.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = p.board == MAP_FAILED ? -errno : 0;
    if (rc == 0) {
        struct symbols_beside *beside = place->recording ? symbols_beside_open(place->recording) : NULL;
        plan(&p, beside);
        symbols_beside_close(beside);
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        p.worker_count = cores < 1 ? 1 : cores > WORKERS_MAX ? WORKERS_MAX : (size_t)cores;
        if (p.worker_count > p.order_count)
            p.worker_count = p.order_count;
        for (size_t i = 0; i < p.worker_count && rc == 0; i++)
            rc = start_worker(&p, i, NO_JOB);
        if (p.workers[0].pid || p.order_count == 0)
            rc = run_workers(&p, interrupted, progress);
        for (size_t i = 0; i < p.worker_count; i++)
            stop_worker(&p.workers[i]);
        munmap(p.board, sizeof *p.board);
    }
    char why[120];
    snprintf(why, sizeof why, "none: no process to read its symbols%s%s", rc < 0 ? ": " : "",
             rc < 0 ? strerror(-rc) : "");
    for (size_t i = 0; i < count; i++)
        job_done(&p, (uint32_t)i, why);
    if (p.order_count)
        symbols_cache_trim();
    if (place->recording && place->is_written && rc != -EINTR)
        keep_beside(&p, place->recording);
    free(p.order);
    free(p.done);
    free(p.tried);
    return rc == -EINTR ? rc : 0;
}

int symbols_job_frames(const struct symbols_job *job, uint64_t offset, struct symbols_frame frames[SYMBOLS_INLINE_MAX])
{
    const struct symbols_table *tables[] = {job->fresh, job->cached};
    for (int i = 0; i < 2; i++) {
        long at = tables[i] ? symbols_table_find(tables[i], offset) : -1;
        if (at >= 0)
            return symbols_table_frames(tables[i], (size_t)at, frames);
    }
    return 0;
}

void symbols_job_close(struct symbols_job *job)
{
    symbols_table_close(job->fresh);
    symbols_table_close(job->cached);
    job->fresh = job->cached = NULL;
}
