/* The rows of the accounts themselves: totals, peaks, failed allocations. */
#include "account_private.h"

#include "../../common/error.h"

#include <stdlib.h>

#define PEAKS_MAX          16u /* local maxima beside the peak */
#define OOM_ROWS_MAX       10000u
#define UNMATCHED_ROWS_MAX 64u

static void bind_all(sqlite3_stmt *s, int first, const uint64_t *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sqlite3_bind_int64(s, first + (int)i, (int64_t)values[i]);
}

struct total {
    const struct level *level;
    const struct reserved *reserved;
    const struct top *top;
    struct histogram_sums sums;
    uint64_t temporary_bytes, realloc_count, end_bytes, end_count;
};

static void write_total(struct account *a, unsigned device, unsigned kind, const struct total *t)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO total(device_id, kind, alloc_count, free_count, alloc_bytes, free_bytes, "
        "temporary_count, temporary_bytes, peak_active_bytes, peak_active_ns, peak_active_count, peak_reserved_bytes, "
        "peak_reserved_ns, end_active_bytes, end_count, realloc_count, lifetime_ns) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    sqlite3_bind_int(s, 1, (int)device);
    sqlite3_bind_text(s, 2, kind_name(kind), -1, SQLITE_STATIC);
    const uint64_t values[] = {
        t->sums.alloc_count,  t->sums.free_count,   t->sums.alloc_bytes, t->sums.free_bytes,   t->sums.temporary_count,
        t->temporary_bytes,   t->level->peak_bytes, t->level->peak_ns,   t->level->peak_count, t->reserved->peak_bytes,
        t->reserved->peak_ns, t->end_bytes,         t->end_count,        t->realloc_count,     t->sums.lifetime_ns};
    bind_all(s, 3, values, sizeof values / sizeof *values);
    store_step(a->store, s);
}

static void write_peak(struct account *a, unsigned device, unsigned kind, const char *what, unsigned rank,
                       uint64_t time_ns, uint64_t value_bytes, uint32_t site_id)
{
    static const char sql[] = "INSERT OR REPLACE INTO peak(device_id, kind, what, rank, time_ns, value_bytes, site_id) "
                              "VALUES(?,?,?,?,?,?,?)";
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    sqlite3_bind_int(s, 1, (int)device);
    sqlite3_bind_text(s, 2, kind_name(kind), -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, what, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 4, (int)rank);
    sqlite3_bind_int64(s, 5, (int64_t)time_ns);
    sqlite3_bind_int64(s, 6, (int64_t)value_bytes);
    if (site_id)
        sqlite3_bind_int64(s, 7, site_id);
    else
        sqlite3_bind_null(s, 7);
    store_step(a->store, s);
}

static void write_kind(struct account *a, unsigned device, unsigned kind, const struct total *t)
{
    write_total(a, device, kind, t);
    if (t->level->peak_bytes)
        write_peak(a, device, kind, "active", 0, t->level->peak_ns, t->level->peak_bytes, t->top->site_id);
    if (t->reserved->peak_bytes)
        write_peak(a, device, kind, "reserved", 0, t->reserved->peak_ns, t->reserved->peak_bytes, 0);
}

static void add_sums(struct total *all, const struct total *t)
{
    all->sums.alloc_count += t->sums.alloc_count;
    all->sums.alloc_bytes += t->sums.alloc_bytes;
    all->sums.free_count += t->sums.free_count;
    all->sums.free_bytes += t->sums.free_bytes;
    all->sums.temporary_count += t->sums.temporary_count;
    all->sums.lifetime_ns += t->sums.lifetime_ns;
    all->temporary_bytes += t->temporary_bytes;
    all->realloc_count += t->realloc_count;
    all->end_bytes += t->end_bytes;
    all->end_count += t->end_count;
}

static void write_device(struct account *a, unsigned device, int last)
{
    struct device_account *d = a->devices[device];
    struct total all = {.level = &d->level, .reserved = &d->reserved, .top = &d->top};
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        const struct kind_account *k = d->kinds[kind];
        if (!k)
            continue;
        struct total t = {.level = &k->level,
                          .reserved = &k->reserved,
                          .top = &k->top,
                          .temporary_bytes = k->temporary_bytes,
                          .realloc_count = k->realloc_count,
                          .end_bytes = k->end_bytes + k->teardown_bytes,
                          .end_count = k->end_count + k->teardown_count};
        histogram_sum(&k->histogram, &t.sums);
        add_sums(&all, &t);
        write_kind(a, device, kind, &t);
        histogram_write(&k->histogram, a->store, device, kind);
    }
    write_kind(a, device, KIND_all, &all);
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    timeline_write(d->timeline, a->store, &a->timeline_rows, device, d->alloc_count, d->alloc_bytes, last);
    if (!last)
        return;
    struct timeline_peak peaks[PEAKS_MAX];
    unsigned count = timeline_peaks(d->timeline, peaks, PEAKS_MAX);
    for (unsigned i = 0; i < count; i++)
        write_peak(a, device, KIND_all, "active", i + 1, peaks[i].time_ns, peaks[i].value_bytes, 0);
}

static void write_all(struct account *a, int last)
{
    int peaks_moved = 0;
    account_chunk_partial(a);
    account_seal(a); /* and a new generation, so that what changes from now on is noticed */
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++) {
        struct device_account *d = a->devices[i];
        uint64_t epochs = 0;
        if (!d)
            continue;
        epochs = d->level.epoch;
        for (unsigned kind = 0; kind < KIND_COUNT; kind++)
            epochs += d->kinds[kind] ? d->kinds[kind]->level.epoch : 0;
        peaks_moved |= epochs != d->written_epochs;
        d->written_epochs = epochs;
    }
    sampled_write(&a->sampled, a->store);
    sites_write(&a->sites, a->store, a->devices, ACCOUNT_DEVICES, peaks_moved, last);
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++)
        if (a->devices[i])
            write_device(a, i, last);
    account_threads_write(a, peaks_moved);
    account_names_write(a);
    account_freed_write(a, last);
    account_teardown_write(a);
    account_started_write(a);
    if (last) {
        largest_write(&a->largest, a->store, &a->sites);
        account_touch_write(a);
    }
    account_chunk_stored(a);
}

void account_write(struct account *a, int last)
{
    write_all(a, last);
    if (last)
        keyframes_finish(a);
}

void account_write_end(struct account *a)
{
    write_all(a, 1);
}

static void oom_least(struct account *a)
{
    a->oom_least_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < a->oom_wait_count; i++)
        if (a->oom_waits[i].size_bytes < a->oom_least_bytes)
            a->oom_least_bytes = a->oom_waits[i].size_bytes;
}

/* Where there are too many sizes, those of processes that have ended make room; a failure without a place counts as
 * one that was never made good. */
static void oom_wait(struct account *a, uint64_t process_id, uint64_t size_bytes)
{
    struct oom_wait *w = NULL;
    for (uint32_t i = 0; i < a->oom_wait_count; i++) {
        if (a->oom_waits[i].process_id == process_id && a->oom_waits[i].size_bytes == size_bytes)
            return;
        if (!a->processes[a->oom_waits[i].process_id])
            w = &a->oom_waits[i];
    }
    if (a->oom_wait_count < ACCOUNT_OOM_WAITS)
        w = &a->oom_waits[a->oom_wait_count++];
    if (w)
        *w = (struct oom_wait){process_id, size_bytes, a->oom_rows};
    oom_least(a);
}

void account_unmatched(struct account *a, const struct event *e)
{
    static const char sql[] = "INSERT INTO unmatched_free(event_number, time_ns, device_id, process_id, "
                              "thread_id, address) VALUES(?,?,?,?,?,?)";
    a->counts.unmatched_frees++;
    sqlite3_stmt *s = a->unmatched_rows < UNMATCHED_ROWS_MAX ? store_statement(a->store, sql) : NULL;
    if (!s)
        return;
    a->unmatched_rows++;
    bind_all(
        s, 1,
        (uint64_t[]){a->event_count, a->now_ns, e->device, e->process_id, e->thread_id, e->address & LIVE_ADDRESS_MASK},
        6);
    store_step(a->store, s);
}

void account_oom_had(struct account *a, const struct event *e)
{
    static const char sql[] = "INSERT OR IGNORE INTO oom_had SELECT oom_id, ? FROM oom WHERE oom_id >= ? AND "
                              "process_id = ? AND size_bytes <= ? AND device_id = 0";
    uint64_t size = e->size_bytes < INT64_MAX ? e->size_bytes : INT64_MAX, first_row = UINT64_MAX;
    uint32_t left = 0;
    for (uint32_t i = 0; i < a->oom_wait_count && e->device == 0; i++) {
        const struct oom_wait *w = &a->oom_waits[i];
        if (w->process_id != e->process_id || w->size_bytes > size)
            a->oom_waits[left++] = *w;
        else if (w->first_row < first_row)
            first_row = w->first_row;
    }
    sqlite3_stmt *s = first_row != UINT64_MAX ? store_statement(a->store, sql) : NULL;
    if (!s)
        return;
    a->oom_wait_count = left;
    oom_least(a);
    bind_all(s, 1, (uint64_t[]){a->now_ns, first_row, e->process_id, size}, 4);
    store_step(a->store, s);
}

void account_oom(struct account *a, const struct event *e)
{
    static const char sql[] =
        "INSERT INTO oom(time_ns, device_id, kind, process_id, thread_id, size_bytes, active_bytes, "
        "stack_id, device_free_bytes, device_total_bytes, oom_id) VALUES(?,?,?,?,?,?,?,?,?,?,?)";
    struct device_account *d = account_device(a, e->device);
    account_kind(d, e->kind);
    uint64_t size = e->size_bytes < INT64_MAX ? e->size_bytes : INT64_MAX;
    uint32_t site_id = e->stack_id ? site_find(&a->sites, e->stack_id, e->process_id, e->device, e->kind) : 0;
    a->counts.unlisted_failures += a->oom_rows >= OOM_ROWS_MAX;
    sqlite3_stmt *s = a->oom_rows < OOM_ROWS_MAX ? store_statement(a->store, sql) : NULL;
    if (s) {
        a->oom_rows++;
        bind_all(s, 1, (uint64_t[]){a->now_ns, e->device}, 2);
        sqlite3_bind_text(s, 3, kind_name(e->kind), -1, SQLITE_STATIC);
        bind_all(s, 4, (uint64_t[]){e->process_id, e->thread_id, size, d->level.active_bytes}, 4);
        if (e->stack_id)
            sqlite3_bind_int64(s, 8, e->stack_id);
        else
            sqlite3_bind_null(s, 8);
        if (d->total_bytes && d->sample_ns == a->now_ns) { /* the figures that came with it */
            bind_all(s, 9, (uint64_t[]){d->total_bytes - d->used_bytes, d->total_bytes}, 2);
        } else {
            sqlite3_bind_null(s, 9);
            sqlite3_bind_null(s, 10);
        }
        bind_all(s, 11, &a->oom_rows, 1);
        store_step(a->store, s);
        if (e->device == 0)
            oom_wait(a, e->process_id, size);
    }
    account_keep(a, e, CHUNK_oom, e->address, size, site_id, e->device, e->kind, 0);
    keyframe_oom(a);
}
