/* The accounts against a naive model (arrays, searched from front to back) over random events; everything is read back
 * from the database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../common/chunk.h"
#include "../../common/kind.h"
#include "../../profiler/collect/account.h"
#include "../../profiler/collect/store.h"
#include "../../profiler/collect/timeline.h"
#include "random.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACKS    24u
#define THREADS   84u
#define DEVICES   2u
#define SITES     (STACKS * DEVICES * KIND_COUNT)
#define SNAPSHOTS 40u

/* --- the model --- */

struct stats {
    uint64_t alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes, live_bytes, live_count;
    uint64_t at_peak_bytes, at_peak_count, at_kind_peak_bytes, own_peak_bytes, end_bytes, end_count;
    uint64_t active_peak_bytes, reserved_peak_bytes, largest_bytes, lifetime_ns;
};

struct block {
    uint64_t address, size, time_ns, number; /* number: of its thread's allocations */
    unsigned process, thread, stack, device, kind, space;
};

struct peak {
    uint64_t active, bytes, time_ns, count, blocks;
};

struct model {
    struct block *blocks;
    size_t block_count;
    struct stats sites[DEVICES][KIND_COUNT][STACKS];
    struct stats threads[DEVICES][KIND_COUNT + 1][THREADS];
    struct peak peaks[DEVICES][KIND_COUNT + 1];
    uint64_t reserved[DEVICES][KIND_COUNT + 1], reserved_peak[DEVICES][KIND_COUNT + 1];
    uint64_t samples[64]; /* by process */
    uint64_t thread_allocs[THREADS];
    uint64_t unmatched, inherited, replaced, reallocs, events; /* events: those in chunks */
    uint64_t now_ns;
    /* device 0 over time: one entry a change */
    struct change {
        uint64_t time_ns, active;
    } * changes;
    size_t change_count;
    /* what sites held after that many events */
    struct snapshot {
        uint64_t event_count;
        uint64_t bytes[DEVICES][KIND_COUNT][STACKS], count[DEVICES][KIND_COUNT][STACKS];
    } snapshots[SNAPSHOTS];
    unsigned snapshot_count;
};

static const unsigned spaces[KIND_COUNT] = {0, 1, 5, 6, 6, 3, 6, 4, 2}; /* kinds that may share an address */

static struct stats *targets(struct model *m, unsigned device, unsigned kind, unsigned stack, unsigned thread,
                             struct stats *t[3])
{
    t[0] = &m->sites[device][kind][stack];
    t[1] = &m->threads[device][kind][thread];
    t[2] = &m->threads[device][KIND_COUNT][thread];
    return t[0];
}

static void note_change(struct model *m, unsigned device)
{
    if (device == 0)
        m->changes[m->change_count++] = (struct change){m->now_ns, m->peaks[0][KIND_COUNT].active};
}

static void note_event(struct model *m)
{
    m->events++;
    if (m->snapshot_count < SNAPSHOTS && rnd(5000) == 0) {
        struct snapshot *s = &m->snapshots[m->snapshot_count++];
        s->event_count = m->events;
        for (unsigned d = 0; d < DEVICES; d++)
            for (unsigned k = 0; k < KIND_COUNT; k++)
                for (unsigned i = 0; i < STACKS; i++) {
                    s->bytes[d][k][i] = m->sites[d][k][i].live_bytes;
                    s->count[d][k][i] = m->sites[d][k][i].live_count;
                }
    }
}

static void reserved_change(struct model *m, unsigned device, unsigned kind, int64_t bytes)
{
    const unsigned kinds[2] = {kind, KIND_COUNT};
    for (unsigned i = 0; i < 2; i++) {
        uint64_t *r = &m->reserved[device][kinds[i]], *p = &m->reserved_peak[device][kinds[i]];
        *r += (uint64_t)bytes;
        *p = *r > *p ? *r : *p;
    }
}

static void model_death(struct model *m, size_t index, int ends)
{
    struct block b = m->blocks[index];
    struct stats *t[3];
    m->blocks[index] = m->blocks[--m->block_count];
    targets(m, b.device, b.kind, b.stack, b.thread, t);
    for (unsigned i = 0; i < 3; i++) {
        t[i]->live_bytes -= b.size;
        t[i]->live_count--;
        if (ends) {
            t[i]->end_bytes += b.size;
            t[i]->end_count++;
            continue;
        }
        t[i]->free_count++;
        t[i]->free_bytes += b.size;
        t[i]->lifetime_ns += m->now_ns - b.time_ns;
        if (m->thread_allocs[b.thread] == b.number) {
            t[i]->temporary_count++;
            t[i]->temporary_bytes += b.size;
        }
    }
    for (unsigned k = b.kind;; k = KIND_COUNT) {
        m->peaks[b.device][k].active -= b.size;
        m->peaks[b.device][k].blocks--;
        if (k == KIND_COUNT)
            break;
    }
    if (b.kind == KIND_map && b.device == 0)
        reserved_change(m, 0, KIND_map, -(int64_t)b.size);
    note_change(m, b.device);
    if (!ends)
        note_event(m);
}

static long model_find(const struct model *m, unsigned process, uint64_t address, unsigned space)
{
    for (size_t i = 0; i < m->block_count; i++)
        if (m->blocks[i].process == process && m->blocks[i].address == address && m->blocks[i].space == space)
            return (long)i;
    return -1;
}

static void new_peak(struct model *m, unsigned device, unsigned kind)
{
    struct peak *p = &m->peaks[device][kind];
    p->bytes = p->active;
    p->time_ns = m->now_ns;
    p->count = p->blocks;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        for (unsigned i = 0; i < STACKS + THREADS; i++) {
            struct stats *s = i < STACKS ? &m->sites[device][k][i] : &m->threads[device][k][i - STACKS];
            if (kind == KIND_COUNT) {
                s->at_peak_bytes = s->live_bytes;
                s->at_peak_count = s->live_count;
            } else if (k == kind) {
                s->at_kind_peak_bytes = s->live_bytes;
            }
        }
    }
}

static void model_birth(struct model *m, const struct event *e)
{
    unsigned space = spaces[e->kind];
    long there = model_find(m, e->process_id, e->address, space);
    struct stats *t[3];
    if (there >= 0) {
        m->replaced++;
        model_death(m, (size_t)there, 0);
    }
    m->blocks[m->block_count++] =
        (struct block){e->address,    e->size_bytes, m->now_ns,   ++m->thread_allocs[e->thread_id],
                       e->process_id, e->thread_id,  e->stack_id, e->device,
                       e->kind,       space};
    m->reallocs += e->op == EVENT_REALLOC_ALLOC;
    targets(m, e->device, e->kind, e->stack_id, e->thread_id, t);
    for (unsigned k = e->kind;; k = KIND_COUNT) {
        m->peaks[e->device][k].active += e->size_bytes;
        m->peaks[e->device][k].blocks++;
        if (k == KIND_COUNT)
            break;
    }
    if (e->kind == KIND_map && e->device == 0)
        reserved_change(m, 0, KIND_map, (int64_t)e->size_bytes);
    uint64_t active = m->peaks[e->device][KIND_COUNT].active, reserved = m->reserved[e->device][KIND_COUNT];
#define RAISE(field, value) t[i]->field = t[i]->field > (value) ? t[i]->field : (value)
    for (unsigned i = 0; i < 3; i++) {
        t[i]->alloc_count++;
        t[i]->alloc_bytes += e->size_bytes;
        t[i]->live_count++;
        t[i]->live_bytes += e->size_bytes;
        RAISE(own_peak_bytes, t[i]->live_bytes);
        RAISE(active_peak_bytes, active);
        RAISE(reserved_peak_bytes, reserved);
        RAISE(largest_bytes, e->size_bytes);
    }
    if (m->peaks[e->device][KIND_COUNT].active > m->peaks[e->device][KIND_COUNT].bytes)
        new_peak(m, e->device, KIND_COUNT);
    if (m->peaks[e->device][e->kind].active > m->peaks[e->device][e->kind].bytes)
        new_peak(m, e->device, e->kind);
    note_change(m, e->device);
    note_event(m);
}

static void model_end(struct model *m, unsigned process)
{
    char ended[DEVICES][KIND_COUNT][STACKS] = {0};
    for (size_t i = m->block_count; i-- > 0;) {
        struct block b = m->blocks[i];
        if (b.process != process)
            continue;
        ended[b.device][b.kind][b.stack] = 1;
        model_death(m, i, 1);
    }
    for (unsigned i = 0; i < SITES; i++) /* one event a site; no snapshots between: the order is not said */
        m->events += (uint64_t)((char *)ended)[i];
    reserved_change(m, 0, KIND_heap, -(int64_t)m->samples[process]);
    m->samples[process] = 0;
}

static void model_event(struct model *m, const struct event *e)
{
    m->now_ns = e->time_ns;
    switch (e->op) {
    case EVENT_ALLOC:
    case EVENT_REALLOC_ALLOC:
        model_birth(m, e);
        break;
    case EVENT_FREE:
    case EVENT_REALLOC_FREE: {
        long i = model_find(m, e->process_id, e->address, spaces[e->kind]);
        if (i >= 0)
            model_death(m, (size_t)i, 0);
        else if (e->inherited)
            m->inherited++;
        else
            m->unmatched++;
        break;
    }
    case EVENT_RESERVED:
        reserved_change(m, 0, KIND_heap, (int64_t)(e->size_bytes - m->samples[e->process_id]));
        m->samples[e->process_id] = e->size_bytes;
        break;
    case EVENT_PROCESS_END:
        model_end(m, e->process_id);
        break;
    }
}

/* --- events --- */

static void set_kind(struct event *e)
{
    static const uint8_t kinds[DEVICES][4] = {{KIND_heap, KIND_heap, KIND_map, KIND_sub},
                                              {KIND_device, KIND_device, KIND_pool, KIND_sub}};
    e->device = rnd(6) == 0;
    e->kind = kinds[e->device][rnd(4)];
}

static size_t make_event(const struct model *m, struct event *out, uint64_t *time_ns, unsigned process)
{
    unsigned what = (unsigned)rnd(1000);
    *time_ns += rnd(20) ? rnd(300) : rnd(3) * 100000;
    out[0] = (struct event){.time_ns = *time_ns,
                            .process_id = (uint16_t)process,
                            .thread_id = process * 2 + (uint32_t)rnd(2), /* a thread is of one process */
                            .hook = (uint8_t)(1 + rnd(8)),
                            .inherited = process == 3};
    struct event *e = &out[0];
    set_kind(e);
    if (what < 3) {
        e->op = EVENT_RESERVED;
        e->device = 0;
        e->kind = KIND_heap;
        e->size_bytes = rnd(1 << 20);
    } else if (what < 8) {
        e->op = EVENT_FREE; /* of nothing */
        e->address = 0xdead0000 + rnd(100) * 16;
    } else if (m->block_count && what < 430 + (m->block_count > 600) * 300) {
        size_t i = rnd(3) ? m->block_count - 1 : rnd(m->block_count);
        const struct block *b = &m->blocks[i];
        e->op = EVENT_FREE;
        e->address = b->address;
        e->process_id = (uint16_t)b->process;
        e->device = (uint8_t)b->device;
        e->kind = (uint8_t)b->kind;
        if (rnd(8) == 0) {
            e->op = EVENT_REALLOC_FREE;
            out[1] = *e;
            out[1].op = EVENT_REALLOC_ALLOC;
            out[1].size_bytes = rnd(4000);
            out[1].stack_id = (uint32_t)rnd(STACKS);
            if (rnd(2))
                out[1].address += 0x100000;
            return 2;
        }
    } else {
        e->op = EVENT_ALLOC;
        /* few addresses, so that some are taken */
        e->address = 0x10000 + rnd(20000) * 16;
        e->size_bytes = rnd(50) ? rnd(1000) : rnd(3) * 20000;
        e->stack_id = (uint32_t)rnd(STACKS);
    }
    return 1;
}

/* --- comparing --- */

static sqlite3 *db;

static int64_t query(const char *format, ...)
{
    char sql[1024];
    va_list args;
    sqlite3_stmt *s;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    int64_t value = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return value;
}

static void compare_stats(const char *where, const struct stats *s)
{
#define COLUMN(name)                                                                                                   \
    if (query("SELECT " #name " FROM %s", where) != (int64_t)s->name)                                                  \
    fail_msg("%s: " #name " %ld, expected %ld", where, (long)query("SELECT " #name " FROM %s", where), (long)s->name)
    COLUMN(alloc_count);
    COLUMN(alloc_bytes);
    COLUMN(free_count);
    COLUMN(free_bytes);
    COLUMN(temporary_count);
    COLUMN(temporary_bytes);
    COLUMN(at_peak_bytes);
    COLUMN(at_peak_count);
    COLUMN(at_kind_peak_bytes);
    COLUMN(own_peak_bytes);
    COLUMN(end_bytes);
    COLUMN(end_count);
    COLUMN(active_peak_bytes);
    COLUMN(reserved_peak_bytes);
    COLUMN(largest_bytes);
    COLUMN(lifetime_ns);
#undef COLUMN
}

static void compare_rows(struct model *m)
{
    char where[200];
    uint64_t rows = 0;
    for (unsigned d = 0; d < DEVICES; d++)
        for (unsigned k = 0; k < KIND_COUNT; k++)
            for (unsigned i = 0; i < STACKS; i++) {
                if (!m->sites[d][k][i].alloc_count)
                    continue;
                rows++;
                snprintf(where, sizeof where, "site WHERE device_id=%u AND kind='%s' AND stack_id=%u", d, kind_name(k),
                         i);
                compare_stats(where, &m->sites[d][k][i]);
            }
    assert_int_equal(query("SELECT count(*) FROM site"), rows);
    for (unsigned d = 0; d < DEVICES; d++)
        for (unsigned i = 0; i < THREADS; i++)
            for (unsigned k = 0; k <= KIND_COUNT; k++) {
                struct stats *s = &m->threads[d][k][i];
                if (!s->alloc_count)
                    continue;
                if (k == KIND_COUNT) { /* sums of the kinds, all at the device's peak */
                    for (unsigned j = 0; j < KIND_COUNT; j++) {
                        s->at_peak_bytes += m->threads[d][j][i].at_peak_bytes;
                        s->at_peak_count += m->threads[d][j][i].at_peak_count;
                    }
                    s->at_kind_peak_bytes = s->at_peak_bytes;
                }
                snprintf(where, sizeof where,
                         "account WHERE scope='thread' AND inclusive=0 AND device_id=%u AND kind='%s' "
                         "AND key_id=%u",
                         d, kind_name(k), i);
                compare_stats(where, s);
            }
}

static void compare_totals(const struct model *m)
{
    for (unsigned d = 0; d < DEVICES; d++)
        for (unsigned k = 0; k <= KIND_COUNT; k++) {
            const struct peak *p = &m->peaks[d][k];
            struct stats sum = {0};
            for (unsigned i = 0; i < SITES; i++) {
                const struct stats *s = &m->sites[d][i / STACKS % KIND_COUNT][i % STACKS];
                if (i >= KIND_COUNT * STACKS || (k < KIND_COUNT && i / STACKS != k))
                    continue;
                sum.alloc_count += s->alloc_count;
                sum.alloc_bytes += s->alloc_bytes;
                sum.free_count += s->free_count;
                sum.free_bytes += s->free_bytes;
                sum.temporary_count += s->temporary_count;
                sum.temporary_bytes += s->temporary_bytes;
                sum.end_bytes += s->end_bytes;
                sum.end_count += s->end_count;
                sum.lifetime_ns += s->lifetime_ns;
                if (k == KIND_COUNT)
                    sum.at_peak_bytes += s->at_peak_bytes;
                else
                    sum.at_kind_peak_bytes += s->at_kind_peak_bytes;
            }
            if (!sum.alloc_count)
                continue;
#define TOTAL(column, value)                                                                                           \
    assert_int_equal(query("SELECT " #column " FROM total WHERE device_id=%u AND kind='%s'", d, kind_name(k)), value)
            TOTAL(alloc_count, sum.alloc_count);
            TOTAL(alloc_bytes, sum.alloc_bytes);
            TOTAL(free_count, sum.free_count);
            TOTAL(free_bytes, sum.free_bytes);
            TOTAL(temporary_count, sum.temporary_count);
            TOTAL(temporary_bytes, sum.temporary_bytes);
            TOTAL(end_active_bytes, sum.end_bytes);
            TOTAL(end_count, sum.end_count);
            TOTAL(lifetime_ns, sum.lifetime_ns);
            TOTAL(peak_active_bytes, p->bytes);
            TOTAL(peak_active_ns, p->time_ns);
            TOTAL(peak_active_count, p->count);
            TOTAL(peak_reserved_bytes, m->reserved_peak[d][k]);
            assert_int_equal(sum.at_peak_bytes + sum.at_kind_peak_bytes, p->bytes);
            assert_int_equal(
                query("SELECT value_bytes FROM peak WHERE device_id=%u AND kind='%s' AND what='active' AND "
                      "rank=0",
                      d, kind_name(k)),
                p->bytes);
            if (k < KIND_COUNT) {
                assert_int_equal(
                    query("SELECT sum(alloc_count) FROM size_class WHERE device_id=%u AND kind='%s'", d, kind_name(k)),
                    sum.alloc_count);
                assert_int_equal(query("SELECT sum(free_bytes) FROM lifetime_class WHERE device_id=%u AND kind='%s'", d,
                                       kind_name(k)),
                                 sum.free_bytes);
            }
        }
    assert_int_equal(query("SELECT sum(realloc_count) FROM total WHERE kind='all'"), m->reallocs);
}

/* Level 0, bucket by bucket; every level has the peak. */
static void compare_timeline(const struct model *m)
{
    sqlite3_stmt *s;
    size_t next = 0;
    uint64_t active = 0, expected_start = 0, buckets = 0;
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT time_ns, width_ns, active_min_bytes, active_max_bytes, active_max_ns, "
                           "active_last_bytes FROM timeline WHERE device_id=0 AND level=0 ORDER BY time_ns",
                           -1, &s, NULL),
        SQLITE_OK);
    for (; sqlite3_step(s) == SQLITE_ROW; buckets++) {
        uint64_t start = (uint64_t)sqlite3_column_int64(s, 0), end = start + (uint64_t)sqlite3_column_int64(s, 1);
        uint64_t min = active, max = active, max_ns = start;
        assert_int_equal(start, expected_start);
        expected_start = end;
        for (; next < m->change_count && m->changes[next].time_ns < end; next++) {
            active = m->changes[next].active;
            if (active > max) {
                max = active;
                max_ns = m->changes[next].time_ns;
            }
            /* within a process's end, and between a lost block and the one in its place, the order is free */
            min = active < min ? active : min;
        }
        assert_int_equal(sqlite3_column_int64(s, 2), min);
        assert_int_equal(sqlite3_column_int64(s, 3), max);
        assert_int_equal(sqlite3_column_int64(s, 5), active);
        if (max != (uint64_t)sqlite3_column_int64(s, 3) || max_ns > (uint64_t)sqlite3_column_int64(s, 4) + 1000000)
            fail_msg("bucket at %lu", (unsigned long)start);
    }
    sqlite3_finalize(s);
    assert_int_equal(next, m->change_count);
    assert_true(buckets > TIMELINE_BUCKETS / 4 && buckets <= TIMELINE_BUCKETS);
    for (int64_t level = query("SELECT max(level) FROM timeline"); level >= 0; level--) {
        assert_int_equal(query("SELECT max(active_max_bytes) FROM timeline WHERE device_id=0 AND level=%d", (int)level),
                         m->peaks[0][KIND_COUNT].bytes);
        assert_int_equal(query("SELECT count(*) FROM timeline WHERE device_id=0 AND level=%d AND active_max_ns=%ld AND "
                               "active_max_bytes=%ld",
                               (int)level, (long)m->peaks[0][KIND_COUNT].time_ns, (long)m->peaks[0][KIND_COUNT].bytes),
                         1);
        assert_int_equal(query("SELECT sum(alloc_count) FROM timeline WHERE device_id=0 AND level=%d", (int)level),
                         query("SELECT alloc_count FROM total WHERE device_id=0 AND kind='all'"));
    }
    assert_int_equal(query("SELECT max(active_bytes) FROM v_timeline WHERE device='host'"),
                     m->peaks[0][KIND_COUNT].bytes);
}

struct held {
    int64_t bytes, count;
};

static const void *blob(sqlite3_stmt *s, int column, size_t *length)
{
    *length = (size_t)sqlite3_column_bytes(s, column);
    return sqlite3_column_blob(s, column);
}

/* What every site holds after event_count events: key frame, deltas of whole chunks, events of the last one. */
static void rebuild(uint64_t event_count, struct held *held)
{
    struct chunk_codec *codec = chunk_codec_open();
    char sql[300];
    sqlite3_stmt *s;
    size_t length;
    uint64_t at;
    snprintf(sql, sizeof sql,
             "SELECT event_count, data FROM keyframe WHERE reason='periodic' AND event_count <= %lu ORDER BY "
             "event_count DESC LIMIT 1",
             (unsigned long)event_count);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const struct chunk_live *live;
    const void *data = blob(s, 1, &length);
    long n = chunk_decode_live(codec, data, length, &live);
    assert_true(n >= 0);
    at = (uint64_t)sqlite3_column_int64(s, 0);
    for (long i = 0; i < n; i++)
        held[live[i].site_id] = (struct held){(int64_t)live[i].live_bytes, (int64_t)live[i].live_count};
    sqlite3_finalize(s);
    snprintf(sql, sizeof sql,
             "SELECT event_count, data, site_delta FROM event_chunk WHERE first_event >= %lu ORDER BY "
             "chunk_id",
             (unsigned long)at);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    while (at < event_count && sqlite3_step(s) == SQLITE_ROW) {
        uint64_t count = (uint64_t)sqlite3_column_int64(s, 0);
        if (at + count <= event_count) {
            const struct chunk_delta *deltas;
            data = blob(s, 2, &length);
            n = chunk_decode_deltas(codec, data, length, &deltas);
            assert_true(n >= 0);
            for (long i = 0; i < n; i++) {
                held[deltas[i].site_id].bytes += (int64_t)(deltas[i].alloc_bytes - deltas[i].free_bytes);
                held[deltas[i].site_id].count += (int64_t)deltas[i].alloc_count - deltas[i].free_count;
            }
            at += count;
            continue;
        }
        const struct chunk_event *events;
        data = blob(s, 1, &length);
        assert_int_equal(chunk_decode_events(codec, data, length, &events), count);
        for (; at < event_count; at++, events++) {
            struct held *h = &held[events->site_id];
            int64_t size = (int64_t)events->size_bytes;
            if (events->op == CHUNK_alloc || events->op == CHUNK_realloc_alloc)
                *h = (struct held){h->bytes + size, h->count + 1};
            else if (chunk_op_is_death(events->op))
                *h = (struct held){h->bytes - size, h->count - 1};
            else if (events->op == CHUNK_end)
                *h = (struct held){h->bytes - size, h->count - (int64_t)events->address};
        }
    }
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    assert_int_equal(at, event_count);
}

static void compare_snapshots(const struct model *m)
{
    for (unsigned i = 0; i < m->snapshot_count; i++) {
        const struct snapshot *s = &m->snapshots[i];
        struct held held[SITES + 1] = {0};
        if ((int64_t)s->event_count < query("SELECT coalesce(min(first_event), 0) FROM event_chunk"))
            continue;
        rebuild(s->event_count, held);
        for (unsigned d = 0; d < DEVICES; d++)
            for (unsigned k = 0; k < KIND_COUNT; k++)
                for (unsigned j = 0; j < STACKS; j++) {
                    int64_t id = query("SELECT site_id FROM site WHERE device_id=%u AND kind='%s' AND stack_id=%u", d,
                                       kind_name(k), j);
                    if (id < 0)
                        continue;
                    assert_int_equal(held[id].bytes, s->bytes[d][k][j]);
                    assert_int_equal(held[id].count, s->count[d][k][j]);
                }
    }
}

/* The key frame of the device's peak holds what the rows say. */
static void compare_peak_frame(const struct model *m)
{
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *s;
    size_t length;
    const struct chunk_live *live;
    uint64_t sum = 0;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT data, event_count FROM keyframe WHERE reason='peak' AND device_id=0",
                                        -1, &s, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const void *data = blob(s, 0, &length);
    long n = chunk_decode_live(codec, data, length, &live);
    assert_true(n > 0);
    for (long i = 0; i < n; i++) {
        sum += live[i].live_bytes;
        assert_int_equal(query("SELECT at_peak_bytes FROM site WHERE site_id=%u", live[i].site_id), live[i].live_bytes);
        assert_int_equal(query("SELECT at_peak_count FROM site WHERE site_id=%u", live[i].site_id), live[i].live_count);
    }
    assert_int_equal(sum, m->peaks[0][KIND_COUNT].bytes);
    sqlite3_finalize(s);
    chunk_codec_close(codec);
}

/* --- running --- */

struct run {
    struct model *model;
    struct store *store;
    struct account *account;
};

static void run_open(struct run *r, const struct account_options *options, size_t events)
{
    struct error err;
    if (store_create(scratch_path("account.db"), &r->store, &err) != 0)
        fail_msg("%s", err.text);
    db = store_db(r->store);
    sqlite3_exec(db,
                 "INSERT OR IGNORE INTO device(device_id, name, total_bytes) VALUES(0,'host',NULL),(1,'cuda:0',NULL)",
                 NULL, NULL, NULL);
    r->account = account_open(r->store, options);
    r->model = calloc(1, sizeof *r->model);
    r->model->blocks = calloc(events * 2 + 10, sizeof *r->model->blocks);
    r->model->changes = calloc(events * 4 + 10, sizeof *r->model->changes);
}

static void run_close(struct run *r)
{
    struct error err;
    account_close(r->account);
    if (store_close(r->store, &err) != 0)
        fail_msg("%s", err.text);
    unlink(scratch_path("account.db"));
    free(r->model->blocks);
    free(r->model->changes);
    free(r->model);
}

/* Random events in batches of random size, some processes that end, flushes in between. */
static void run_random(struct run *r, size_t events, unsigned flush_every)
{
    struct event batch[600];
    size_t fill = 0;
    uint64_t time_ns = 1000;
    unsigned processes = 3;
    for (size_t i = 0; i < events;) {
        size_t n = make_event(r->model, batch + fill, &time_ns, 1 + (unsigned)rnd(processes));
        if (rnd(20000) == 0) {
            batch[fill] = (struct event){.time_ns = time_ns,
                                         .op = EVENT_PROCESS_END,
                                         .process_id = (uint16_t)(1 + rnd(processes)),
                                         .thread_id = 1};
            n = 1;
            processes += processes < 40;
        }
        for (size_t j = 0; j < n; j++)
            model_event(r->model, &batch[fill + j]);
        fill += n;
        i += n;
        if (fill + 2 > sizeof batch / sizeof *batch || rnd(200) == 0) {
            account_events(r->account, batch, fill);
            fill = 0;
            if (flush_every && rnd(flush_every) == 0)
                account_flush(r->account, time_ns);
        }
    }
    account_events(r->account, batch, fill);
}

static void compare_all(struct run *r)
{
    struct account_counts counts;
    account_counts(r->account, &counts);
    assert_int_equal(counts.unmatched_frees, r->model->unmatched);
    assert_int_equal(counts.inherited_frees, r->model->inherited);
    assert_int_equal(counts.replaced_blocks, r->model->replaced);
    assert_int_equal(counts.live_blocks, r->model->block_count);
    compare_rows(r->model);
    compare_totals(r->model);
}

static void test_random(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        struct run r;
        random_seed = 77 + round * 1000003;
        run_open(&r, &(struct account_options){0}, 180000);
        run_random(&r, 180000, round == 1 ? 3 : 100);
        account_finish(r.account, r.model->now_ns + 5);
        compare_all(&r);
        assert_true(r.model->replaced > 10 && r.model->unmatched > 100 && r.model->inherited > 100);
        assert_int_equal(query("SELECT sum(event_count) FROM event_chunk"), r.model->events);
        assert_int_equal(query("SELECT max(first_event + event_count) FROM event_chunk"), r.model->events);
        compare_timeline(r.model);
        assert_true(r.model->snapshot_count > 10);
        compare_snapshots(r.model);
        compare_peak_frame(r.model);
        run_close(&r);
    }
}

/* What a collector that is killed after a flush leaves is as consistent as the end. */
static void test_flush_is_consistent(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        struct run r;
        random_seed = 5 + round;
        run_open(&r, &(struct account_options){0}, 40000);
        run_random(&r, 30000, 20);
        account_flush(r.account, r.model->now_ns);
        compare_all(&r);
        assert_int_equal(query("SELECT sum(event_count) FROM event_chunk"), r.model->events);
        compare_timeline(r.model);
        compare_snapshots(r.model);
        run_close(&r);
    }
}

static void test_aggregate(void **state)
{
    (void)state;
    struct run r;
    random_seed = 99;
    run_open(&r, &(struct account_options){.aggregate = 1}, 70000);
    run_random(&r, 70000, 50);
    account_finish(r.account, r.model->now_ns);
    compare_all(&r);
    compare_timeline(r.model);
    compare_peak_frame(r.model);
    assert_int_equal(query("SELECT count(*) FROM event_chunk"), 0);
    assert_int_equal(query("SELECT count(chunk_id) FROM keyframe"), 0);
    run_close(&r);
}

static void feed_pairs(struct run *r, uint64_t events)
{
    struct event pair[2] = {{.op = EVENT_ALLOC, .size_bytes = 10, .process_id = 1, .thread_id = 1, .stack_id = 1},
                            {.op = EVENT_FREE, .process_id = 1, .thread_id = 1}};
    for (uint64_t i = 0; i < events; i += 2) {
        pair[0].time_ns = pair[1].time_ns = i * 50;
        pair[0].address = pair[1].address = 0x1000 + i % 64 * 16;
        account_events(r->account, pair, 2);
    }
}

static void test_max_events(void **state)
{
    (void)state;
    struct run r;
    run_open(&r, &(struct account_options){.max_events = 150000}, 10);
    feed_pairs(&r, 1000000);
    account_finish(r.account, 50000000);
    int64_t kept = query("SELECT sum(event_count) FROM event_chunk"),
            first = query("SELECT min(first_event) FROM event_chunk");
    assert_true(kept >= 150000 && kept <= 150000 + 2 * (int64_t)CHUNK_EVENTS);
    assert_int_equal(first + kept, 1000000);
    /* where the events begin, there is a key frame, and none before */
    assert_int_equal(query("SELECT min(event_count) FROM keyframe WHERE reason='periodic'"), first);
    assert_int_equal(query("SELECT alloc_count FROM total WHERE kind='all'"), 500000);
    run_close(&r);
}

/* More combinations of device, hook and op than a chunk can name: chunks end early, nothing is lost. */
static void test_many_tuples(void **state)
{
    (void)state;
    enum { EVENTS = 100000 };
    struct run r;
    run_open(&r, &(struct account_options){0}, 10);
    for (uint64_t i = 0; i < EVENTS; i += 2) {
        struct event e = {.op = EVENT_ALLOC,
                          .time_ns = i,
                          .size_bytes = 10,
                          .process_id = 1,
                          .thread_id = 1,
                          .stack_id = 1,
                          .hook = (uint8_t)(i / 2 % 251),
                          .device = (uint8_t)(i / 2 % 7),
                          .address = 0x1000 + i * 16};
        account_events(r.account, &e, 1);
        e.op = EVENT_FREE;
        e.time_ns++;
        if (i % 10 == 0)
            account_events(r.account, &e, 1);
    }
    account_finish(r.account, EVENTS);
    uint64_t events = EVENTS / 2 + EVENTS / 10;
    assert_true(query("SELECT count(*) FROM event_chunk") > 100);
    assert_int_equal(query("SELECT sum(event_count) FROM event_chunk"), events);
    assert_int_equal(
        query("SELECT count(*) FROM event_chunk WHERE first_event <> (SELECT coalesce(sum(event_count), 0) "
              "FROM event_chunk c WHERE c.chunk_id < event_chunk.chunk_id)"),
        0);
    assert_int_equal(query("SELECT count(*) FROM keyframe JOIN event_chunk c USING(chunk_id) WHERE "
                           "keyframe.event_count NOT BETWEEN first_event AND first_event + c.event_count"),
                     0);
    assert_int_equal(query("SELECT count(DISTINCT chunk_id) > 1 FROM keyframe"), 1);
    assert_int_equal(query("SELECT sum(alloc_count) FROM total WHERE kind = 'all'"), EVENTS / 2);
    struct chunk_codec *codec = chunk_codec_open();
    uint64_t read = 0;
    sqlite3_stmt *q;
    assert_int_equal(
        sqlite3_prepare_v2(store_db(r.store), "SELECT data FROM event_chunk ORDER BY chunk_id", -1, &q, NULL),
        SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW) {
        const struct chunk_event *e;
        long n = chunk_decode_events(codec, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), &e);
        assert_true(n > 0);
        for (long i = 0; i < n; i++)
            read += e[i].op != CHUNK_alloc || e[i].hook == e[i].time_ns / 2 % 251;
    }
    sqlite3_finalize(q);
    chunk_codec_close(codec);
    assert_int_equal(read, events);
    run_close(&r);
}

static void test_aggregate_keyframes_are_bounded(void **state)
{
    (void)state;
    struct run r;
    run_open(&r, &(struct account_options){.aggregate = 1}, 10);
    /* 300 periodic ones would be due */
    feed_pairs(&r, 300ull * 16 * CHUNK_EVENTS / 8);
    int64_t few = query("SELECT count(*) FROM keyframe");
    assert_int_equal(few, 38);
    account_finish(r.account, 1);
    run_close(&r);
}

/* A sum of two peaks of the same height: the first one counts, with what was live then. */
static void test_first_of_equal_peaks(void **state)
{
    (void)state;
    struct run r;
    struct event e[] = {
        {.op = EVENT_ALLOC, .time_ns = 10, .address = 16, .size_bytes = 100, .stack_id = 1},
        {.op = EVENT_ALLOC, .time_ns = 11, .address = 32, .size_bytes = 0, .stack_id = 2},
        {.op = EVENT_FREE, .time_ns = 12, .address = 16},
        {.op = EVENT_ALLOC, .time_ns = 13, .address = 16, .size_bytes = 100, .stack_id = 3},
    };
    run_open(&r, &(struct account_options){0}, 10);
    for (unsigned i = 0; i < 4; i++)
        e[i].process_id = 1, e[i].thread_id = 1;
    account_events(r.account, e, 4);
    account_finish(r.account, 20);
    assert_int_equal(query("SELECT peak_active_ns FROM total WHERE kind='all'"), 10);
    assert_int_equal(query("SELECT peak_active_count FROM total WHERE kind='all'"), 1);
    assert_int_equal(query("SELECT at_peak_bytes FROM site WHERE stack_id=1"), 100);
    assert_int_equal(query("SELECT at_peak_count FROM site WHERE stack_id=2"), 0);
    assert_int_equal(query("SELECT at_peak_bytes FROM site WHERE stack_id=3"), 0);
    run_close(&r);
}

static void test_segments_and_reserved(void **state)
{
    (void)state;
    struct run r;
    struct event e[] = {
        {.op = EVENT_SEGMENT_ALLOC,
         .time_ns = 10,
         .address = 0x10000,
         .size_bytes = 0x4000,
         .stack_id = 7,
         .kind = KIND_heap},
        {.op = EVENT_ALLOC, .time_ns = 20, .address = 0x90000, .size_bytes = 0x1000, .kind = KIND_map, .stack_id = 1},
        {.op = EVENT_RESERVED, .time_ns = 30, .size_bytes = 500, .kind = KIND_heap},
        {.op = EVENT_SEGMENT_FREE, .time_ns = 40, .address = 0x11000, .size_bytes = 0x1000, .kind = KIND_heap},
        {.op = EVENT_FREE, .time_ns = 50, .address = 0x90000, .kind = KIND_map},
        {.op = EVENT_RESERVED, .time_ns = 60, .size_bytes = 300, .kind = KIND_heap},
        {.op = EVENT_RSS, .time_ns = 70, .size_bytes = 12345},
        {.op = EVENT_OOM, .time_ns = 80, .size_bytes = 1ull << 40, .address = 12, .stack_id = 9},
        {.op = EVENT_PROCESS_END, .time_ns = 90},
    };
    size_t n = sizeof e / sizeof *e;
    run_open(&r, &(struct account_options){0}, 10);
    for (size_t i = 0; i < n; i++)
        e[i].process_id = 1, e[i].thread_id = 1;
    account_events(r.account, e, n - 1);
    account_flush(r.account, 85);
    assert_int_equal(query("SELECT peak_reserved_bytes FROM total WHERE kind='all'"), 0x4000 + 0x1000 + 500);
    assert_int_equal(query("SELECT peak_reserved_ns FROM total WHERE kind='all'"), 30);
    assert_int_equal(query("SELECT peak_reserved_bytes FROM total WHERE kind='map'"), 0x1000);
    assert_int_equal(query("SELECT reserved_last_bytes FROM timeline ORDER BY time_ns DESC LIMIT 1"), 0x3000 + 300);
    assert_int_equal(query("SELECT rss_last_bytes FROM timeline ORDER BY time_ns DESC LIMIT 1"), 12345);
    assert_int_equal(query("SELECT count(*) FROM segment"), 3); /* the whole, and the two pieces that remain */
    assert_int_equal(query("SELECT sum(size_bytes) FROM segment WHERE free_ns IS NULL"), 0x3000);
    assert_int_equal(query("SELECT free_ns FROM segment WHERE size_bytes=%d", 0x4000), 40);
    assert_int_equal(query("SELECT size_bytes FROM oom"), 1ull << 40);
    assert_int_equal(query("SELECT count(*) FROM keyframe WHERE reason='oom'"), 1);
    account_events(r.account, &e[n - 1], 1);
    account_finish(r.account, 100000);
    assert_int_equal(query("SELECT reserved_last_bytes FROM timeline WHERE level=0 ORDER BY time_ns DESC LIMIT 1"), 0);
    assert_int_equal(query("SELECT rss_last_bytes FROM timeline WHERE level=0 ORDER BY time_ns DESC LIMIT 1"), 0);
    run_close(&r);
}

/* The largest blocks, those live at the end included. */
static void test_largest(void **state)
{
    (void)state;
    struct run r;
    run_open(&r, &(struct account_options){0}, 10);
    for (uint64_t i = 1; i <= 20000; i++) {
        struct event e[2] = {
            {.op = EVENT_ALLOC,
             .time_ns = i * 10,
             .address = i * 16,
             .size_bytes = i * 7919 % 20011,
             .process_id = 1,
             .thread_id = 1,
             .stack_id = 1},
            {.op = EVENT_FREE, .time_ns = i * 10 + 5, .address = i * 16, .process_id = 1, .thread_id = 1}};
        account_events(r.account, e, i % 3 ? 2 : 1);
    }
    struct event end = {.op = EVENT_PROCESS_END, .time_ns = 1000000, .process_id = 1, .thread_id = 1};
    account_events(r.account, &end, 1);
    account_finish(r.account, 1000000);
    assert_int_equal(query("SELECT count(*) FROM block"), 4096);
    /* sizes are i * 7919 mod 20011 for i up to 20000: all of 1..20010 but ten, each once */
    uint64_t missing = 0, least = 20010;
    char *seen = calloc(20011, 1);
    for (uint64_t i = 1; i <= 20000; i++)
        seen[i * 7919 % 20011] = 1;
    for (uint64_t found = 0; found < 4096; least--)
        seen[least] ? found++ : missing++;
    assert_int_equal(query("SELECT min(size_bytes) FROM block"), least + 1);
    assert_int_equal(query("SELECT count(DISTINCT size_bytes) FROM block"), 4096);
    assert_int_equal(query("SELECT count(*) FROM block WHERE free_ns IS NULL AND address / 16 %% 3 <> 0"), 0);
    assert_int_equal(query("SELECT count(*) FROM block WHERE free_ns IS NOT NULL AND address / 16 %% 3 = 0"), 0);
    free(seen);
    run_close(&r);
}

/* Ten allocations in ten seconds: a few hundred rows, peak and time exact in each level. */
static void test_quiet_timeline(void **state)
{
    (void)state;
    struct run r;
    run_open(&r, &(struct account_options){0}, 10);
    for (unsigned i = 1; i <= 10; i++) {
        struct event e = {.op = i == 8 ? EVENT_FREE : EVENT_ALLOC,
                          .time_ns = i * 1000000000ull + 77,
                          .address = i == 8 ? 16 : i * 16,
                          .size_bytes = i < 9 ? 100 : 10,
                          .process_id = 1,
                          .thread_id = 1,
                          .stack_id = 1};
        account_events(r.account, &e, 1);
    }
    account_finish(r.account, 11000000000);
    assert_true(query("SELECT count(*) FROM timeline") < 1100);
    assert_true(query("SELECT count(*) FROM timeline WHERE level=0") > 200);
    assert_int_equal(query("SELECT count(*) FROM timeline WHERE active_max_bytes=700 AND active_max_ns=7000000077"),
                     query("SELECT max(level) + 1 FROM timeline"));
    assert_int_equal(query("SELECT sum(alloc_count) FROM timeline WHERE level=0"), 9);
    assert_int_equal(query("SELECT max(time_ns + width_ns) >= 11000000000 FROM timeline WHERE level=0"), 1);
    assert_int_equal(query("SELECT count(*) FROM timeline WHERE level=0 AND time_ns %% width_ns"), 0);
    run_close(&r);
}

/* Whatever has been written when: every level is whole. */
static void test_levels_after_each_flush(void **state)
{
    (void)state;
    struct run r;
    run_open(&r, &(struct account_options){0}, 10);
    for (unsigned i = 1; i <= 3000; i++) {
        struct event e = {.op = EVENT_ALLOC,
                          .time_ns = i * 1024ull * (i > 2000 ? 40 : 1),
                          .address = i * 16,
                          .size_bytes = 1,
                          .process_id = 1,
                          .thread_id = 1};
        account_events(r.account, &e, 1);
        if (i % 23)
            continue;
        account_flush(r.account, e.time_ns);
        int64_t levels = query("SELECT max(level) FROM timeline");
        assert_int_equal(query("SELECT count(*) <= 64 FROM timeline WHERE level=%d", (int)levels), 1);
        for (int level = 0; level <= levels; level++) {
            assert_int_equal(query("SELECT sum(alloc_count) FROM timeline WHERE level=%d", level), i);
            assert_int_equal(query("SELECT max(active_max_bytes) FROM timeline WHERE level=%d", level), i);
            assert_int_equal(query("SELECT count(DISTINCT width_ns) FROM timeline WHERE level=%d", level), 1);
        }
    }
    run_close(&r);
}

static void test_end_keyframe(void **state)
{
    (void)state;
    struct run r;
    run_open(&r, &(struct account_options){0}, 10);
    for (unsigned i = 1; i <= 10; i++) {
        struct event e = {.op = EVENT_ALLOC,
                          .time_ns = i,
                          .address = i * 16,
                          .size_bytes = 100,
                          .process_id = 1 + i % 2,
                          .thread_id = 1,
                          .stack_id = i % 3};
        account_events(r.account, &e, 1);
    }
    for (unsigned i = 2; i; i--) {
        struct event e = {.op = EVENT_PROCESS_END, .time_ns = 100 - i, .process_id = (uint16_t)i, .thread_id = 1};
        account_events(r.account, &e, 1);
    }
    account_finish(r.account, 100);
    assert_int_equal(query("SELECT count(*) FROM keyframe WHERE reason='end'"), 1);
    assert_int_equal(query("SELECT time_ns FROM keyframe WHERE reason='end'"), 99); /* the last process's */
    assert_int_equal(query("SELECT sum(end_bytes) FROM site"), 1000);
    assert_int_equal(query("SELECT end_count FROM total WHERE kind='all'"), 10);
    run_close(&r);
}

static void feed(struct run *r, struct event *e, size_t count, unsigned device)
{
    for (size_t i = 0; i < count; i++) {
        e[i].process_id = e[i].thread_id = 1;
        e[i].device = (uint8_t)device;
        if (!e[i].kind)
            e[i].kind = device ? KIND_pool : KIND_heap;
    }
    account_events(r->account, e, count);
}

#define MS 1000000ull

/* Two blocks of a pool whose frees wait: allocated falls at the request, active at the end of the wait. */
static void test_free_requested(void **state)
{
    (void)state;
    struct run r;
    struct event e[] = {
        {.op = EVENT_ALLOC, .time_ns = 1 * MS, .address = 0x1000, .size_bytes = 700, .stack_id = 1},
        {.op = EVENT_ALLOC, .time_ns = 2 * MS, .address = 0x2000, .size_bytes = 300, .stack_id = 2},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 3 * MS, .address = 0x2000}, /* a temporary: asked for before the next */
        {.op = EVENT_FREE_REQUESTED, .time_ns = 4 * MS, .address = 0x1000},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 4 * MS, .address = 0x1000}, /* again: nothing */
        {.op = EVENT_FREE_REQUESTED, .time_ns = 4 * MS, .address = 0x9000}, /* of nothing */
        {.op = EVENT_ALLOC, .time_ns = 5 * MS, .address = 0x3000, .size_bytes = 50, .stack_id = 1},
        {.op = EVENT_FREE, .time_ns = 6 * MS, .address = 0x2000},
        {.op = EVENT_FREE, .time_ns = 7 * MS, .address = 0x1000},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 8 * MS, .address = 0x3000},
        {.op = EVENT_PROCESS_END, .time_ns = 9 * MS},
    };
    run_open(&r, &(struct account_options){0}, 10);
    feed(&r, e, sizeof e / sizeof *e, 1);
    account_finish(r.account, 12 * MS);
    /* active and allocated when so many milliseconds have passed */
    static const int64_t expected[][2] = {{0, 0},     {700, 700}, {1000, 1000}, {1000, 700}, {1000, 0},
                                          {1050, 50}, {750, 50},  {50, 50},     {50, 0},     {0, 0}};
    for (int i = 0; i < 10; i++) {
        static const char sql[] = "SELECT %s FROM timeline WHERE device_id=1 AND level=0 AND time_ns + width_ns <= %ld "
                                  "ORDER BY time_ns DESC LIMIT 1";
        if (i) {
            assert_int_equal(query(sql, "active_last_bytes", i * 1000000l + 500000), expected[i][0]);
            assert_int_equal(query(sql, "allocated_last_bytes", i * 1000000l + 500000), expected[i][1]);
        }
    }
    for (int64_t level = query("SELECT max(level) FROM timeline"); level >= 0; level--) {
        assert_int_equal(query("SELECT max(active_max_bytes) FROM timeline WHERE level=%d", (int)level), 1050);
        assert_int_equal(query("SELECT max(allocated_max_bytes) FROM timeline WHERE level=%d", (int)level), 1000);
    }
    assert_int_equal(query("SELECT peak_active_bytes FROM total WHERE device_id=1 AND kind='all'"), 1050);
    assert_int_equal(query("SELECT free_count FROM total WHERE device_id=1 AND kind='all'"), 2);
    assert_int_equal(query("SELECT temporary_count FROM site WHERE stack_id=2"), 1);
    assert_int_equal(query("SELECT temporary_count FROM site WHERE stack_id=1"), 0);
    assert_int_equal(query("SELECT lifetime_ns FROM site WHERE stack_id=2"), 4 * (int64_t)MS);
    assert_int_equal(query("SELECT end_bytes FROM site WHERE stack_id=1"), 50);
    /* 3 births, 3 requests, 2 frees, 1 end */
    assert_int_equal(query("SELECT sum(event_count) FROM event_chunk"), 9);
    run_close(&r);
}

/* What turns out to be an allocator's memory: counts as if it had never been a block, stays reserved, leaves active. */
static void test_to_segment(void **state)
{
    (void)state;
    struct run r;
    struct account_counts counts;
    struct event device[] = {
        {.op = EVENT_SEGMENT_ALLOC, .time_ns = 10, .address = 0x100000, .size_bytes = 4096, .kind = KIND_device},
        {.op = EVENT_ALLOC, .time_ns = 10, .address = 0x100000, .size_bytes = 4096, .kind = KIND_device, .stack_id = 1},
        {.op = EVENT_TO_SEGMENT, .time_ns = 20, .address = 0x100000, .kind = KIND_device},
        {.op = EVENT_TO_SEGMENT, .time_ns = 20, .address = 0x500000, .kind = KIND_device}, /* nothing there */
        {.op = EVENT_ALLOC, .time_ns = 30, .address = 0x100000, .size_bytes = 1000, .kind = KIND_sub, .stack_id = 2},
        {.op = EVENT_FREE, .time_ns = 40, .address = 0x100000, .kind = KIND_sub},
    };
    struct event snapshot[] = {
        /* without a segment of its own */
        {.op = EVENT_ALLOC, .time_ns = 50, .address = 0x200000, .size_bytes = 512, .stack_id = 3, .kind = KIND_device},
        {.op = EVENT_TO_SEGMENT, .time_ns = 60, .address = 0x200000, .kind = KIND_device}};
    struct event host[] = {
        {.op = EVENT_ALLOC, .time_ns = 100, .address = 0x7000010, .size_bytes = 10000, .stack_id = 4},
        {.op = EVENT_ALLOC, .time_ns = 100, .address = 0x8000000, .size_bytes = 65536, .kind = KIND_map, .stack_id = 5},
        {.op = EVENT_ALLOC, .time_ns = 100, .address = 0x9000000, .size_bytes = 9999, .stack_id = 6},
        {.op = EVENT_RESERVED, .time_ns = 100, .size_bytes = 20480},
        {.op = EVENT_TO_SEGMENT, .time_ns = 110, .address = 0x7000080},        /* behind a header */
        {.op = EVENT_TO_SEGMENT, .time_ns = 110, .address = 0x8009000},        /* deep within */
        {.op = EVENT_TO_SEGMENT, .time_ns = 110, .address = 0x9000000 + 9999}, /* just behind it */
        {.op = EVENT_FREE, .time_ns = 120, .address = 0x8000000, .kind = KIND_map},
        {.op = EVENT_FREE, .time_ns = 120, .address = 0x7000010},
        {.op = EVENT_FREE, .time_ns = 130, .address = 0x7000010}, /* a second time */
    };
    run_open(&r, &(struct account_options){0}, 10);
    feed(&r, device, sizeof device / sizeof *device, 1);
    account_flush(r.account, 41);
    assert_int_equal(query("SELECT reserved_last_bytes FROM timeline WHERE device_id=1 AND level=0"), 4096);
    assert_int_equal(query("SELECT active_last_bytes FROM timeline WHERE device_id=1 AND level=0"), 0);
    assert_int_equal(query("SELECT alloc_count FROM total WHERE device_id=1 AND kind='all'"), 1);
    assert_int_equal(query("SELECT alloc_bytes FROM total WHERE device_id=1 AND kind='all'"), 1000);
    assert_int_equal(query("SELECT free_count FROM total WHERE device_id=1 AND kind='all'"), 1);
    assert_int_equal(query("SELECT alloc_count + free_count + end_count FROM site WHERE stack_id=1"), 0);
    assert_int_equal(query("SELECT alloc_bytes + free_bytes FROM site WHERE stack_id=1"), 0);
    /* until the event its bytes were active */
    assert_int_equal(query("SELECT peak_active_bytes FROM total WHERE device_id=1 AND kind='all'"), 4096);
    assert_int_equal(query("SELECT at_peak_bytes FROM site WHERE stack_id=1"), 4096);
    feed(&r, snapshot, 2, 1);
    account_flush(r.account, 61);
    assert_int_equal(query("SELECT reserved_last_bytes FROM timeline WHERE device_id=1 AND level=0"), 4096 + 512);
    assert_int_equal(query("SELECT size_bytes FROM segment WHERE address=%d", 0x200000), 512);
    feed(&r, host, 7, 0);
    account_flush(r.account, 111);
    assert_int_equal(query("SELECT active_last_bytes FROM timeline WHERE device_id=0 AND level=0"), 9999);
    assert_int_equal(query("SELECT reserved_last_bytes FROM timeline WHERE device_id=0 AND level=0"), 20480 + 65536);
    assert_int_equal(query("SELECT peak_reserved_bytes FROM total WHERE device_id=0 AND kind='all'"), 20480 + 65536);
    feed(&r, host + 7, 3, 0);
    account_finish(r.account, 5000);
    account_counts(r.account, &counts);
    assert_int_equal(counts.unmatched_frees, 1);
    assert_int_equal(counts.live_blocks, 1);
    assert_int_equal(
        query("SELECT reserved_last_bytes FROM timeline WHERE device_id=0 AND level=0 ORDER BY time_ns DESC"), 20480);
    assert_int_equal(query("SELECT free_ns FROM segment WHERE address=%d", 0x8000000), 120);
    assert_int_equal(query("SELECT free_ns FROM segment WHERE address=%d", 0x7000010), 120);
    assert_int_equal(query("SELECT sum(alloc_count) FROM size_class WHERE device_id=0"), 1);
    /* replayed from the events, the same remains */
    struct held held[SITES + 1] = {0};
    rebuild((uint64_t)query("SELECT sum(event_count) FROM event_chunk"), held);
    for (int64_t id = 1; id <= query("SELECT max(site_id) FROM site"); id++)
        assert_int_equal(held[id].bytes, query("SELECT stack_id FROM site WHERE site_id=%d", (int)id) == 6 ? 9999 : 0);
    run_close(&r);
}

/* The driver's figures: a row for each change, with ours at that instant; the device's resident series. */
static void test_device_used(void **state)
{
    (void)state;
    struct run r;
    struct event e[] = {
        {.op = EVENT_SEGMENT_ALLOC, .time_ns = 10, .address = 0x1000, .size_bytes = 4096},
        {.op = EVENT_ALLOC, .time_ns = 10, .address = 0x1000, .size_bytes = 4000, .stack_id = 1},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 20, .address = 0x1000},
        {.op = EVENT_DEVICE_USED, .time_ns = 30, .size_bytes = 9000, .address = 1ull << 34},
        {.op = EVENT_DEVICE_USED, .time_ns = 40, .size_bytes = 9000, .address = 1ull << 34},
        {.op = EVENT_DEVICE_USED, .time_ns = 50, .size_bytes = 8000, .address = 1ull << 34},
        {.op = EVENT_DEVICE_USED, .time_ns = 60, .size_bytes = UINT64_MAX, .address = UINT64_MAX},
    };
    run_open(&r, &(struct account_options){0}, 10);
    feed(&r, e, sizeof e / sizeof *e, 1);
    account_finish(r.account, 5000);
    assert_int_equal(query("SELECT count(*) FROM device_sample"), 3);
    assert_int_equal(query("SELECT used_bytes - reserved_bytes FROM device_sample WHERE time_ns=30"), 9000 - 4096);
    assert_int_equal(query("SELECT reserved_bytes - active_bytes FROM device_sample WHERE time_ns=30"), 96);
    assert_int_equal(query("SELECT allocated_bytes FROM device_sample WHERE time_ns=30"), 0);
    assert_int_equal(query("SELECT total_bytes FROM device_sample WHERE time_ns=50"), 1ull << 34);
    assert_int_equal(query("SELECT rss_max_bytes > 9000 FROM timeline WHERE device_id=1 AND level=0"), 1);
    run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_flush_is_consistent),
        cmocka_unit_test(test_aggregate),
        cmocka_unit_test(test_max_events),
        cmocka_unit_test(test_many_tuples),
        cmocka_unit_test(test_aggregate_keyframes_are_bounded),
        cmocka_unit_test(test_first_of_equal_peaks),
        cmocka_unit_test(test_segments_and_reserved),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_levels_after_each_flush),
        cmocka_unit_test(test_end_keyframe),
        cmocka_unit_test(test_quiet_timeline),
        cmocka_unit_test(test_free_requested),
        cmocka_unit_test(test_to_segment),
        cmocka_unit_test(test_device_used),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
