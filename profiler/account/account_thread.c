#include "account_private.h"

#include "../../common/array.h"

#include <stdlib.h>
#include <string.h>

static struct thread_account *thread_add(struct account *a, uint32_t thread_id)
{
    ARRAY_ROOM_ZERO(a->threads, thread_id + 1ul, a->thread_capacity);
    if (!a->threads[thread_id])
        a->threads[thread_id] = xcalloc(1, sizeof **a->threads);
    return a->threads[thread_id];
}

struct thread_device *account_thread_device(struct account *a, uint32_t thread_id, unsigned device)
{
    struct thread_account *t = thread_add(a, thread_id);
    for (struct thread_device *d = t->devices; d; d = d->next)
        if (d->device == device)
            return d;
    struct thread_device *d = xcalloc(1, sizeof *d);
    d->device = (uint8_t)device;
    d->next = t->devices;
    t->devices = d;
    return d;
}

struct tally *account_thread_tally(struct thread_device *t, unsigned kind)
{
    if (!t->kinds[kind]) {
        t->kinds[kind] = xcalloc(1, sizeof *t->kinds[kind]);
        t->kinds[kind]->tally.rare = &t->kinds[kind]->rare;
    }
    return &t->kinds[kind]->tally;
}

void account_thread_touch(struct account *a, uint32_t thread_id, struct thread_device *t, unsigned kind)
{
    const struct device_account *d = a->devices[t->device];
    tally_save(&t->kinds[kind]->tally, d, d->kinds[kind]);
    if (t->kinds[kind]->chunk_id != a->chunk_id)
        account_chunk_touch_thread(a, thread_id, t, kind);
    account_thread_dirty(a, thread_id);
}

void account_thread_dirty(struct account *a, uint32_t thread_id)
{
    struct thread_account *t = a->threads[thread_id];
    if (t->dirty)
        return;
    t->dirty = 1;
    *ARRAY_ADD(a->dirty_threads, a->dirty_thread_count, a->dirty_thread_capacity) = thread_id;
}

/* t: a kind's tally, or the sums of several. */
static void write_row(struct account *a, uint32_t thread_id, unsigned device, const char *kind, const struct tally *t,
                      const struct tally_peaks *p)
{
    static const char sql[] = "INSERT OR REPLACE INTO account(scope, key_id, inclusive, device_id, kind"
#define STAT(column, of_tally) ", " #column
#include "tally.def"
#undef STAT
                              ") VALUES('thread', ?, 0, ?, ?"
#define STAT(column, of_tally) ", ?"
#include "tally.def"
#undef STAT
                              ")";
    int at = 4;
    const struct tally_rare *r = tally_rare(t);
    sqlite3_stmt *q = store_statement(a->store, sql);
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, thread_id);
    sqlite3_bind_int64(q, 2, device);
    sqlite3_bind_text(q, 3, kind, -1, SQLITE_STATIC);
#define STAT(column, of_tally) sqlite3_bind_int64(q, at++, (int64_t)(of_tally));
#include "tally.def"
#undef STAT
    store_step(a->store, q);
}

static void add(struct tally *sum, const struct tally *t)
{
#define SUM(field) sum->field += t->field
#define MAX(field) sum->field = sum->field > t->field ? sum->field : t->field
    SUM(alloc_count);
    SUM(alloc_bytes);
    SUM(left_count);
    SUM(left_bytes);
    SUM(lifetime_ns);
    SUM(temporary_count);
    SUM(temporary_bytes);
    SUM(rare->end_bytes);
    SUM(rare->end_count);
    SUM(rare->teardown_bytes);
    SUM(rare->teardown_count);
    SUM(rare->moved_bytes);
    SUM(rare->moved_count);
    SUM(rare->start_bytes);
    SUM(rare->start_count);
    MAX(active_peak_bytes);
    MAX(reserved_peak_bytes);
    MAX(largest_bytes);
#undef SUM
#undef MAX
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void write_device(struct account *a, uint32_t thread_id, const struct thread_device *t, int force)
{
    const struct device_account *d = a->devices[t->device];
    struct tally_rare rare = {0};
    struct tally sum = {.own_peak_bytes = larger(t->own_peak_bytes, t->peak_bytes), .rare = &rare};
    struct tally_peaks sum_peaks = {0};
    int changed = force;
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        struct thread_tally *of_kind = t->kinds[kind];
        if (!of_kind)
            continue;
        struct tally *k = &of_kind->tally;
        struct tally_peaks peaks = tally_peaks(k, d, d->kinds[kind]);
        add(&sum, k);
        sum_peaks.bytes += peaks.bytes;
        sum_peaks.count += peaks.count;
        if (force || tally_peaks_moved(k, &peaks)) {
            changed = 1;
            struct tally whole = *k;
            whole.own_peak_bytes = larger(k->own_peak_bytes, of_kind->peak_bytes);
            k->written = peaks;
            write_row(a, thread_id, t->device, kind_name(kind), &whole, &peaks);
        }
    }
    sum_peaks.kind_bytes = sum_peaks.bytes; /* the peak of kind 'all' is the device's */
    if (changed)
        write_row(a, thread_id, t->device, kind_name(KIND_all), &sum, &sum_peaks);
}

static void write_thread(struct account *a, uint32_t thread_id)
{
    struct thread_account *t = a->threads[thread_id];
    for (const struct thread_device *d = t->devices; d; d = d->next)
        write_device(a, thread_id, d, t->dirty != 0);
    t->dirty = 0;
}

void account_threads_write(struct account *a, int peaks_moved)
{
    if (peaks_moved) {
        for (uint32_t i = 0; i < a->thread_capacity; i++)
            if (a->threads[i])
                write_thread(a, i);
    } else {
        for (uint32_t i = 0; i < a->dirty_thread_count; i++)
            write_thread(a, a->dirty_threads[i]);
    }
    a->dirty_thread_count = 0;
}

void account_forget_last(struct account *a)
{
    for (uint32_t i = 0; i < a->thread_capacity; i++)
        if (a->threads[i])
            a->threads[i]->last_key = 0;
}

void account_threads_close(struct account *a)
{
    for (uint32_t i = 0; i < a->thread_capacity; i++) {
        struct thread_account *t = a->threads[i];
        for (struct thread_device *d = t ? t->devices : NULL, *next; d; d = next) {
            next = d->next;
            for (unsigned kind = 0; kind < KIND_COUNT; kind++)
                free(d->kinds[kind]);
            free(d);
        }
        free(t);
    }
    free(a->threads);
    free(a->dirty_threads);
}
