/* The accounts and what they are of: made when it is first met, and gone at the end. */
#include "account.h"
#include "account_private.h"
#include "segment.h"

#include "../../common/error.h"

#include <stdlib.h>

struct account *account_open(struct store *store, const struct account_options *options)
{
    struct account *a = xcalloc(1, sizeof *a);
    a->store = store;
    a->options = *options;
    a->sampled.mean_bytes = options->sample_bytes;
    a->oom_least_bytes = UINT64_MAX;
    a->worker = a->sites.worker = worker_open();
    largest_open(&a->largest);
    for (unsigned i = 0; i < ACCOUNT_LANES; i++)
        a->lanes[i].key = ACCOUNT_NO_LANE;
    account_chunk_open(a);
    keyframes_open(a);
    account_device(a, 0);
    keyframe_chunk_begins(a); /* nothing is live before the first event */
    return a;
}

void account_close(struct account *a)
{
    if (!a)
        return;
    for (unsigned i = 0; i < ACCOUNT_PROCESSES; i++) {
        struct process_account *p = a->processes[i];
        for (struct process_device *d = p ? p->devices : NULL, *next; d; d = next) {
            next = d->next;
            segments_close(d->segments);
            map_close(&d->heaps);
            free(d);
        }
        live_close(p ? p->live : NULL);
        if (p)
            account_parts_close(p);
        free(p);
    }
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++) {
        struct device_account *d = a->devices[i];
        for (unsigned kind = 0; d && kind < KIND_COUNT; kind++)
            free(d->kinds[kind]);
        timeline_close(d ? d->timeline : NULL);
        free(d);
    }
    account_threads_close(a);
    sites_close(&a->sites);
    free(a->started.sites);
    sampled_close(&a->sampled);
    largest_close(&a->largest);
    touches_close(&a->touches);
    account_freed_close(a);
    names_close(&a->names);
    keyframes_close(a);
    account_chunk_close(a);
    worker_close(a->worker);
    free(a);
}

struct device_account *account_device(struct account *a, unsigned device)
{
    if (!a->devices[device]) {
        struct device_account *d = a->devices[device] = xcalloc(1, sizeof *d);
        d->generation = 1;
        d->level.epoch = 1;
        d->timeline = timeline_open();
        account_watch_device(a, device);
    }
    return a->devices[device];
}

struct kind_account *account_kind(struct device_account *d, unsigned kind)
{
    if (__builtin_expect(!d->kinds[kind], 0)) {
        d->kinds[kind] = xcalloc(1, sizeof *d->kinds[kind]);
        d->kinds[kind]->level.epoch = 1;
    }
    return d->kinds[kind];
}

struct process_account *account_process(struct account *a, unsigned process_id)
{
    if (!a->processes[process_id]) {
        a->processes[process_id] = xcalloc(1, sizeof *a->processes[process_id]);
        a->processes[process_id]->live = live_open(a->worker);
        a->processes[process_id]->first_site = a->sites.count ? a->sites.count : 1;
    }
    return a->processes[process_id];
}

struct process_device *account_process_device(struct account *a, unsigned process_id, unsigned device)
{
    struct process_account *p = account_process(a, process_id);
    for (struct process_device *d = p->devices; d; d = d->next)
        if (d->device == device)
            return d;
    struct process_device *d = xcalloc(1, sizeof *d);
    d->device = (uint8_t)device;
    d->next = p->devices;
    p->devices = d;
    return d;
}

void account_seal(struct account *a)
{
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++) {
        struct device_account *d = a->devices[i];
        if (!d)
            continue;
        level_seal(&d->level);
        for (unsigned kind = 0; kind < KIND_COUNT; kind++)
            if (d->kinds[kind])
                level_seal(&d->kinds[kind]->level);
        d->generation++;
    }
}
