/*
 * make_recording FILE EVENTS EXTRA_STACKS: a recording of a program that never ran: two GPUs, Python frames, leaks,
 * growth, churn, an out-of-memory error, marks, and hostile text wherever text can be. Its accounts are made from its
 * events by simple means (everything in memory, two passes), so that what the page shows can be checked against them.
 */
#include "../../common/chunk.h"
#include "../../common/kind.h"
#include "../rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES     3
#define BUCKETS     4096
#define THREADS     6
#define DURATION_NS INT64_C(24000000000)
#define START_NS    INT64_C(1767225600123456789)
#define HOSTILE     "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&amp;`${x}\\"

enum {
    F_MAIN,
    F_RUN,
    F_LOAD,
    F_PARSE,
    F_FORWARD,
    F_BACKWARD,
    F_POOL,
    F_CACHE,
    F_LOG,
    F_FMT,
    F_PYRUN,
    F_TRAIN,
    F_STEP,
    F_TENSOR,
    F_EVIL,
    F_BASE
};

static const struct {
    const char *name, *file;
    int line, module;
    const char *language;
} functions[F_BASE] = {
    {"main(int, char**)", "/src/net/main.c", 10, 0, "native"},
    {"run_epochs(net&, int)", "/src/net/main.c", 40, 0, "native"},
    {"load_batch", "/src/net/load.c", 12, 0, "native"},
    {"parse_row", "/src/net/load.c", 55, 0, "native"},
    {"forward", "/src/net/net.c", 40, 0, "native"},
    {"backward", "/src/net/net.c", 70, 0, "native"},
    {"pool_alloc", "/src/net/pool.c", 20, 1, "native"},
    {"std::unordered_map<std::string, row_cache::entry>::emplace<std::string&, row_cache::entry>(std::string&, "
     "row_cache::entry&&)",
     "/src/net/cache.cc", 88, 0, "native"},
    {"log_line", "/src/net/log.c", 5, 0, "native"},
    {"format_text", "/src/net/log.c", 31, 0, "native"},
    {"_PyEval_EvalFrameDefault", NULL, 0, 2, "native"},
    {"train", "/src/net/train.py", 21, 3, "python"},
    {"Model.step", "/src/net/train.py", 60, 3, "python"},
    {"c10::cuda::CUDACachingAllocator::malloc(void**, int, unsigned long, CUstream_st*)",
     "/src/torch/c10/cuda/CUDACachingAllocator.cpp", 900, 4, "native"},
    {HOSTILE, "/src/" HOSTILE "/evil.c", 3, 5, "native"},
};
static const char *const modules[] = {
    "/usr/local/bin/net", "/usr/local/lib/libpool.so.2", "/usr/lib/libpython3.11.so.1.0",
    "/src/net/train.py",  "/opt/torch/libc10_cuda.so",   "/tmp/" HOSTILE ".so"};

struct event_x {
    struct chunk_event e;
    uint32_t birth; /* frees: index of the allocation */
};

struct sums {
    int64_t alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes, at_peak_bytes,
        at_peak_count, at_kind_peak_bytes, own_peak_bytes, end_bytes, end_count, active_peak_bytes, reserved_peak_bytes,
        largest_bytes, lifetime_ns, live, live_count;
};

struct site {
    int stack, device, kind, line;
    struct sums s;
};

static struct error err;
static struct event_x *events;
static uint32_t event_count, event_capacity;
static struct site *sites;
static uint32_t site_count, site_capacity;
static uint32_t address_count, stack_count, line_count, function_count = F_BASE;
static int *line_function, *line_number, *stack_line, *stack_parent;
static uint64_t seed = 42, clock_ns, next_address = 0x7f0000001000;
static uint32_t wanted_events;

static uint32_t rnd(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(seed >> 33) % below : 0;
}

static void must(int rc)
{
    rows_must(rc, &err);
}

/* A stack node: caller and a line of a function; makes line, address, frame and stack as needed. */
static int node(int parent, int function, int line)
{
    for (uint32_t i = 1; i <= stack_count && stack_count < 400; i++)
        if (stack_parent[i] == parent && line_function[stack_line[i]] == function && line_number[stack_line[i]] == line)
            return (int)i;
    int found = 0;
    for (uint32_t i = 1; i <= line_count && line_count < 400; i++)
        if (line_function[i] == function && line_number[i] == line)
            found = (int)i;
    if (!found) {
        found = (int)++line_count;
        line_function = xrealloc(line_function, (line_count + 1) * sizeof(int));
        line_number = xrealloc(line_number, (line_count + 1) * sizeof(int));
        line_function[found] = function;
        line_number[found] = line;
        int has_file = function >= F_BASE || functions[function].file;
        if (has_file)
            row("INSERT INTO line VALUES(?, ?, ?, ?, NULL, NULL)", "iiii", I(found), I(function + 1), I(function + 1),
                I(line));
        else
            row("INSERT INTO line VALUES(?, ?, NULL, 0, NULL, NULL)", "ii", I(found), I(function + 1));
        address_count++;
        row("INSERT INTO address VALUES(?, ?, ?)", "iii", I(found),
            I(function < F_BASE ? functions[function].module + 1 : 1), I(0x1000 + found * 16));
        const char *language = function < F_BASE ? functions[function].language : "native";
        if (has_file)
            row("INSERT INTO frame VALUES(?, 0, ?, ?, ?, 5, ?, 0)", "iiiit", I(found), I(function + 1), I(function + 1),
                I(line), language);
        else
            row("INSERT INTO frame VALUES(?, 0, ?, NULL, NULL, NULL, ?, 0)", "iit", I(found), I(function + 1),
                language);
    }
    int id = (int)++stack_count;
    stack_parent = xrealloc(stack_parent, (stack_count + 1) * sizeof(int));
    stack_line = xrealloc(stack_line, (stack_count + 1) * sizeof(int));
    stack_parent[id] = parent;
    stack_line[id] = found;
    int depth = 1;
    for (int p = parent; p; p = stack_parent[p])
        depth++;
    if (parent)
        row("INSERT INTO stack VALUES(?, ?, ?, ?, 0)", "iiii", I(id), I(parent), I(found), I(depth));
    else
        row("INSERT INTO stack VALUES(?, NULL, ?, ?, 0)", "iii", I(id), I(found), I(depth));
    return id;
}

static int site(int stack, int device, int kind)
{
    for (uint32_t i = 0; i < site_count && site_count < 400; i++)
        if (sites[i].stack == stack && sites[i].device == device && sites[i].kind == kind)
            return (int)i + 1;
    if (site_count == site_capacity)
        sites = xrealloc(sites, (site_capacity = site_capacity * 2 + 64) * sizeof *sites);
    memset(&sites[site_count], 0, sizeof *sites);
    sites[site_count] = (struct site){.stack = stack, .device = device, .kind = kind, .line = stack_line[stack]};
    return (int)++site_count;
}

static uint32_t push(int op, int site_id, int thread, uint64_t address, uint64_t size, uint32_t birth)
{
    if (event_count == event_capacity)
        events = xrealloc(events, (event_capacity = event_capacity * 2 + 1024) * sizeof *events);
    uint64_t step = (uint64_t)DURATION_NS * 97 / 100 / (wanted_events + 1);
    clock_ns += 1 + rnd((uint32_t)(2 * step));
    events[event_count] = (struct event_x){.e = {.time_ns = clock_ns,
                                                 .address = address,
                                                 .size_bytes = size,
                                                 .site_id = (uint32_t)site_id,
                                                 .thread_id = (uint32_t)thread,
                                                 .process_id = 1,
                                                 .op = (uint8_t)op,
                                                 .hook = 1,
                                                 .device = (uint8_t)sites[site_id - 1].device,
                                                 .kind = (uint8_t)sites[site_id - 1].kind},
                                           .birth = birth};
    return event_count++;
}

static uint32_t allocate(int site_id, int thread, uint64_t size)
{
    uint64_t address = next_address;
    next_address += (size + 63) & ~63ull;
    return push(CHUNK_alloc, site_id, thread, address, size, 0);
}

static void release(uint32_t birth, int thread)
{
    struct chunk_event b = events[birth].e;
    push(CHUNK_free, (int)b.site_id, thread, b.address, b.size_bytes, birth);
}

static void simulate(uint32_t wanted, const int *extra, uint32_t extra_count)
{
    int main_ = node(0, F_MAIN, 14), run = node(main_, F_RUN, 44);
    int load = node(run, F_LOAD, 20), parse = node(node(run, F_LOAD, 23), F_PARSE, 61);
    int fwd1 = node(node(run, F_FORWARD, 42), F_POOL, 27), fwd2 = node(node(run, F_FORWARD, 43), F_POOL, 27);
    int back = node(node(run, F_BACKWARD, 75), F_POOL, 27);
    int cache = node(node(run, F_LOAD, 25), F_CACHE, 91);
    int log_ = node(node(node(run, F_FORWARD, 47), F_LOG, 9), F_FMT, 36), evil = node(main_, F_EVIL, 4);
    int py =
        node(node(node(node(node(node(0, F_PYRUN, 0), F_TRAIN, 33), F_PYRUN, 0), F_STEP, 64), F_PYRUN, 0), F_STEP, 66);
    int cuda = node(py, F_TENSOR, 950), cuda2 = node(node(node(0, F_PYRUN, 0), F_TRAIN, 35), F_TENSOR, 950);
    int s_load = site(load, 0, KIND_heap), s_parse = site(parse, 0, KIND_heap), s_f1 = site(fwd1, 0, KIND_heap),
        s_f2 = site(fwd2, 0, KIND_heap);
    int s_back = site(back, 0, KIND_heap), s_cache = site(cache, 0, KIND_heap), s_log = site(log_, 0, KIND_heap),
        s_evil = site(evil, 0, KIND_map);
    int s_act = site(cuda, 1, KIND_sub), s_w = site(cuda2, 1, KIND_sub), s_w2 = site(cuda2, 2, KIND_device);
    int *s_extra = xmalloc((extra_count + 1) * sizeof *s_extra);
    for (uint32_t i = 0; i < extra_count; i++)
        s_extra[i] = site(extra[i], 0, KIND_heap);
    uint32_t rows[64], grads[16], acts[32], row_count = 0, next_extra = 0,
                                            *extra_live = xcalloc(4096, sizeof *extra_live);
    wanted_events = wanted;
    allocate(s_evil, 1, 1 << 20);
    for (int i = 0; i < 8; i++) {
        allocate(s_w, 2, (24u << 20) + rnd(8 << 20));
        allocate(s_w2, 2, 48u << 20);
    }
    for (uint32_t epoch = 0; event_count < wanted; epoch++) {
        double phase = (double)event_count / wanted;
        uint32_t batch = allocate(s_load, 1, (2u << 20) + rnd(1 << 20));
        for (row_count = 0; row_count < 40; row_count++) {
            rows[row_count] = allocate(s_parse, 1 + (int)rnd(THREADS), 200 + rnd(4000));
            release(allocate(s_log, 1, 32 + rnd(200)), 1);
            if (extra_count) {
                uint32_t slot = rnd(4096);
                if (extra_live[slot])
                    release(extra_live[slot] - 1, 1 + (int)rnd(THREADS));
                extra_live[slot] =
                    allocate(s_extra[next_extra++ % extra_count], 1 + (int)rnd(THREADS), 16 + rnd(3000)) + 1;
            }
        }
        uint32_t big = phase > 0.55 && phase < 0.6 ? 6 : 1;
        uint32_t f1 = allocate(s_f1, 1, (uint64_t)big * ((4u << 20) + rnd(1 << 20))),
                 f2 = allocate(s_f2, 1, (uint64_t)big << 21);
        for (int i = 0; i < 32; i++)
            acts[i] = allocate(s_act, 2, ((uint64_t)(phase > 0.7 ? 6 : 3) << 20) + rnd(2 << 20));
        for (int i = 0; i < 16; i++)
            grads[i] = allocate(s_back, 3, 100000 + rnd(200000));
        for (int i = 32; i--;)
            release(acts[i], 2);
        for (int i = 0; i < 16; i++)
            release(grads[i], 4);
        release(f1, 1);
        release(f2, 1);
        while (row_count--)
            release(rows[row_count], 1);
        if (epoch % 3 == 0)
            allocate(s_cache, 1, 40000 + rnd(20000));
        release(batch, 1);
    }
    free(s_extra);
    free(extra_live);
}

struct totals {
    int64_t active, count, peak, peak_ns, peak_count, peak_event;
    struct sums s;
} totals[DEVICES][KIND_COUNT + 1];

static uint8_t *temporary; /* by event: an allocation that was one */

static void find_peaks(void)
{
    uint32_t last[THREADS + 1], has[THREADS + 1] = {0};
    temporary = xcalloc(event_count + 1, 1);
    for (uint32_t i = 0; i < event_count; i++) {
        const struct chunk_event *e = &events[i].e;
        int alloc = e->op == CHUNK_alloc;
        for (int k = 0; k < 2; k++) {
            struct totals *t = &totals[e->device][k ? KIND_COUNT : e->kind];
            t->active += alloc ? (int64_t)e->size_bytes : -(int64_t)e->size_bytes;
            t->count += alloc ? 1 : -1;
            if (t->active > t->peak)
                t->peak = t->active, t->peak_ns = (int64_t)e->time_ns, t->peak_count = t->count, t->peak_event = i;
        }
        if (alloc) {
            last[e->thread_id] = i;
            has[e->thread_id] = 1;
        } else if (has[e->thread_id] && last[e->thread_id] == events[i].birth) {
            temporary[events[i].birth] = 1;
            has[e->thread_id] = 0;
        }
    }
}

static struct sums *thread_sums; /* [thread][device] */

static void add(struct sums *s, const struct event_x *x)
{
    int64_t size = (int64_t)x->e.size_bytes;
    if (x->e.op == CHUNK_alloc) {
        s->alloc_count++;
        s->alloc_bytes += size;
        s->live += size;
        s->live_count++;
        if (s->live > s->own_peak_bytes)
            s->own_peak_bytes = s->live;
        if (size > s->largest_bytes)
            s->largest_bytes = size;
    } else {
        s->free_count++;
        s->free_bytes += size;
        s->live -= size;
        s->live_count--;
        s->lifetime_ns += (int64_t)(x->e.time_ns - events[x->birth].e.time_ns);
        s->temporary_count += temporary[x->birth];
        s->temporary_bytes += temporary[x->birth] ? size : 0;
    }
}

static struct bucket {
    int64_t min, max, max_ns, last, reserved, count, bytes, set;
} buckets[DEVICES][BUCKETS];

static int64_t *line_peak, *line_live; /* [line][device] */

static void account(void)
{
    int64_t active[DEVICES] = {0};
    line_peak = xcalloc((line_count + 1) * DEVICES, sizeof *line_peak);
    line_live = xcalloc((line_count + 1) * DEVICES, sizeof *line_live);
    thread_sums = xcalloc((THREADS + 1) * DEVICES, sizeof *thread_sums);
    int64_t width = DURATION_NS / BUCKETS;
    for (uint32_t i = 0; i < event_count; i++) {
        struct event_x *x = &events[i];
        struct site *s = &sites[x->e.site_id - 1];
        int device = x->e.device, alloc = x->e.op == CHUNK_alloc;
        add(&s->s, x);
        add(&thread_sums[(size_t)events[alloc ? i : x->birth].e.thread_id * DEVICES + (size_t)device], x);
        for (int k = 0; k < 2; k++)
            add(&totals[device][k ? KIND_COUNT : x->e.kind].s, x);
        int64_t *live = &line_live[s->line * DEVICES + device], *peak = &line_peak[s->line * DEVICES + device];
        *live += alloc ? (int64_t)x->e.size_bytes : -(int64_t)x->e.size_bytes;
        *peak = *live > *peak ? *live : *peak;
        struct bucket *b = &buckets[device][(int64_t)x->e.time_ns / width];
        if (!b->set)
            *b = (struct bucket){
                active[device], active[device], (int64_t)x->e.time_ns / width * width, active[device], 0, 0, 0, 1};
        active[device] += alloc ? (int64_t)x->e.size_bytes : -(int64_t)x->e.size_bytes;
        if (active[device] > b->max)
            b->max = active[device], b->max_ns = (int64_t)x->e.time_ns;
        if (active[device] < b->min)
            b->min = active[device];
        b->last = active[device];
        b->count += alloc;
        b->bytes += alloc ? (int64_t)x->e.size_bytes : 0;
        for (int d = 0; d < DEVICES; d++) /* who was live at the peak */
            if (i == totals[d][KIND_COUNT].peak_event)
                for (uint32_t k = 0; k < site_count; k++)
                    if (sites[k].device == d)
                        sites[k].s.at_peak_bytes = sites[k].s.live, sites[k].s.at_peak_count = sites[k].s.live_count;
    }
    for (uint32_t k = 0; k < site_count; k++) {
        sites[k].s.end_bytes = sites[k].s.live;
        sites[k].s.end_count = sites[k].s.live_count;
        sites[k].s.at_kind_peak_bytes = sites[k].s.at_peak_bytes;
        sites[k].s.active_peak_bytes = totals[sites[k].device][KIND_COUNT].peak;
    }
}

#define SUMS(s)                                                                                                        \
    I((s)->alloc_count), I((s)->alloc_bytes), I((s)->free_count), I((s)->free_bytes), I((s)->temporary_count),         \
        I((s)->temporary_bytes), I((s)->at_peak_bytes), I((s)->at_peak_count), I((s)->at_kind_peak_bytes),             \
        I((s)->own_peak_bytes), I((s)->end_bytes), I((s)->end_count), I((s)->active_peak_bytes),                       \
        I((s)->reserved_peak_bytes), I((s)->largest_bytes), I((s)->lifetime_ns)

static void sum_up(struct sums *to, const struct sums *from)
{
    int64_t *a = (int64_t *)to;
    const int64_t *b = (const int64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof(int64_t); i++)
        a[i] += b[i];
}

/* key_of: the key of a stack node's frame in this scope; 0: none */
static void write_scope(const char *scope, int inclusive, int (*key_of)(int line), uint32_t keys)
{
    struct sums *s = xcalloc((size_t)(keys + 1) * DEVICES, sizeof *s);
    int *seen = xcalloc(keys + 1, sizeof *seen);
    for (uint32_t i = 0; i < site_count; i++)
        for (int n = sites[i].stack; n; n = inclusive ? stack_parent[n] : 0) {
            int key = key_of(stack_line[n]);
            if (key && seen[key] != (int)i + 1) {
                seen[key] = (int)i + 1;
                sum_up(&s[key * DEVICES + sites[i].device], &sites[i].s);
            }
        }
    for (uint32_t key = 1; key <= keys; key++)
        for (int d = 0; d < DEVICES; d++) {
            struct sums *x = &s[key * DEVICES + (uint32_t)d];
            if (!strcmp(scope, "line") && !inclusive)
                x->own_peak_bytes = line_peak[key * DEVICES + (uint32_t)d];
            if (x->alloc_count)
                row("INSERT INTO account VALUES(?, ?, ?, ?, 'all', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    "tiiiiiiiiiiiiiiiiiii", scope, I(key), I(inclusive), I(d), SUMS(x));
        }
    free(s);
    free(seen);
}

static int key_line(int line)
{
    return line;
}

static int key_function(int line)
{
    return line_function[line] + 1;
}

static void write_accounts(void)
{
    for (int inclusive = 0; inclusive < 2; inclusive++) {
        write_scope("line", inclusive, key_line, line_count);
        write_scope("function", inclusive, key_function, function_count);
    }
    for (int t = 1; t <= THREADS; t++)
        for (int d = 0; d < DEVICES; d++) {
            struct sums *x = &thread_sums[t * DEVICES + d];
            x->end_bytes = x->live;
            x->end_count = x->live_count;
            if (x->alloc_count)
                row("INSERT INTO account VALUES('thread', ?, 0, ?, 'all', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                    "?)",
                    "iiiiiiiiiiiiiiiiii", I(t), I(d), SUMS(x));
        }
    for (uint32_t i = 0; i < site_count; i++) {
        row("INSERT INTO site VALUES(?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            "iiitiiiiiiiiiiiiiiii", I(i + 1), I(sites[i].stack), I(sites[i].device), kind_name((unsigned)sites[i].kind),
            SUMS(&sites[i].s));
        row("INSERT INTO site_line VALUES(?, ?)", "ii", I(i + 1), I(sites[i].line));
    }
    for (int d = 0; d < DEVICES; d++)
        for (int k = 0; k <= KIND_COUNT; k++) {
            struct totals *t = &totals[d][k];
            int64_t reserved = k == KIND_COUNT ? (d == 0 ? t->peak * 3 / 2 : d == 1 ? t->peak * 5 / 4 : t->peak) : 0;
            if (t->s.alloc_count)
                row("INSERT INTO total VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)", "itiiiiiiiiiiiiii",
                    I(d), kind_name((unsigned)k), t->s.alloc_count, t->s.free_count, t->s.alloc_bytes, t->s.free_bytes,
                    t->s.temporary_count, t->s.temporary_bytes, t->peak, t->peak_ns, t->peak_count, reserved,
                    t->peak_ns, t->active, t->count, t->s.lifetime_ns);
        }
}

static void write_peaks(void)
{
    for (int d = 0; d < DEVICES; d++) {
        struct totals *t = &totals[d][KIND_COUNT];
        uint32_t top = 0;
        for (uint32_t i = 0; i < site_count; i++)
            if (sites[i].device == d &&
                (sites[top].device != d || sites[i].s.at_peak_bytes > sites[top].s.at_peak_bytes))
                top = i;
        row("INSERT INTO peak VALUES(?, 'all', 'active', 0, ?, ?, ?)", "iiii", I(d), t->peak_ns, t->peak, I(top + 1));
        row("INSERT INTO peak VALUES(?, 'all', 'reserved', 0, ?, ?, NULL)", "iii", I(d), t->peak_ns,
            d == 0   ? t->peak * 3 / 2
            : d == 1 ? t->peak * 5 / 4
                     : t->peak);
        int rank = 1;
        for (int b = 300; b < BUCKETS - 300 && rank < 4; b += 700) {
            int best = b;
            for (int i = b; i < b + 300; i++)
                if (buckets[d][i].set && buckets[d][i].max > buckets[d][best].max)
                    best = i;
            if (buckets[d][best].set && buckets[d][best].max_ns != t->peak_ns)
                row("INSERT INTO peak VALUES(?, 'all', 'active', ?, ?, ?, NULL)", "iiii", I(d), I(rank++),
                    buckets[d][best].max_ns, buckets[d][best].max);
        }
    }
}

static void write_timeline(void)
{
    for (int d = 0; d < DEVICES; d++) {
        int64_t last = 0, reserved = 0, peak = totals[d][KIND_COUNT].peak;
        for (int i = 0; i < BUCKETS; i++) {
            struct bucket *b = &buckets[d][i];
            if (!b->set)
                *b = (struct bucket){last, last, i * (DURATION_NS / BUCKETS), last, 0, 0, 0, 1};
            last = b->last;
            int64_t want = b->max == peak ? (d == 0   ? peak * 3 / 2
                                             : d == 1 ? peak * 5 / 4
                                                      : peak)
                           : d == 2       ? b->max
                                          : b->max * 9 / 8;
            reserved = want > reserved ? want : reserved;
            b->reserved = reserved;
        }
        int count = BUCKETS;
        for (int level = 0; level < 4; level++, count /= 2) {
            int64_t width = DURATION_NS / BUCKETS << level;
            for (int i = 0; i < count; i++) {
                struct bucket *b = &buckets[d][i];
                if (level) {
                    const struct bucket *l = &buckets[d][2 * i], *r = l + 1;
                    *b = (struct bucket){l->min < r->min ? l->min : r->min,
                                         l->max >= r->max ? l->max : r->max,
                                         l->max >= r->max ? l->max_ns : r->max_ns,
                                         r->last,
                                         r->reserved,
                                         l->count + r->count,
                                         l->bytes + r->bytes,
                                         1};
                }
                int64_t rss = (8 << 20) + b->reserved * 17 / 16, pending = d == 1 ? 3 << 20 : 0;
                row("INSERT INTO timeline VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    d == 2 ? "iiiiiiiiiiiii--ii" : "iiiiiiiiiiiiiiiii", I(d), I(level), I(i * width), I(width), b->min,
                    b->max, b->max_ns, b->last, b->max - (b->max > pending ? pending : 0),
                    b->last - (b->last > pending ? pending : 0), b->reserved, I(i * width), b->reserved, rss, rss,
                    b->count, b->bytes);
            }
        }
    }
}

static void write_events(void)
{
    struct chunk_codec *codec = chunk_codec_open();
    struct chunk_event *plain = xmalloc(CHUNK_EVENTS * sizeof *plain);
    struct chunk_delta *deltas = xcalloc(site_count + 1, sizeof *deltas),
                       *used = xmalloc((site_count + 1) * sizeof *used);
    int64_t *live = xcalloc(site_count + 1, sizeof *live), *start = xcalloc(site_count + 1, sizeof *start);
    uint32_t chunk = 0;
    for (uint32_t first = 0; first < event_count; first += CHUNK_EVENTS) {
        uint32_t n = event_count - first < CHUNK_EVENTS ? event_count - first : CHUNK_EVENTS, mask = 0, count = 0;
        memset(deltas, 0, (site_count + 1) * sizeof *deltas);
        memcpy(start, live, (site_count + 1) * sizeof *live);
        for (uint32_t i = 0; i < n; i++) {
            const struct event_x *x = &events[first + i];
            struct chunk_delta *d = &deltas[x->e.site_id];
            plain[i] = x->e;
            mask |= 1u << x->e.device;
            if (x->e.op == CHUNK_alloc) {
                d->alloc_count++;
                d->alloc_bytes += x->e.size_bytes;
                live[x->e.site_id] += (int64_t)x->e.size_bytes;
            } else {
                d->free_count++;
                d->free_bytes += x->e.size_bytes;
                d->temporary_count += temporary[x->birth];
                live[x->e.site_id] -= (int64_t)x->e.size_bytes;
            }
            int64_t rise = live[x->e.site_id] - start[x->e.site_id];
            if (rise > (int64_t)d->rise_bytes)
                d->rise_bytes = (uint64_t)rise;
        }
        for (uint32_t i = 1; i <= site_count; i++)
            if (deltas[i].alloc_count || deltas[i].free_count) {
                deltas[i].site_id = i;
                used[count++] = deltas[i];
            }
        struct buf data = BUF(64 << 20), delta = BUF(64 << 20);
        must(chunk_encode_events(codec, plain, n, &data));
        must(chunk_encode_deltas(codec, used, count, &delta));
        row("INSERT INTO event_chunk VALUES(?, ?, ?, ?, ?, ?, ?, ?)", "iiiiiibb", I(++chunk), I(plain[0].time_ns),
            I(plain[n - 1].time_ns), I(n), I(first), I(mask), delta.data, I(delta.length), data.data, I(data.length));
        buf_free(&data);
        buf_free(&delta);
    }
    chunk_codec_close(codec);
    free(plain);
    free(deltas);
    free(used);
    free(live);
    free(start);
}

static void write_blocks(void)
{
    uint32_t *freed = xcalloc(event_count + 1, sizeof *freed), id = 0, kept = 0;
    for (uint32_t i = 0; i < event_count; i++)
        if (events[i].e.op == CHUNK_free)
            freed[events[i].birth] = i;
    for (uint32_t i = 0; i < event_count && kept < 1500; i++) {
        const struct chunk_event *e = &events[i].e;
        if (e->op != CHUNK_alloc || e->size_bytes < 3u << 20)
            continue;
        kept++;
        row("INSERT INTO block VALUES(?, ?, ?, 1, ?, ?, ?, ?, ?, ?)", freed[i] ? "iitiiiiii" : "iitiiii-i", I(++id),
            I(e->device), kind_name(e->kind), I(e->thread_id), I(e->address), I(e->size_bytes), I(e->time_ns),
            I(freed[i] ? events[freed[i]].e.time_ns : 0), I(sites[e->site_id - 1].stack));
    }
    for (int i = 0; i < 12; i++)
        row("INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, alloc_ns, free_ns, "
            "stack_id) VALUES(?, 1, 'device', 1, ?, ?, ?, ?, NULL)",
            i < 6 ? "iiii-" : "iiiii", I(i + 1), I(0x7f0000001000 + (int64_t)i * (40 << 20)), I(40 << 20),
            I(i * 100000000), I(DURATION_NS * 9 / 10));
    free(freed);
}

static void write_facts(void)
{
    row("INSERT INTO device(device_id, name, total_bytes) VALUES(0, 'host', NULL), (1, 'cuda:0', 8589934592), (2, "
        "'cuda:1', 8589934592)",
        "");
    for (int i = 0; i < F_BASE; i++) {
        if (functions[i].file)
            row("INSERT INTO file VALUES(?, ?, NULL) ON CONFLICT(path) DO NOTHING", "it", I(i + 1), functions[i].file);
    }
    row("INSERT INTO module_key VALUES(1, '/usr/local/bin/net', 'abc')", "");
    for (unsigned i = 0; i < sizeof modules / sizeof *modules; i++)
        row("INSERT INTO module VALUES(?, 1, ?, NULL, ?, ?, 0, 0, NULL, 'dwarf')", "itii", I(i + 1), modules[i],
            I(0x10000 * i), I(0x10000 * i + 0xffff));
    row("INSERT INTO process" PROCESS_COLUMNS
        " VALUES(1, 4711, NULL, 'exec', '/usr/local/bin/net', ?, 0, ?, 'exit', 3, NULL)",
        "ti", "net --name '" HOSTILE "' --epochs 40", I(DURATION_NS));
    row("INSERT INTO process" PROCESS_COLUMNS " VALUES(2, 4712, 1, 'fork', '/bin/sh', ?, 1000, ?, 'signal', NULL, 9)",
        "ti", "sh -c '" HOSTILE "'", I(DURATION_NS / 2));
    for (int i = 1; i <= THREADS; i++) {
        char name[64];
        snprintf(name, sizeof name, i == 5 ? "</script>\"'" : i == 1 ? "net" : "worker-%d", i);
        row("INSERT INTO thread VALUES(?, 1, ?, ?, 0, NULL)", "iit", I(i), I(4711 + i), name);
    }
    row("INSERT INTO hook VALUES(1, 'malloc', 'heap')", "");
    row("INSERT INTO mark(mark_id, process_id, thread_id, device_id, name, start_ns, end_ns, is_range) VALUES(1, 1, 1, "
        "NULL, 'epoch 1', 2000000000, 7000000000, 1), (2, 1, 1, NULL, 'epoch 2', "
        "7000000000, 15000000000, 1), "
        "(3, 1, 1, NULL, 'checkpoint', 15500000000, NULL, 0), (5, 1, 1, 1, 'warm-up', 500000000, 1800000000, 1)",
        "");
    row("INSERT INTO mark(mark_id, process_id, thread_id, device_id, name, start_ns, end_ns, is_range) VALUES(4, 1, 1, "
        "NULL, ?, 18000000000, NULL, 0)",
        "t", HOSTILE);
    row("INSERT INTO oom VALUES(1, 20000000000, 1, 'sub', 1, 2, 4294967296, ?, 2147483648, 8589934592, 1)", "i",
        I(totals[1][KIND_COUNT].peak));
    row("INSERT INTO counter VALUES(1, 'inherited_frees', 3, 'frees of blocks that a parent allocated'), (NULL, "
        "'waits', 17, 'times that a thread waited for the collector')",
        "");
    static const char *const meta[][2] = {{"format", "memprof"},    {"writer_version", "0.1"},
                                          {"state", "complete"},    {"host", "lab-7 " HOSTILE},
                                          {"cwd", "/home/ada/net"}, {"command", "net --name '" HOSTILE "' --epochs 40"},
                                          {"clock", "tsc"},         {"events_kept", "all"}};
    for (unsigned i = 0; i < sizeof meta / sizeof *meta; i++)
        must(db_meta_set_text(db, meta[i][0], meta[i][1]));
    must(db_meta_set_int(db, "start_unix_ns", START_NS));
    must(db_meta_set_int(db, "duration_ns", DURATION_NS));
    must(db_meta_set_int(db, "event_count", event_count));
}

static void write_functions(void)
{
    for (uint32_t i = 0; i < function_count; i++) {
        char name[128], file[128];
        snprintf(name, sizeof name, "plugin%u::handle_%u(request const&)", i % 97, i);
        snprintf(file, sizeof file, "/src/plugins/plugin%u/handlers_%u.cc", i % 97, i);
        const char *n = i < F_BASE ? functions[i].name : name, *f = i < F_BASE ? functions[i].file : file;
        if (i >= F_BASE)
            row("INSERT INTO file VALUES(?, ?, NULL)", "it", I(i + 1), f);
        /* a file may be that of several functions: the first one's row */
        row("INSERT INTO function VALUES(?, ?, ?, ?, (SELECT file_id FROM file WHERE path = ?), ?, 0)",
            f ? "itttti" : "ittt-i", I(i + 1), n, n, n, f, I(i < F_BASE ? functions[i].line : 10));
    }
    row("UPDATE line SET file_id = (SELECT fn.file_id FROM function fn WHERE fn.function_id = line.function_id)", "");
    row("UPDATE frame SET file_id = (SELECT fn.file_id FROM function fn WHERE fn.function_id = frame.function_id)", "");
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: make_recording FILE EVENTS [EXTRA_STACKS]\n");
        return 2;
    }
    uint32_t wanted = (uint32_t)atoi(argv[2]), extra_count = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
    remove(argv[1]);
    must(db_create(argv[1], &db, &err));
    must(db_exec(db, "PRAGMA foreign_keys = OFF; BEGIN", &err));
    int *extra = xmalloc((extra_count + 1) * sizeof *extra), *level = xmalloc((extra_count + 1) * sizeof *level);
    uint32_t made = 0;
    stack_parent = xcalloc(1, sizeof(int));
    stack_line = xcalloc(1, sizeof(int));
    line_function = xcalloc(1, sizeof(int));
    line_number = xcalloc(1, sizeof(int));
    int root = node(node(0, F_MAIN, 18), F_RUN, 50);
    while (made <
           extra_count) { /* a bush: each new stack grows from a random earlier one, a few functions with many lines */
        int parent = made > 20 ? extra[rnd(made)] : root;
        function_count = F_BASE + 2000;
        extra[made++] = node(parent, (int)(F_BASE + rnd(2000)), 12 + (int)rnd(200));
    }
    simulate(wanted, extra, extra_count);
    find_peaks();
    account();
    write_facts();
    write_functions();
    write_accounts();
    write_peaks();
    write_timeline();
    write_events();
    write_blocks();
    rows_close();
    printf("%s: %u events, %u sites, %u stacks\n", argv[1], event_count, site_count, stack_count);
    return 0;
}
