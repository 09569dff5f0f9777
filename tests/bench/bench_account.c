/*
 * What the collector pays for an event once it is in order: accounts, encoding, zstd, the insert; and what it stores.
 * usage: bench_account [-n EVENTS] [FILE...]: synthetic streams, or files of struct event (profiler/account/event.h).
 * Times are CPU times of one thread; each stream is run three times and the fastest counts.
 */
#include "../../common/chunk_model.h"
#include "../../profiler/account/account.h"
#include "../../profiler/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RUNS  3
#define BATCH 512u

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t seed = 88172645463325252ull;
static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

struct stream_of_events {
    struct event *events;
    size_t count, capacity;
    uint64_t time_ns;
};

static void add(struct stream_of_events *s, unsigned op, uint64_t address, uint64_t size, uint32_t stack)
{
    if (s->count == s->capacity)
        return;
    s->time_ns += 20 + next_random() % 100;
    s->events[s->count++] = (struct event){.time_ns = s->time_ns,
                                           .address = address,
                                           .size_bytes = size,
                                           .stack_id = stack,
                                           .thread_id = 1,
                                           .process_id = 1,
                                           .op = (uint8_t)op,
                                           .hook = op == EVENT_ALLOC ? 1 : 5};
}

/* malloc and free at once, from 200 sites */
static void make_pairs(struct stream_of_events *s)
{
    while (s->count + 1 < s->capacity) {
        uint64_t address = 0x555500000000 + next_random() % 16 * 4096;
        add(s, EVENT_ALLOC, address, 16 + next_random() % 500, 1 + (uint32_t)(next_random() % 200));
        add(s, EVENT_FREE, address, 0, 0);
    }
}

/* 2 M blocks (or a quarter of the events) stay live; then each is replaced, in random order */
static void make_keep(struct stream_of_events *s)
{
    size_t live = s->capacity / 4 < 2000000 ? s->capacity / 4 : 2000000;
    for (size_t i = 0; i < live; i++)
        add(s, EVENT_ALLOC, 0x555500000000 + i * 64, 48, 1 + (uint32_t)(i % 1000));
    while (s->count < s->capacity) {
        uint64_t address = 0x555500000000 + next_random() % live * 64;
        add(s, EVENT_FREE, address, 0, 0);
        add(s, EVENT_ALLOC, address, 48, 1 + (uint32_t)(next_random() % 1000));
    }
}

/* random sizes and lifetimes: 100,000 slots, 20,000 sites */
static void make_random(struct stream_of_events *s)
{
    enum { PLACES = 100000 };
    unsigned char *live = calloc(PLACES, 1);
    while (s->count < s->capacity) {
        uint64_t slot = next_random() % PLACES;
        if (live[slot])
            add(s, EVENT_FREE, 0x7f0000000000 + slot * 8192, 0, 0);
        else
            add(s, EVENT_ALLOC, 0x7f0000000000 + slot * 8192, next_random() % (1ull << next_random() % 14),
                1 + (uint32_t)(next_random() % 20000));
        live[slot] ^= 1;
    }
    free(live);
}

/* blocks grow for the whole run: every allocation is a new peak, every third event a free */
static void make_growth(struct stream_of_events *s)
{
    uint64_t i = 0;
    while (s->count + 2 < s->capacity) {
        uint64_t address = 0x555500000000 + i++ * 160;
        add(s, EVENT_ALLOC, address, 100, 1 + (uint32_t)(i % 5000));
        add(s, EVENT_ALLOC, address + 112, 20, 1 + (uint32_t)(i % 311));
        add(s, EVENT_FREE, address + 112, 0, 0);
    }
}

struct result {
    double total_ns, end_ns;
    long long file_bytes;
};

static struct result run_once(const struct stream_of_events *s, const char *path, int aggregate)
{
    struct error err;
    struct store *store;
    struct account_options options = {.aggregate = aggregate};
    struct stat st;
    unlink(path);
    if (store_create(path, &store, &err) != 0) {
        fprintf(stderr, "bench_account: %s\n", err.text);
        exit(1);
    }
    double start = cpu_ns();
    struct account *a = account_open(store, &options);
    uint64_t flushed_ns = 0;
    for (size_t i = 0; i < s->count; i += BATCH) {
        account_events(a, s->events + i, s->count - i < BATCH ? s->count - i : BATCH);
        uint64_t now_ns = s->events[i].time_ns;
        if (now_ns - flushed_ns > 1000000000) { /* as the collector does */
            account_flush(a, now_ns);
            store_commit(store);
            flushed_ns = now_ns;
        }
    }
    double middle = cpu_ns();
    struct event end = {
        .time_ns = s->events[s->count - 1].time_ns, .process_id = 1, .thread_id = 1, .op = EVENT_PROCESS_END};
    account_events(a, &end, 1);
    account_finish(a, end.time_ns);
    account_close(a);
    if (store_close(store, &err) != 0) {
        fprintf(stderr, "bench_account: %s\n", err.text);
        exit(1);
    }
    struct result r = {.total_ns = middle - start, .end_ns = cpu_ns() - middle};
    if (stat(path, &st) == 0)
        r.file_bytes = st.st_size;
    return r;
}

/* Encodes the chunks of the file again: what encoding and zstd take of the total. */
static void split_encoding(const char *path, double *encode_ns, double *zstd_ns, double *decode_ns)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    struct chunk_codec *in = chunk_codec_open(), *out = chunk_codec_open();
    struct buf b = BUF(1 << 26);
    static char packed[1 << 21];
    *encode_ns = *zstd_ns = *decode_ns = 0;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT data FROM event_chunk", -1, &q, NULL) != SQLITE_OK)
        exit(1);
    while (sqlite3_step(q) == SQLITE_ROW) {
        const struct chunk_event *events;
        double t0 = cpu_ns();
        long count = chunk_decode_events(in, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), &events);
        double t1 = cpu_ns();
        if (count < 0)
            exit(1);
        buf_reset(&b);
        if (chunk_encode_events(out, events, (size_t)count, &b) != 0)
            exit(1);
        double t2 = cpu_ns();
        for (unsigned i = 0; i < STREAM_MAX; i++)
            if (out->streams[i].length)
                stream_pack(out, &out->streams[i], CHUNK_EVENTS_NOISE >> i & 1, packed, sizeof packed);
        double t3 = cpu_ns();
        *decode_ns += t1 - t0;
        *encode_ns += (t2 - t1) - (t3 - t2);
        *zstd_ns += t3 - t2;
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
    chunk_codec_close(in);
    chunk_codec_close(out);
    buf_free(&b);
}

static void bench(const char *name, const struct stream_of_events *s)
{
    char path[] = "/tmp/bench_account_XXXXXX";
    double encode_ns, zstd_ns, decode_ns, count = (double)s->count;
    struct result plain = {.total_ns = 1e18}, full = {.total_ns = 1e18};
    int fd = mkstemp(path);
    if (fd < 0 || !s->count)
        exit(1);
    close(fd);
    for (int i = 0; i < RUNS; i++) {
        struct result r = run_once(s, path, 1);
        if (r.total_ns < plain.total_ns)
            plain = r;
        r = run_once(s, path, 0);
        if (r.total_ns < full.total_ns)
            full = r;
    }
    split_encoding(path, &encode_ns, &zstd_ns, &decode_ns);
    printf("%-14s %9zu  %8.1f %8.1f %8.1f %8.1f %8.1f   %8.2f %8.1f %8.1f\n", name, s->count, plain.total_ns / count,
           encode_ns / count, zstd_ns / count, (full.total_ns - plain.total_ns - encode_ns - zstd_ns) / count,
           full.total_ns / count, (double)full.file_bytes / count, decode_ns / count, full.end_ns / 1e6);
    fflush(stdout);
    unlink(path);
}

static void bench_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "bench_account: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    size_t count = (size_t)st.st_size / sizeof(struct event);
    struct event *events = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    close(fd);
    const char *slash = strrchr(path, '/');
    bench(slash ? slash + 1 : path, &(struct stream_of_events){.events = events, .count = count});
    munmap(events, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(struct stream_of_events *s);
    } streams[] = {{"pairs", make_pairs}, {"keep", make_keep}, {"random", make_random}, {"growth", make_growth}};
    size_t count = 8000000;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        count = strtoul(argv[2], NULL, 10);
        first = 3;
    }
    printf("%-14s %9s  %8s %8s %8s %8s %8s   %8s %8s %8s\n", "ns per event:", "events", "accounts", "encode", "zstd",
           "insert", "all", "bytes/ev", "decode", "end, ms");
    for (int i = first; i < argc; i++)
        bench_file(argv[i]);
    for (size_t i = 0; first >= argc && i < sizeof streams / sizeof *streams; i++) {
        struct stream_of_events s = {.events = malloc(count * sizeof *s.events), .capacity = count};
        if (!s.events)
            exit(1);
        streams[i].make(&s);
        bench(streams[i].name, &s);
        free(s.events);
    }
    return 0;
}
