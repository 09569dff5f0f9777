#include "finish_recording.h"

#include "../../common/kind.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES     300
#define ADDRESSES 60
#define BUCKET_NS 64 /* and so many events */
#define GROUPS    4

static uint32_t seed;

static uint32_t roll(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(seed >> 4) * below) >> 28);
}

sqlite3 *finish_empty(const char *name)
{
    sqlite3 *db = scratch_db(name);
    scratch_sql(db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"
                    "INSERT INTO meta VALUES('format', 'memprof'), ('state', 'recorded'), ('events_kept', 'all');"
                    "INSERT INTO device(device_id, name, total_bytes) VALUES(0, 'host', NULL), (1, 'cuda:0', NULL);"
                    "INSERT INTO process(process_id, pid, start_kind, exe, command_line, start_ns)"
                    " VALUES(1, 4000000, 'exec', '/bin/app', 'app', 0);"
                    "INSERT INTO thread VALUES(1, 1, 4000000, 'app', 0, NULL);");
    return db;
}

struct block {
    uint32_t site;
    uint64_t size;
};

struct tracked { /* a site as the collector would account for it */
    uint32_t group, stack;
    int64_t live, live_count, own_peak, at_peak, at_peak_count, at_kind_peak;
    int64_t alloc_count, alloc_bytes, free_count, free_bytes, end_bytes, end_count, largest, active_peak;
    /* in the chunk */
    struct chunk_delta delta;
    int64_t chunk_live, chunk_high;
};

static const struct {
    int device;
    enum kind kind;
} groups[GROUPS] = {{0, KIND_heap}, {0, KIND_map}, {1, KIND_device}, {1, KIND_pool}};

static struct tracked sites[FINISH_SITES + 1];
struct chunk_event *finish_events;
size_t finish_event_count;

static void make_names(sqlite3 *db)
{
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, build_id, start_address, end_address, bias, load_ns, symbols) "
        "VALUES"
        "(1, 1, '/bin/app', 'aa', 0, 1, 0, 0, 'dwarf'), (2, 1, '/lib/one.so', 'bb', 0, 1, 0, 0, 'dwarf'),"
        "(3, 1, '/lib/one.so', 'bb', 0, 1, 0, 0, 'dwarf'), (4, 1, '/opt/libmemprof.so', NULL, 0, 1, 0, 0, 'symtab'),"
        "(5, 1, '/lib/one.so', 'cc', 0, 1, 0, 0, 'none: x')");
    for (int i = 1; i <= 6; i++)
        scratch_sql(db, "INSERT INTO file VALUES(%d, '/src/f%d.c', NULL)", i, i);
    for (int i = 1; i <= 25; i++)
        scratch_sql(db, "INSERT INTO function VALUES(%d, 'fn%d', 'fn%d', 'fn%d', %d, %d, %d)", i * 3, i, i, i,
                    i % 6 + 1, i, i % 5 == 0);
}

static void make_addresses(sqlite3 *db)
{
    for (int i = 1; i <= ADDRESSES; i++) {
        int module = (int)roll(6);
        char text[8];
        snprintf(text, sizeof text, module ? "%d" : "NULL", module);
        scratch_sql(db, "INSERT INTO address VALUES(%d, %s, %d)", i, text, 100 * i);
        if (roll(6) == 0) {
            scratch_sql(db, "INSERT INTO frame(address_id, inline_depth) VALUES(%d, 0)", i);
            continue;
        }
        int chain = 1 + (int)roll(3);
        for (int depth = 0; depth < chain; depth++) {
            int function = roll(10) ? 3 * (1 + (int)roll(25)) : 0, file = roll(3) ? 1 + (int)roll(6) : 0;
            scratch_sql(
                db,
                "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line, is_inline) VALUES(%d, %d, "
                "nullif(%d, 0), nullif(%d, 0), %s, %d)",
                i, depth, function, file,
                !file || roll(8) == 0 ? "NULL"
                : roll(2)             ? "7"
                                      : "12",
                depth + 1 < chain);
        }
    }
}

static void make_stacks(sqlite3 *db)
{
    for (int i = 1; i <= NODES; i++) {
        /* mostly below a recent node, so that stacks are deep and addresses repeat on them */
        int parent = i < 4 || roll(20) == 0 ? 0 : i - 1 - (int)roll((uint32_t)(i < 20 ? i - 1 : 12));
        scratch_sql(db, "INSERT INTO stack VALUES(%d, nullif(%d, 0), %d, 1, 0)", 2 * i, 2 * parent,
                    1 + (int)roll(ADDRESSES));
    }
}

struct level {
    int64_t live, peak;
};

static void count_peaks(struct level *device, struct level *kind, uint32_t group)
{
    struct level *d = &device[groups[group].device], *k = &kind[group];
    if (d->live > d->peak) {
        d->peak = d->live;
        for (int i = 1; i <= FINISH_SITES; i++)
            if (groups[sites[i].group].device == groups[group].device) {
                sites[i].at_peak = sites[i].live;
                sites[i].at_peak_count = sites[i].live_count;
            }
    }
    if (k->live > k->peak) {
        k->peak = k->live;
        for (int i = 1; i <= FINISH_SITES; i++)
            if (sites[i].group == group)
                sites[i].at_kind_peak = sites[i].live;
    }
}

static void write_chunk(sqlite3 *db, struct chunk_codec *codec, const struct chunk_event *events, size_t count, int id,
                        size_t first)
{
    struct chunk_delta deltas[FINISH_SITES];
    size_t touched = 0;
    for (int i = 1; i <= FINISH_SITES; i++) {
        struct tracked *t = &sites[i];
        if (t->delta.alloc_count || t->delta.free_count) {
            t->delta.site_id = (uint32_t)i;
            t->delta.rise_bytes = (uint64_t)(t->chunk_high - t->chunk_live);
            deltas[touched++] = t->delta;
        }
        t->delta = (struct chunk_delta){0};
        t->chunk_live = t->chunk_high = t->live;
    }
    struct buf data = BUF(64 << 20), delta = BUF(64 << 20);
    assert_int_equal(chunk_encode_events(codec, events, count, &data), 0);
    assert_int_equal(chunk_encode_deltas(codec, deltas, touched, &delta), 0);
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO event_chunk VALUES(?, ?, ?, ?, ?, 3, ?, ?)", -1, &s, NULL),
                     SQLITE_OK);
    sqlite3_bind_int(s, 1, id);
    sqlite3_bind_int64(s, 2, (int64_t)events[0].time_ns);
    sqlite3_bind_int64(s, 3, (int64_t)events[count - 1].time_ns);
    sqlite3_bind_int64(s, 4, (int64_t)count);
    sqlite3_bind_int64(s, 5, (int64_t)first);
    sqlite3_bind_blob64(s, 6, delta.data, delta.length, SQLITE_STATIC);
    sqlite3_bind_blob64(s, 7, data.data, data.length, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
    buf_free(&data);
    buf_free(&delta);
}

static void account_event(const struct chunk_event *e, struct level *device, struct level *kind)
{
    struct tracked *t = &sites[e->site_id];
    int is_alloc = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
    int64_t size = (int64_t)e->size_bytes, change = is_alloc ? size : -size;
    t->live += change;
    t->live_count += is_alloc ? 1 : -1;
    device[e->device].live += change;
    kind[t->group].live += change;
    if (is_alloc) {
        t->alloc_count++;
        t->alloc_bytes += size;
        t->delta.alloc_count++;
        t->delta.alloc_bytes += (uint64_t)size;
        t->largest = size > t->largest ? size : t->largest;
    } else {
        t->delta.free_count++;
        t->delta.free_bytes += (uint64_t)size;
        *(e->op == CHUNK_end ? &t->end_bytes : &t->free_bytes) += size;
        *(e->op == CHUNK_end ? &t->end_count : &t->free_count) += 1;
    }
    if (t->live > t->own_peak)
        t->own_peak = t->live;
    if (t->live > t->chunk_high)
        t->chunk_high = t->live;
    count_peaks(device, kind, t->group);
    if (device[e->device].live > t->active_peak)
        t->active_peak = device[e->device].live;
}

/* The highest live bytes of each device in each BUCKET_NS. */
static void write_timeline(sqlite3 *db)
{
    int64_t live[2] = {0, 0}, most[2] = {0, 0};
    for (size_t i = 0; i < finish_event_count; i++) {
        const struct chunk_event *e = &finish_events[i];
        int is_alloc = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
        if (e->op != CHUNK_oom)
            live[e->device] += is_alloc ? (int64_t)e->size_bytes : -(int64_t)e->size_bytes;
        most[e->device] = live[e->device] > most[e->device] ? live[e->device] : most[e->device];
        if ((i + 1) % BUCKET_NS && i + 1 < finish_event_count)
            continue;
        for (int d = 0; d < 2; d++) {
            scratch_sql(db,
                        "INSERT INTO timeline VALUES(%d, 0, %lld, %d, 0, %lld, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0)",
                        d, (long long)(i / BUCKET_NS * BUCKET_NS), BUCKET_NS, most[d]);
            most[d] = live[d];
        }
    }
}

/* Allocations and frees that swing, so that sites have their peaks at different times. */
static void make_events(sqlite3 *db, size_t count, size_t chunk_events)
{
    struct level device[2] = {{0, 0}, {0, 0}}, kind[GROUPS] = {{0, 0}};
    struct block *blocks = malloc(count * sizeof *blocks);
    struct chunk_codec *codec = chunk_codec_open();
    size_t live = 0, chunk_start = 0;
    int chunk = 1;
    finish_events = realloc(finish_events, (count + 1) * sizeof *finish_events);
    finish_event_count = 0;
    memset(sites, 0, sizeof sites);
    for (uint32_t i = 1; i <= FINISH_SITES; i++) {
        sites[i].group = roll(GROUPS);
        sites[i].stack = roll(30) ? 2 * (1 + roll(NODES)) : 0;
    }
    while (finish_event_count < count) {
        uint32_t phase = (uint32_t)(finish_event_count * 12 / count);
        int grows = live < 10 || roll(100) < (phase % 3 == 0 ? 58u : phase % 3 == 1 ? 50u : 42u);
        if (count - finish_event_count <= live)
            grows = 0;
        struct chunk_event e = {.time_ns = finish_event_count, .thread_id = 1, .process_id = 1, .hook = 1};
        if (grows) {
            uint32_t site = 1 + (roll(3) ? roll(FINISH_SITES) : (phase * 7 + roll(6)) % FINISH_SITES);
            e.op = roll(9) ? CHUNK_alloc : CHUNK_realloc_alloc;
            e.size_bytes = roll(50) ? roll(5000) : roll(200000);
            e.site_id = site;
            blocks[live++] = (struct block){site, e.size_bytes};
        } else if (live == 0) {
            e.op = CHUNK_oom;
            e.site_id = 1 + roll(FINISH_SITES);
            e.size_bytes = 1ull << 40; /* must not count */
        } else {
            size_t at = roll((uint32_t)live);
            e.op = count - finish_event_count < 200 ? CHUNK_end : roll(9) ? CHUNK_free : CHUNK_realloc_free;
            e.size_bytes = blocks[at].size;
            e.site_id = blocks[at].site;
            blocks[at] = blocks[--live];
        }
        e.kind = (uint8_t)groups[sites[e.site_id].group].kind;
        e.device = (uint8_t)groups[sites[e.site_id].group].device;
        e.address = 0x1000 + finish_event_count * 16;
        if (e.op != CHUNK_oom)
            account_event(&e, device, kind);
        finish_events[finish_event_count++] = e;
        if (finish_event_count - chunk_start == chunk_events || finish_event_count == count) {
            write_chunk(db, codec, finish_events + chunk_start, finish_event_count - chunk_start, chunk++, chunk_start);
            chunk_start = finish_event_count;
        }
    }
    free(blocks);
    chunk_codec_close(codec);
    for (int i = 1; i <= FINISH_SITES; i++) {
        struct tracked *t = &sites[i];
        scratch_sql(
            db,
            "INSERT INTO site VALUES(%d, %d, 1, %d, '%s', %lld, %lld, %lld, %lld, %d, %d, %lld, %lld, %lld, %lld, "
            "%lld, %lld, %lld, %d, %lld, %d)",
            i, t->stack, groups[t->group].device, kind_name(groups[t->group].kind), t->alloc_count, t->alloc_bytes,
            t->free_count, t->free_bytes, i % 7, i % 11, t->at_peak, t->at_peak_count, t->at_kind_peak, t->own_peak,
            t->end_bytes, t->end_count, t->active_peak, 1000 + i, t->largest, i * 13);
    }
    for (int d = 0; d < 2; d++)
        scratch_sql(db, "INSERT INTO total SELECT %d, 'all', 0, 0, 0, 0, 0, 0, %lld, 0, 0, 0, 0, 0, 0, 0, 0", d,
                    device[d].peak);
    for (int g = 0; g < GROUPS; g++)
        scratch_sql(db, "INSERT INTO total SELECT %d, '%s', 0, 0, 0, 0, 0, 0, %lld, 0, 0, 0, 0, 0, 0, 0, 0",
                    groups[g].device, kind_name(groups[g].kind), kind[g].peak);
}

static void copy(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    assert_non_null(b);
    assert_int_equal(sqlite3_backup_step(b, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(b), SQLITE_OK);
}

/* What was made last stays in memory: most tests damage copies of one recording. */
sqlite3 *finish_random(const char *name, uint32_t with_seed, size_t events, size_t chunk_events)
{
    static struct {
        uint32_t seed;
        size_t events, chunk_events;
        sqlite3 *db;
    } last;
    sqlite3 *db = finish_empty(name);
    if (last.db && last.seed == with_seed && last.events == events && last.chunk_events == chunk_events) {
        copy(db, last.db);
        return db;
    }
    seed = last.seed = with_seed;
    last.events = events;
    last.chunk_events = chunk_events;
    scratch_sql(db, "BEGIN");
    make_names(db);
    make_addresses(db);
    make_stacks(db);
    make_events(db, events, chunk_events);
    write_timeline(db);
    scratch_sql(db, "COMMIT");
    sqlite3_close(last.db);
    assert_int_equal(sqlite3_open(":memory:", &last.db), SQLITE_OK);
    copy(last.db, db);
    return db;
}
