/* Figures of devices for those who ask while the program runs. The hot path does one comparison for them: with
 * watch_bytes, which only an event that may be a new peak of an epoch or of a sum exceeds. As long as nobody began an
 * epoch and there is one device, that is none: the run's peaks are the figures. */
#include "account_figures.h"

#include "account_private.h"

#include <string.h>

/* A type's devices; 0: all that are ours. */
static int is_of(const struct account *a, unsigned device, unsigned type)
{
    const struct watched *w = &a->watch.devices[device];
    return a->devices[device] && (type ? w->type == type : !w->is_foreign);
}

struct sum {
    uint64_t active_bytes, reserved_bytes;
};

static struct sum sum_of(const struct account *a, unsigned type)
{
    struct sum sum = {0, 0};
    for (unsigned i = 0; i < a->watch.device_end; i++)
        if (is_of(a, i, type)) {
            sum.active_bytes += a->devices[i]->level.active_bytes;
            sum.reserved_bytes += a->devices[i]->reserved.bytes;
        }
    return sum;
}

static void raise_peaks(struct watched_peaks *p, const struct sum *now)
{
    p->active_bytes = now->active_bytes > p->active_bytes ? now->active_bytes : p->active_bytes;
    p->reserved_bytes = now->reserved_bytes > p->reserved_bytes ? now->reserved_bytes : p->reserved_bytes;
}

static void raise_run(struct account *a, unsigned type, const struct sum *now)
{
    struct account_peaks *p = &a->watch.run[type];
    if (now->active_bytes > p->active_bytes) {
        p->active_bytes = now->active_bytes;
        p->active_ns = a->now_ns;
    }
    if (now->reserved_bytes > p->reserved_bytes) {
        p->reserved_bytes = now->reserved_bytes;
        p->reserved_ns = a->now_ns;
    }
}

struct account_peaks account_type_peaks(const struct account *a, unsigned type)
{
    return a->watch.run[type % ACCOUNT_TYPES];
}

/* The host's next level that has to be looked at: other devices' allocations all are. */
static void set_host_watch(struct account *a)
{
    const struct device_account *host = a->devices[0];
    uint64_t others = sum_of(a, 0).active_bytes - host->level.active_bytes;
    uint64_t of_all = a->watch.types[0].active_bytes - others, own = a->watch.devices[0].peaks.active_bytes;
    a->devices[0]->watch_bytes = of_all < own ? of_all : own;
}

void account_watch(struct account *a, struct device_account *d)
{
    struct watched *w = &a->watch.devices[d->id];
    raise_peaks(&w->peaks, &(struct sum){d->level.active_bytes, d->reserved.bytes});
    for (unsigned type = 0; type < ACCOUNT_TYPES; type++)
        if (is_of(a, d->id, type)) {
            struct sum now = sum_of(a, type);
            raise_peaks(&a->watch.types[type], &now);
            raise_run(a, type, &now);
        }
    set_host_watch(a);
}

/* From the first epoch or the second device on. */
static void begin(struct account *a)
{
    const struct device_account *host = a->devices[0];
    const struct sum peaks = {host->level.peak_bytes, host->reserved.peak_bytes};
    a->watch.is_on = 1;
    raise_peaks(&a->watch.devices[0].peaks, &peaks);
    raise_peaks(&a->watch.types[0], &peaks);
    set_host_watch(a);
}

void account_watch_device(struct account *a, unsigned device)
{
    struct device_account *d = a->devices[device];
    d->id = device;
    d->watch_bytes = device ? 0 : UINT64_MAX;
    if (device >= a->watch.device_end)
        a->watch.device_end = device + 1;
    if (device && !a->watch.is_on)
        begin(a);
}

static void count_all(const struct device_account *d, struct histogram_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        struct histogram_sums of_kind = {0};
        if (!d->kinds[kind])
            continue;
        histogram_sum(&d->kinds[kind]->histogram, &of_kind);
        sums->alloc_count += of_kind.alloc_count;
        sums->alloc_bytes += of_kind.alloc_bytes;
        sums->free_count += of_kind.free_count;
        sums->free_bytes += of_kind.free_bytes;
    }
}

/* The sums of what is counted from 0 again are taken off what the epoch began with, which may so be below 0. */
static void carry(struct account *a, unsigned device)
{
    struct histogram_sums *base = &a->watch.devices[device].base, sums;
    count_all(a->devices[device], &sums);
    base->alloc_count -= sums.alloc_count;
    base->alloc_bytes -= sums.alloc_bytes;
    base->free_count -= sums.free_count;
    base->free_bytes -= sums.free_bytes;
}

void account_figures_anew(struct account *a)
{
    if (!a->watch.is_on)
        begin(a);
    for (unsigned i = 0; i < a->watch.device_end; i++)
        if (a->devices[i])
            carry(a, i);
    for (unsigned type = 0; type < ACCOUNT_TYPES; type++) {
        a->watch.run[type] = (struct account_peaks){0};
        struct sum now = sum_of(a, type);
        raise_run(a, type, &now);
    }
}

void account_set_type(struct account *a, unsigned device, unsigned type, int is_ours)
{
    struct watched *w = &a->watch.devices[device % ACCOUNT_DEVICES];
    w->type = (uint8_t)(type < ACCOUNT_TYPES ? type : 0);
    w->is_foreign = !is_ours;
}

/* --- the figures --- */

static void add_thread(const struct account *a, unsigned device, uint32_t thread_id, struct account_figures *f)
{
    const struct thread_account *thread = thread_id < a->thread_capacity ? a->threads[thread_id] : NULL;
    for (const struct thread_device *d = thread && thread_id ? thread->devices : NULL; d; d = d->next)
        for (unsigned kind = 0; d->device == device && kind < KIND_COUNT; kind++) {
            const struct thread_tally *k = d->kinds[kind];
            if (!k)
                continue;
            const struct tally *t = &k->tally;
            const struct tally_rare *r = &k->rare;
            f->thread_active_bytes += tally_live_bytes(t);
            f->thread_active_count += tally_live_count(t);
            f->thread_alloc_count += k->before_alloc_count + t->alloc_count - r->moved_count - r->start_count;
            f->thread_alloc_bytes += k->before_alloc_bytes + t->alloc_bytes - r->moved_bytes - r->start_bytes;
            f->thread_free_count += k->before_free_count + t->left_count - r->end_count - r->moved_count;
            f->thread_free_bytes += k->before_free_bytes + t->left_bytes - r->end_bytes - r->moved_bytes;
        }
}

static void add_device(const struct account *a, unsigned device, uint32_t thread_id, struct account_figures *f)
{
    const struct device_account *d = a->devices[device];
    const struct histogram_sums *base = &a->watch.devices[device].base;
    struct histogram_sums sums;
    count_all(d, &sums);
    f->active_bytes += d->level.active_bytes;
    f->active_count += d->level.active_count;
    f->allocated_bytes += d->level.active_bytes - d->pending_bytes;
    f->reserved_bytes += d->reserved.bytes;
    f->used_bytes += device ? d->used_bytes : d->rss_bytes;
    f->total_bytes += d->total_bytes;
    f->alloc_count += sums.alloc_count - base->alloc_count;
    f->alloc_bytes += sums.alloc_bytes - base->alloc_bytes;
    f->free_count += sums.free_count - base->free_count;
    f->free_bytes += sums.free_bytes - base->free_bytes;
    add_thread(a, device, thread_id, f);
}

static void set_peaks(const struct account *a, const struct watched_peaks *watched, struct account_figures *f)
{
    const struct device_account *host = a->devices[0];
    f->peak_active_bytes = a->watch.is_on ? watched->active_bytes : host->level.peak_bytes;
    f->peak_reserved_bytes = a->watch.is_on ? watched->reserved_bytes : host->reserved.peak_bytes;
}

void account_figures_device(const struct account *a, unsigned device, uint32_t thread_id, struct account_figures *f)
{
    *f = (struct account_figures){.time_ns = a->now_ns, .epoch = a->watch.epoch};
    if (device >= ACCOUNT_DEVICES || !a->devices[device])
        return;
    add_device(a, device, thread_id, f);
    set_peaks(a, &a->watch.devices[device].peaks, f);
}

void account_figures_type(const struct account *a, unsigned type, uint32_t thread_id, struct account_figures *f)
{
    unsigned count = 0;
    *f = (struct account_figures){.time_ns = a->now_ns, .epoch = a->watch.epoch};
    for (unsigned i = 0; i < a->watch.device_end; i++)
        if (is_of(a, i, type)) {
            add_device(a, i, thread_id, f);
            count++;
        }
    if (count)
        set_peaks(a, &a->watch.types[type], f);
}

void account_epoch(struct account *a, uint64_t time_ns)
{
    a->now_ns = time_ns > a->now_ns ? time_ns : a->now_ns;
    a->watch.epoch++;
    for (unsigned i = 0; i < a->watch.device_end; i++) {
        const struct device_account *d = a->devices[i];
        struct watched *w = &a->watch.devices[i];
        if (!d)
            continue;
        w->peaks = (struct watched_peaks){d->level.active_bytes, d->reserved.bytes};
        count_all(d, &w->base);
    }
    for (unsigned type = 0; type < ACCOUNT_TYPES; type++) {
        struct sum now = sum_of(a, type);
        a->watch.types[type] = (struct watched_peaks){now.active_bytes, now.reserved_bytes};
    }
    a->watch.is_on = 1;
    set_host_watch(a);
}
