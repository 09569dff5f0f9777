/*
 * calls LIBRARY PROGRAM [ARG]...: runs a program as memprof run does and prints the CALL records that it writes, by
 * time: THREAD HOOK CALL DEVICE[!] STACK ARGUMENT...       !: captured; STACK: s or -; texts in quotes at the end Then
 * the counters that are not 0, and the program's exit status. Addresses are hexadecimal, sizes too.
 */
#include "../../profiler/collect/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const hooks[] = {
#define X(name, kind) #name,
#include "../../profiler/wire_hooks.def"
#undef X
};
static const char *const calls[] = {
#define X(name, arguments, text) #name,
#include "../../profiler/wire_calls.def"
#undef X
};
static const struct {
    const char *arguments;
} shapes[] = {
#define X(name, arguments, text) {arguments},
#include "../../profiler/wire_calls.def"
#undef X
};
static const unsigned lengths[] = {
#define X(name, words, text) words,
#include "../../profiler/wire_ops.def"
#undef X
};

struct line {
    uint64_t stamp;
    size_t order;
    char *text;
};
static struct line *lines;
static size_t line_count;

static void print_call(unsigned thread, const uint64_t *w, unsigned words)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    unsigned call = w[2] & 0xff, device = w[2] >> 8 & 0xff, hook = WIRE_HOOK(w[1]);
    if (call >= WIRE_CALL_COUNT || hook >= WIRE_HOOK_COUNT) {
        fprintf(stderr, "calls: call %u, hook %u\n", call, hook);
        exit(1);
    }
    fprintf(f, "%u %s %s ", thread, hooks[hook], calls[call]);
    if (device == WIRE_DEVICE_HOST)
        fputs("host", f);
    else if (device == WIRE_DEVICE_UNKNOWN)
        fputs("?", f);
    else
        fprintf(f, "%u", device);
    fprintf(f, "%s %s", w[2] >> 32 & WIRE_CALL_CAPTURED ? "!" : "", WIRE_VAR_LOW(w[1]) ? "s" : "-");
    unsigned end = words;
    const char *shape = shapes[call].arguments;
    size_t length = strlen(shape);
    unsigned text_at = 0;
    if (strcmp(shape, "text") == 0 || (length > 6 && strcmp(shape + length - 6, ", text") == 0)) {
        text_at = 3;
        for (const char *c = shape; *c; c++)
            text_at += *c == ',';
        end = text_at;
    }
    for (unsigned i = 3; i < end && i < words; i++)
        fprintf(f, " %" PRIx64, w[i]);
    if (text_at && text_at < words && w[text_at] <= (words - text_at - 1) * 8ull)
        fprintf(f, " \"%.*s\"", (int)w[text_at], (const char *)(w + text_at + 1));
    fclose(f);
    lines = realloc(lines, (line_count + 1) * sizeof *lines);
    lines[line_count] = (struct line){w[0], line_count, text};
    line_count++;
}

static void drain_ring(struct session *s, uint32_t index)
{
    struct wire_ring *r = &s->rings[index];
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), at = r->tail;
    const uint64_t *ring = s->data + (uint64_t)index * WIRE_RING_WORDS;
    static uint64_t w[WIRE_RECORD_MAX];
    while (at < head) {
        uint64_t w1 = ring[(at + 1) & (WIRE_RING_WORDS - 1)];
        unsigned op = WIRE_OP(w1);
        if (op >= WIRE_OP_COUNT) {
            fprintf(stderr, "calls: op %u\n", op);
            exit(1);
        }
        unsigned words = lengths[op] ? lengths[op] : WIRE_VAR_WORDS(w1);
        for (unsigned i = 0; i < words && i < WIRE_RECORD_MAX; i++)
            w[i] = ring[(at + i) & (WIRE_RING_WORDS - 1)];
        if (op == WIRE_CALL)
            print_call(index, w, words);
        at += words;
    }
    __atomic_store_n(&r->tail, at, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->stamp != y->stamp ? (x->stamp < y->stamp ? -1 : 1) : x->order < y->order ? -1 : 1;
}

int main(int argc, char **argv)
{
    struct session s;
    struct error err;
    int status, done = 0;
    if (argc < 3)
        return 2;
    struct session_options options = {.use_tsc = 1, .follow = 1, .depth = 64, .library = argv[1]};
    options.sample_interval = 1ull << 60;
    if (session_open(&s, &options, &err) != 0) {
        fprintf(stderr, "calls: %s\n", err.text);
        return 1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        const char *users = getenv("LD_PRELOAD");
        char preload[8192];
        int after = getenv("CALLS_AFTER") != NULL; /* the user's libraries come before ours */
        if (users && *users)
            snprintf(preload, sizeof preload, "%s:%s", after ? users : argv[1], after ? argv[1] : users);
        else
            snprintf(preload, sizeof preload, "%s", argv[1]);
        setenv(WIRE_ENV_SESSION, s.control->session_path, 1);
        setenv(WIRE_ENV_PRELOAD, preload, 1);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    do {
        done = waitpid(pid, &status, WNOHANG) == pid;
        for (uint32_t i = 0; i < 256; i++)
            drain_ring(&s, i);
        usleep(1000);
    } while (!done);
    qsort(lines, line_count, sizeof *lines, by_time);
    for (size_t i = 0; i < line_count; i++)
        puts(lines[i].text);
    for (uint32_t p = 0; p < WIRE_PROCS; p++) {
        if (s.procs[p].state == WIRE_PROC_FREE)
            continue;
#define X(name, text)                                                                                                  \
    if (s.procs[p].counters.name && strncmp(#name, "cuda", 4) == 0)                                                    \
        printf("counter " #name " %" PRIu64 "\n", s.procs[p].counters.name);
#include "../../profiler/wire_counters.def"
#undef X
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    printf("status %d\n", code);
    session_close(&s);
    return 0;
}
