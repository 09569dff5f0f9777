/*
 * make_db FILE [python]: a recording of a run that never was: a net with forward and backward passes over a pool, a
 * template in two instances, libraries without symbols, a start-up block, a worker thread, a forked child, two devices.
 * Every number in it follows from the list of events below by the plainest bookkeeping there is, so that the reports on
 * it can be compared with text that was checked by hand. With python, main(), read_line() and worker() are Python code.
 */
#include "../../common/chunk.h"
#include "../../common/kind.h"
#include "../rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS       1000000ull
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* --- the program ------------------------------------------------------------------------------------------------- */

static const char net_c[] = "/* net.c: a small net */\n"                                        /* 1 */
                            "#include \"net.h\"\n\n"                                            /* 2, 3 */
                            "struct pool {\n\tsize_t used;\n};\n\n"                             /* 4 - 7 */
                            "void *pool_alloc(struct pool *p, size_t size)\n"                   /* 8 */
                            "{\n"                                                               /* 9 */
                            "\tp->used += size;\n"                                              /* 10 */
                            "\treturn malloc(size);\n"                                          /* 11 */
                            "}\n\n"                                                             /* 12, 13 */
                            "static int cmp(const void *a, const void *b);\n"                   /* 14 */
                            "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"                /* 15 - 39 */
                            "float *forward(struct net *n, float *x)\n"                         /* 40 */
                            "{\n"                                                               /* 41 */
                            "    float *h = pool_alloc(n->pool, n->hidden * 4);\n"              /* 42 */
                            "    float *y = pool_alloc(n->pool, n->out * 4);\n"                 /* 43 */
                            "    push<double>(&n->stats, sum(h));\n"                            /* 44 */
                            "    to_device(n, y);\n"                                            /* 45 */
                            "    return y;\n"                                                   /* 46 */
                            "}\n\n"                                                             /* 47, 48 */
                            "void backward(struct net *n, float *y)\n"                          /* 49 */
                            "{\n"                                                               /* 50 */
                            "    float *g = pool_alloc(n->pool, n->hidden * 4);\n"              /* 51 */
                            "    push<int>(&n->stats, argmax(y)); /* \xc3\xbc\xe6\xbc\xa2 */\n" /* 52 */
                            "    free(g);\n"                                                    /* 53 */
                            "}\n\n"                                                             /* 54, 55 */
                            "int main(int argc, char **argv)\n"                                 /* 56 */
                            "{\n"                                                               /* 57 */
                            "    for (char *line; (line = read_line(stdin)); free(line))\n"     /* 58 */
                            "        train(n, line);\n"                                         /* 59 */
                            "    compress_log(n);\n"                                            /* 60 */
                            "    return 0;\n"                                                   /* 61 */
                            "}\n";                                                              /* 62 */

enum { NO_FILE, NET_C, STATS_HPP, WORKER_C };
static const char *const files[] = {NULL, "/home/ada/net/src/net.c", "/home/ada/net/include/stats.hpp",
                                    "/home/ada/net/src/worker.c"};

enum { NET, LIBC, LIBZ, LIBSTDCXX, LD, PLUGIN };
static const struct {
    const char *path, *build_id, *symbols;
} modules[] = {
    {"/home/ada/net/net", "0123456789abcdef", "dwarf"},
    {"/usr/lib/x86_64-linux-gnu/libc.so.6", "aa11", "symtab"},
    {"/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", "bb22", "symtab"},
    {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", "cc33", "symtab"},
    {"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "dd44", "symtab"},
    {"/opt/vendor/libplugin.so", NULL, "none: stripped"},
};

enum {
    MALLOC,
    POOL_ALLOC,
    FORWARD,
    BACKWARD,
    MAIN,
    PUSH_INT,
    PUSH_DOUBLE,
    DEFLATE_INIT,
    EH_POOL,
    CALL_INIT,
    DL_START,
    WORKER,
    START_THREAD,
    READ_LINE,
    NO_FUNCTION
};
static const struct {
    const char *name, *plain_name;
    int file, line, is_allocator;
} functions[] = {
    {"malloc", "malloc", NO_FILE, 0, 1},
    {"pool_alloc", "pool_alloc", NET_C, 8, 0},
    {"forward", "forward", NET_C, 40, 0},
    {"backward", "backward", NET_C, 49, 0},
    {"main", "main", NET_C, 56, 0},
    {"void stats::push<int>(stats::list*, int)", "push", STATS_HPP, 20, 0},
    {"void stats::push<double>(stats::list*, double)", "push", STATS_HPP, 20, 0},
    {"deflateInit2_", "deflateInit2_", NO_FILE, 0, 0},
    {"__gnu_cxx::__freeres()", "__freeres", NO_FILE, 0, 0},
    {"call_init", "call_init", NO_FILE, 0, 0},
    {"_dl_start_user", "_dl_start_user", NO_FILE, 0, 0},
    {"worker", "worker", WORKER_C, 30, 0},
    {"start_thread", "start_thread", NO_FILE, 0, 0},
    {"read_line(_IO_FILE*)", "read_line", NET_C, 14, 0},
};

/* A frame of an address: its inline chain is consecutive entries with the same address, innermost first. */
static const struct {
    int address, module, function, file, line;
} frames[] = {
    {1, LIBC, MALLOC, NO_FILE, 0},
    {2, NET, POOL_ALLOC, NET_C, 11},
    {3, NET, FORWARD, NET_C, 42},
    {4, NET, FORWARD, NET_C, 43},
    {5, NET, PUSH_DOUBLE, STATS_HPP, 22},
    {5, NET, FORWARD, NET_C, 44},
    {6, NET, FORWARD, NET_C, 45},
    {7, NET, BACKWARD, NET_C, 51},
    {8, NET, PUSH_INT, STATS_HPP, 22},
    {8, NET, BACKWARD, NET_C, 52},
    {9, NET, MAIN, NET_C, 59},
    {10, NET, MAIN, NET_C, 58},
    {11, NET, READ_LINE, NET_C, 14},
    {12, NET, MAIN, NET_C, 60},
    {13, LIBZ, DEFLATE_INIT, NO_FILE, 0},
    {14, LIBSTDCXX, EH_POOL, NO_FILE, 0},
    {15, LD, CALL_INIT, NO_FILE, 0},
    {16, LD, DL_START, NO_FILE, 0},
    {17, PLUGIN, NO_FUNCTION, NO_FILE, 0},
    {18, NET, WORKER, WORKER_C, 33},
    {19, LIBC, START_THREAD, NO_FILE, 0},
};

enum { HOST, CUDA };
/* An allocating stack: addresses from the innermost to the outermost, 0 at the end. stack_id is the index + 100. */
static const struct {
    int device;
    enum kind kind;
    int address[6];
} sites[] = {
    {HOST, KIND_heap, {0}},          /* 0: unknown */
    {HOST, KIND_heap, {2, 3, 9}},    /* 1 forward:42 */
    {HOST, KIND_heap, {2, 4, 9}},    /* 2 forward:43 */
    {HOST, KIND_heap, {5, 9}},       /* 3 push<double> in forward:44 */
    {CUDA, KIND_pool, {6, 9}},       /* 4 forward:45 on the device */
    {HOST, KIND_heap, {2, 7, 9}},    /* 5 backward:51 */
    {HOST, KIND_heap, {8, 9}},       /* 6 push<int> in backward:52 */
    {HOST, KIND_heap, {11, 10}},     /* 7 read_line */
    {HOST, KIND_heap, {13, 12}},     /* 8 deflateInit2_ */
    {HOST, KIND_heap, {14, 15, 16}}, /* 9 start-up */
    {HOST, KIND_map, {17}},          /* 10 the plugin's map: its callers are unknown */
    {HOST, KIND_heap, {18, 19}},     /* 11 the worker */
};

/* --- events ------------------------------------------------------------------------------------------------------ */

static struct chunk_event events[4096];
static int event_count;
static uint64_t next_address = 0x555500001000;

static uint64_t put(uint64_t time_ns, int op, int site, uint64_t address, uint64_t size_bytes, int thread)
{
    struct chunk_event *e = &events[event_count++];
    *e = (struct chunk_event){.time_ns = time_ns,
                              .address = address,
                              .size_bytes = size_bytes,
                              .site_id = (uint32_t)site,
                              .thread_id = (uint32_t)thread,
                              .process_id = 1,
                              .op = (uint8_t)op,
                              .hook = op == CHUNK_free                                        ? 2
                                      : op >= CHUNK_realloc_free && op <= CHUNK_realloc_alloc ? 3
                                                                                              : 1,
                              .device = (uint8_t)sites[site].device,
                              .kind = (uint8_t)sites[site].kind};
    return address;
}

static uint64_t birth(uint64_t time_ns, int site, uint64_t size_bytes, int thread)
{
    next_address += (size_bytes + 31) / 16 * 16;
    return put(time_ns, CHUNK_alloc, site, next_address, size_bytes, thread);
}

static void make_events(void)
{
    uint64_t t = 1 * MS, list[2] = {0}, list_bytes[2] = {0};
    birth(t, 9, 72704, 1);
    birth(2 * MS, 10, 1 << 20, 1);
    for (int i = 0; i < 100; i++) {
        t = (10 + 10 * (uint64_t)i) * MS;
        uint64_t line = birth(t, 7, 120, 1);
        uint64_t h = birth(t + 1 * MS, 1, 40960, 1), y = birth(t + 2 * MS, 2, 40960, 1);
        for (int k = 0; k < 2; k++) { /* the lists of both template instances grow by reallocation */
            int site = k ? 6 : 3;
            uint64_t bytes = 64 + 16 * (uint64_t)i, when = t + (k ? 6 : 3) * MS;
            if (list[k])
                put(when, CHUNK_realloc_free, site, list[k], list_bytes[k], 1);
            next_address += 4096;
            list[k] = put(when, list_bytes[k] ? CHUNK_realloc_alloc : CHUNK_alloc, site, next_address, bytes, 1);
            list_bytes[k] = bytes;
            if (k == 0) {
                uint64_t d = birth(t + 4 * MS, 4, 1 << 16, 1);
                if (i % 2)
                    put(t + 4 * MS + 500000, CHUNK_free, 4, d, 1 << 16, 1);
                uint64_t g = birth(t + 5 * MS, 5, 40960, 1);
                put(t + 5 * MS + 1, CHUNK_free, 5, g, 40960, 1);
            }
        }
        put(t + 7 * MS, CHUNK_free, 1, h, 40960, 1);
        if (i < 50 || i % 10) /* some results are never freed */
            put(t + 8 * MS, CHUNK_free, 2, y, 40960, 1);
        put(t + 9 * MS, CHUNK_free, 7, line, 120, 1);
    }
    t = 1100 * MS;
    for (int i = 0; i < 16; i++)
        birth(t + (uint64_t)i * MS, 11, 65536, 2);
    for (int i = 0; i < 16; i++)
        put(t + (20 + (uint64_t)i) * MS, CHUNK_free, 11, events[event_count - 16].address, 65536, 2);
    birth(1200 * MS, 8, 268000, 1);
    put(1201 * MS, CHUNK_oom, 8, 12, 1ull << 40, 1);
}

/* --- bookkeeping ------------------------------------------------------------------------------------------------- */

struct account {
    const char *scope;
    int key, inclusive, device, kind; /* kind KIND_all: all */
    int64_t alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes, at_peak_bytes,
        at_peak_count, at_kind_peak_bytes, own_peak_bytes, end_bytes, end_count, active_peak_bytes, reserved_peak_bytes,
        largest_bytes, lifetime_ns;
    int64_t live_bytes, live_count;
};

static struct account accounts[1024], totals[8];
static int account_count, total_count;
static int64_t peak_ns[8], peak_count[8];

static struct account *find(struct account *list, int *count, const char *scope, int key, int inclusive, int device,
                            int kind)
{
    for (int i = 0; i < *count; i++) {
        struct account *a = &list[i];
        if (strcmp(a->scope, scope) == 0 && a->key == key && a->inclusive == inclusive && a->device == device &&
            a->kind == kind)
            return a;
    }
    list[*count] = (struct account){.scope = scope, .key = key, .inclusive = inclusive, .device = device, .kind = kind};
    return &list[(*count)++];
}

/* Lines: one per distinct (function, file, line, module of a function that is unknown). line_id is the index + 1. */
static struct {
    int function, file, line, module, address;
} lines[64];
static int line_count;

static int line_of(int frame)
{
    for (int i = 0; i < line_count; i++)
        if (lines[i].function == frames[frame].function && lines[i].file == frames[frame].file &&
            lines[i].line == frames[frame].line &&
            (frames[frame].function != NO_FUNCTION || lines[i].address == frames[frame].address))
            return i + 1;
    lines[line_count].function = frames[frame].function;
    lines[line_count].file = frames[frame].file;
    lines[line_count].line = frames[frame].line;
    lines[line_count].module = frames[frame].module;
    lines[line_count].address = frames[frame].address;
    return ++line_count;
}

/* The frames of a site, innermost first; and which of them is the self frame: the first with a source, else the first.
 */
static int frames_of(int site, int out[16], int *self)
{
    int count = 0;
    *self = -1;
    for (int i = 0; i < 6 && sites[site].address[i]; i++)
        for (int f = 0; f < COUNT(frames); f++)
            if (frames[f].address == sites[site].address[i]) {
                if (*self < 0 && frames[f].file)
                    *self = count;
                out[count++] = f;
            }
    if (*self < 0)
        *self = 0;
    return count;
}

static int keys_of(const struct chunk_event *e, struct account *out[256], int thread)
{
    int stack[16], self, n = 0, count = frames_of((int)e->site_id, stack, &self);
    for (int all = 0; all < 2; all++) {
        int kind = all ? KIND_all : e->kind;
        out[n++] = find(accounts, &account_count, "thread", thread, 0, e->device, kind);
        if (!all)
            out[n++] = find(accounts, &account_count, "site", (int)e->site_id, 0, e->device, kind);
        for (int i = 0; i < count; i++) {
            int f = stack[i];
            const struct {
                const char *scope;
                int key;
            } keys[] = {{"line", line_of(f)},
                        {"function", frames[f].function == NO_FUNCTION ? 0 : frames[f].function + 1},
                        {"file", frames[f].file},
                        {"module", frames[f].module + 1}};
            for (int k = 0; k < 4; k++)
                for (int inclusive = i == self ? 0 : 1; inclusive < 2 && keys[k].key; inclusive++) {
                    struct account *a =
                        find(accounts, &account_count, keys[k].scope, keys[k].key, inclusive, e->device, kind);
                    int seen = 0;
                    for (int j = 0; j < n; j++)
                        seen |= out[j] == a;
                    if (!seen)
                        out[n++] = a;
                }
        }
    }
    return n;
}

static void change(struct account *a, const struct chunk_event *e, int is_birth, int is_temporary, int64_t age_ns,
                   int64_t active)
{
    int64_t size = (int64_t)e->size_bytes;
    if (is_birth) {
        a->alloc_count++;
        a->alloc_bytes += size;
        a->live_bytes += size;
        a->live_count++;
        a->largest_bytes = size > a->largest_bytes ? size : a->largest_bytes;
        a->own_peak_bytes = a->live_bytes > a->own_peak_bytes ? a->live_bytes : a->own_peak_bytes;
        a->active_peak_bytes = active > a->active_peak_bytes ? active : a->active_peak_bytes;
        a->reserved_peak_bytes = (a->active_peak_bytes + 1048575) / 1048576 * 1048576;
    } else {
        a->free_count++;
        a->free_bytes += size;
        a->live_bytes -= size;
        a->live_count--;
        a->lifetime_ns += age_ns;
        a->temporary_count += is_temporary;
        a->temporary_bytes += is_temporary ? size : 0;
    }
    a->end_bytes = a->live_bytes;
    a->end_count = a->live_count;
}

static void at_peak(int total)
{
    for (int i = 0; i < account_count; i++) {
        struct account *a = &accounts[i];
        if (a->device != totals[total].device)
            continue;
        if (totals[total].kind == KIND_all) {
            a->at_peak_bytes = a->live_bytes;
            a->at_peak_count = a->live_count;
            if (a->kind == KIND_all)
                a->at_kind_peak_bytes = a->live_bytes;
        } else if (a->kind == totals[total].kind) {
            a->at_kind_peak_bytes = a->live_bytes;
        }
    }
}

static void keep_accounts(void)
{
    static uint64_t born_ns[COUNT(events)];
    for (int i = 0; i < event_count; i++) {
        const struct chunk_event *e = &events[i];
        int is_birth = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc, is_temporary = 0, of = i;
        struct account *keys[256];
        if (e->op == CHUNK_oom)
            continue;
        for (int k = i - 1; !is_birth && k >= 0 && of == i; k--)
            if (events[k].address == e->address && (events[k].op == CHUNK_alloc || events[k].op == CHUNK_realloc_alloc))
                of = k;
        int thread = (int)events[of].thread_id;
        is_temporary = !is_birth && e->op != CHUNK_realloc_free;
        for (int k = of + 1; k < i; k++)
            if (events[k].thread_id == events[of].thread_id &&
                (events[k].op == CHUNK_alloc || events[k].op == CHUNK_realloc_alloc))
                is_temporary = 0;
        born_ns[i] = is_birth ? e->time_ns : 0;
        int64_t age_ns = (int64_t)(e->time_ns - (is_birth ? e->time_ns : born_ns[of]));
        struct account *both[2] = {find(totals, &total_count, "total", 0, 0, e->device, KIND_all),
                                   find(totals, &total_count, "total", 0, 0, e->device, e->kind)};
        int64_t before[2] = {both[0]->own_peak_bytes, both[1]->own_peak_bytes}, active = both[0]->live_bytes;
        active += is_birth ? (int64_t)e->size_bytes : 0;
        for (int k = 0; k < 2; k++)
            change(both[k], e, is_birth, is_temporary, age_ns, active);
        int n = keys_of(e, keys, thread);
        for (int k = 0; k < n; k++)
            change(keys[k], e, is_birth, is_temporary, age_ns, active);
        for (int k = 0; k < 2; k++)
            if (both[k]->own_peak_bytes > before[k]) {
                peak_ns[both[k] - totals] = (int64_t)e->time_ns;
                peak_count[both[k] - totals] = both[k]->live_count;
                at_peak((int)(both[k] - totals));
            }
    }
}

/* --- the file ---------------------------------------------------------------------------------------------------- */

static void write_program(void)
{
    for (int i = 1; i < COUNT(files); i++)
        row("INSERT INTO file VALUES(?, ?, ?)", "itt", I(i), files[i], i == NET_C ? net_c : NULL);
    for (int i = 0; i < COUNT(modules); i++) {
        row("INSERT INTO module VALUES(?, 1, ?, ?, ?, ?, ?, ?, NULL, ?)", "ittiiiit", I(i + 1), modules[i].path,
            modules[i].build_id, I(0x7f0000000000 + i * 0x1000000), I(0x7f0000000000 + i * 0x1000000 + 0x100000),
            I(0x7f0000000000 + i * 0x1000000), I(0), modules[i].symbols);
        row("INSERT INTO module_key VALUES(?, ?, ?)", "itt", I(i + 1), modules[i].path, modules[i].build_id);
    }
    for (int i = 0; i < COUNT(functions); i++)
        row("INSERT INTO function VALUES(?, ?, ?, ?, ?, ?, ?)", "itttnni", I(i + 1), functions[i].name,
            functions[i].plain_name, functions[i].name, I(functions[i].file), I(functions[i].line),
            I(functions[i].is_allocator));
    for (int i = 0, depth = 0; i < COUNT(frames); i++) {
        int same = i > 0 && frames[i].address == frames[i - 1].address;
        int inlined = i + 1 < COUNT(frames) && frames[i].address == frames[i + 1].address;
        depth = same ? depth + 1 : 0;
        if (!same)
            row("INSERT INTO address VALUES(?, ?, ?)", "iii", I(frames[i].address), I(frames[i].module + 1),
                I(0x1000 + 16 * frames[i].address));
        row("INSERT INTO frame VALUES(?, ?, ?, ?, ?, NULL, 'native', ?)", "iinnni", I(frames[i].address), I(depth),
            frames[i].function == NO_FUNCTION ? I(0) : I(frames[i].function + 1), I(frames[i].file), I(frames[i].line),
            I(inlined));
    }
    for (int i = 0; i < line_count; i++) {
        int known = lines[i].function != NO_FUNCTION;
        row("INSERT INTO line VALUES(?, ?, ?, ?, ?, ?)", "inninn", I(i + 1), known ? I(lines[i].function + 1) : I(0),
            I(lines[i].file), I(lines[i].line), known ? I(0) : I(lines[i].module + 1),
            known ? I(0) : I(0x1000 + 16 * lines[i].address));
    }
}

/* A node per frame of a site; the site's own is 100 + site, its callers' 1000 + 10 * site + k. */
static void write_stacks(void)
{
    for (int i = 1; i < COUNT(sites); i++) {
        int count = 0;
        while (count < 6 && sites[i].address[count])
            count++;
        for (int k = count - 1; k >= 0; k--)
            row("INSERT INTO stack VALUES(?, ?, ?, ?, 0)", "inii", k ? I(1000 + 10 * i + k) : I(100 + i),
                k + 1 < count ? I(1000 + 10 * i + k + 1) : I(0), I(sites[i].address[k]), I(count - k));
    }
}

static void write_account(const struct account *a)
{
    struct buf sql = BUF(4096);
    struct error err;
    int stack[16], self;
    int64_t values[] = {a->alloc_count,        a->alloc_bytes,         a->free_count,    a->free_bytes,
                        a->temporary_count,    a->temporary_bytes,     a->at_peak_bytes, a->at_peak_count,
                        a->at_kind_peak_bytes, a->own_peak_bytes,      a->end_bytes,     a->end_count,
                        a->active_peak_bytes,  a->reserved_peak_bytes, a->largest_bytes, a->lifetime_ns};
    int is_site = strcmp(a->scope, "site") == 0;
    if (is_site)
        buf_printf(&sql, "INSERT INTO site VALUES(%d, %d, 1, %d, '%s'", a->key, 100 + a->key, a->device,
                   kind_name((unsigned)a->kind));
    else
        buf_printf(&sql, "INSERT INTO account VALUES('%s', %d, %d, %d, '%s'", a->scope, a->key, a->inclusive, a->device,
                   kind_name((unsigned)a->kind));
    for (int i = 0; i < COUNT(values); i++)
        buf_printf(&sql, ", %" PRId64, values[i]);
    buf_puts(&sql, ")");
    rows_must(db_exec(db, sql.data, &err), &err);
    buf_free(&sql);
    if (is_site && frames_of(a->key, stack, &self))
        row("INSERT INTO site_line VALUES(?, ?)", "ii", I(a->key), I(line_of(stack[self])));
}

static void write_accounts(void)
{
    for (int i = 0; i < account_count; i++)
        write_account(&accounts[i]);
    for (int i = 0; i < total_count; i++) {
        const struct account *t = &totals[i];
        const char *kind = kind_name((unsigned)t->kind);
        row("INSERT INTO total VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "itiiiiiiiiiiiiiii",
            I(t->device), kind, t->alloc_count, t->free_count, t->alloc_bytes, t->free_bytes, t->temporary_count,
            t->temporary_bytes, t->own_peak_bytes, peak_ns[i], peak_count[i], t->reserved_peak_bytes, peak_ns[i],
            t->end_bytes, t->end_count, I(t->device == HOST ? 198 : 0), t->lifetime_ns);
        row("INSERT INTO peak VALUES(?, ?, 'active', 0, ?, ?, NULL)", "itii", I(t->device), kind, peak_ns[i],
            t->own_peak_bytes);
    }
}

struct live_sites {
    struct chunk_live site[COUNT(sites)];
};

static void apply(struct live_sites *live, const struct chunk_event *e)
{
    int is_birth = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
    if (e->op == CHUNK_oom)
        return;
    live->site[e->site_id].live_bytes += is_birth ? e->size_bytes : -e->size_bytes;
    live->site[e->site_id].live_count += is_birth ? 1 : (uint64_t)-1;
}

static void write_keyframe(struct chunk_codec *codec, const struct live_sites *live, uint64_t time_ns, int number,
                           int chunk, const char *reason)
{
    struct chunk_live kept[COUNT(sites)];
    struct buf data = BUF(1 << 20);
    int n = 0;
    for (int i = 0; i < COUNT(sites); i++)
        if (live->site[i].live_count) {
            kept[n] = live->site[i];
            kept[n++].site_id = (uint32_t)i;
        }
    if (chunk_encode_live(codec, kept, (size_t)n, &data))
        exit(1);
    row("INSERT INTO keyframe VALUES(?, ?, ?, ?, NULL, ?)", "iiitb", I(time_ns), I(number), I(chunk), reason, data.data,
        I(data.length));
    buf_free(&data);
}

/* Chunks of 100 events; a key frame after every fourth one, and at the peak, which is in the middle of one. */
static void write_events(void)
{
    enum { PART = 100 };
    struct chunk_codec *codec = chunk_codec_open();
    struct live_sites live = {0};
    for (int first = 0, chunk = 1; first < event_count; first += PART, chunk++) {
        int count = event_count - first < PART ? event_count - first : PART;
        struct chunk_delta deltas[COUNT(sites)] = {0};
        struct buf data = BUF(1 << 20), delta = BUF(1 << 20);
        uint64_t mask = 0;
        for (int i = first; i < first + count; i++) {
            const struct chunk_event *e = &events[i];
            struct chunk_delta *d = &deltas[e->site_id];
            mask |= 1ull << e->device;
            apply(&live, e);
            if (e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc) {
                d->alloc_count++;
                d->alloc_bytes += e->size_bytes;
            } else if (e->op != CHUNK_oom) {
                d->free_count++;
                d->free_bytes += e->size_bytes;
            }
            if ((int64_t)e->time_ns == peak_ns[0])
                write_keyframe(codec, &live, e->time_ns, i + 1, chunk, "peak");
        }
        struct chunk_delta touched[COUNT(sites)];
        int n = 0;
        for (int i = 0; i < COUNT(sites); i++)
            if (deltas[i].alloc_count || deltas[i].free_count) {
                touched[n] = deltas[i];
                touched[n++].site_id = (uint32_t)i;
            }
        if (chunk_encode_events(codec, events + first, (size_t)count, &data) ||
            chunk_encode_deltas(codec, touched, (size_t)n, &delta))
            exit(1);
        row("INSERT INTO event_chunk VALUES(?, ?, ?, ?, ?, ?, ?, ?)", "iiiiiibb", I(chunk), I(events[first].time_ns),
            I(events[first + count - 1].time_ns), I(count), I(first), I(mask), delta.data, I(delta.length), data.data,
            I(data.length));
        if (chunk % 4 == 0)
            write_keyframe(codec, &live, events[first + count - 1].time_ns, first + count, chunk + 1, "periodic");
        buf_free(&data);
        buf_free(&delta);
    }
    chunk_codec_close(codec);
}

static void write_facts(void)
{
    static const char *const texts[][2] = {
        {"format", "memprof"},    {"writer_version", "0.1.0"},       {"state", "complete"},   {"host", "buildhost"},
        {"cwd", "/home/ada/net"}, {"command", "./net --epochs 100"}, {"options", "--source"}, {"clock", "tsc"},
        {"events_kept", "all"}};
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"start_unix_ns", 1782820800000000000},
                   {"duration_ns", 1250 * I(MS)},
                   {"page_bytes", 4096},
                   {"collector_cpu_ns", 12 * I(MS)},
                   {"collector_peak_rss_bytes", 9 << 20},
                   {"symbolize_ns", 80 * I(MS)},
                   {"event_count", event_count},
                   {"collector_pid", 4710}};
    for (int i = 0; i < COUNT(texts); i++)
        row("INSERT INTO meta VALUES(?, ?)", "tt", texts[i][0], texts[i][1]);
    for (int i = 0; i < COUNT(numbers); i++)
        row("INSERT INTO meta VALUES(?, ?)", "ti", numbers[i].key, numbers[i].value);
    row("INSERT INTO process" PROCESS_COLUMNS
        " VALUES(1, 4711, NULL, 'exec', '/home/ada/net/net', './net --epochs 100', 0, ?, 'exit', 0, "
        "NULL)",
        "i", I(1250 * MS));
    row("INSERT INTO process" PROCESS_COLUMNS
        " VALUES(2, 4713, 1, 'fork', '/home/ada/net/net', './net --epochs 100', ?, ?, 'exec', NULL, "
        "NULL)",
        "ii", I(1202 * MS), I(1203 * MS));
    row("INSERT INTO process" PROCESS_COLUMNS
        " VALUES(3, 4713, 2, 'exec', '/usr/bin/gzip', 'gzip -9 ''train log''', ?, ?, 'signal', "
        "NULL, 13)",
        "ii", I(1203 * MS), I(1240 * MS));
    row("INSERT INTO thread VALUES(1, 1, 4711, 'net', 0, ?)", "i", I(1250 * MS));
    row("INSERT INTO thread VALUES(2, 1, 4712, 'worker-0', ?, NULL)", "i", I(1090 * MS));
    row("INSERT INTO device(device_id, name, total_bytes) VALUES(0, 'host', NULL)", "");
    row("INSERT INTO device(device_id, name, total_bytes) VALUES(1, 'cuda:0', ?)", "i", I(8) << 30);
    row("INSERT INTO hook VALUES(1, 'malloc', 'heap'), (2, 'free', 'heap'), (3, 'realloc', 'heap')", "");
    row("INSERT INTO size_class VALUES(0, 'heap', -1, 1, 0, 0, 0, 0), (0, 'heap', 4, 300, 6000, 299, 250, 299000000), "
        "(0, 'heap', 12, 100, 512000, 100, 0, 7000000000), (0, 'map', 12, 50, 204800, 0, 0, 0), "
        "(1, 'device', 16, 100, 6553600, 50, 50, 50000)",
        "");
    row("INSERT INTO counter VALUES(1, 'stack_cut', 3, 'allocations with a stack deeper than the limit, cut')", "");
    row("INSERT INTO counter VALUES(1, 'wait_ns', 1500000, 'nanoseconds that threads waited for the collector')", "");
    row("INSERT INTO counter VALUES(NULL, 'unmatched_frees', 0, 'frees of addresses that are not live blocks')", "");
    row("INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, alloc_ns, free_ns, "
        "stack_id) VALUES(1, 1, 'device', 1, 93823561858272, 4194304, ?, NULL, 104)",
        "i", I(10 * MS));
    row("INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, alloc_ns, free_ns, "
        "stack_id) VALUES(2, 1, 'device', 1, 93823581343056, 65536, ?, ?, 104)",
        "ii", I(10 * MS), I(11 * MS));
    row("INSERT INTO transfer VALUES(104, 1, 'HtoD', 100, 6553600), (104, 1, 'DtoH', 1, 64), (108, 1, 'fill', 2, "
        "131072), (0, 1, 'DtoD', 1, 32)",
        "");
    row("INSERT INTO device_sample VALUES(1, ?, ?, 104857600, 3342336, 3276800, 4194304), (1, ?, ?, 4194304, 3276800, "
        "3276800, 4194304)",
        "iiii", I(1004 * MS), I(8) << 30, I(1100 * MS), I(8) << 30);
    row("INSERT INTO oom VALUES(1, ?, 0, 'heap', 1, 1, ?, 0, NULL, NULL, 108)", "ii", I(1201 * MS), I(1) << 40);
}

int main(int argc, char **argv)
{
    struct error err;
    int is_python = argc == 3 && strcmp(argv[2], "python") == 0;
    if (argc != 2 + is_python) {
        fprintf(stderr, "usage: make_db FILE [python]\n");
        return 2;
    }
    remove(argv[1]);
    rows_must(db_create(argv[1], &db, &err), &err);
    rows_must(db_exec(db, "BEGIN", &err), &err);
    make_events();
    keep_accounts();
    write_facts();
    write_program();
    if (is_python)
        row("UPDATE frame SET language = 'python' WHERE function_id IN (?, ?, ?)", "iii", I(MAIN + 1), I(READ_LINE + 1),
            I(WORKER + 1));
    write_stacks();
    write_accounts();
    write_events();
    rows_close();
    return 0;
}
