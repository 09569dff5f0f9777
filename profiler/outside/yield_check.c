#include "yield_private.h"

#include "../../common/units.h"
#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Drivers whose lock is known to kill its target: NVIDIA/cuda-checkpoint issue 58. */
static const char *const bad_drivers[] = {"610.57.04"};

/* --- the process and its recording --- */

int yield_goes_on(int pid)
{
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN};
    if (p.fd < 0)
        return errno != ESRCH;
    const int has_ended = poll(&p, 1, 0) > 0;
    close(p.fd);
    return !has_ended;
}

int yield_find_holdings(struct yield *y, struct error *err)
{
    const struct yield_options *o = y->options;
    if (!y->recording)
        return 0;
    int rc = request_holdings(y->recording, o->what, o->pid, y->holdings, &y->holding_count, err);
    if (rc == 0 || !o->is_forced)
        return rc;
    y->holding_count = 0;
    return 0;
}

int yield_find(struct yield *y, struct error *err)
{
    const struct yield_options *o = y->options;
    struct error why = {""};
    if (!yield_goes_on(o->pid))
        return error_set(err, ESRCH, "%s: no such process", o->what);
    int rc = outside_open(o->what, &y->recording, &why);
    if (rc && o->is_forced)
        return 0;
    if (rc == -EACCES)
        return error_set(err, EACCES, "%s: another user's process, or one that may not be looked at", o->what);
    if (rc)
        return error_set(err, -rc, "%s; what it holds is not known: --force asks the driver all the same", why.text);
    if (outside_collector(y->recording) == o->pid)
        return error_set(err, EINVAL, "%s: the memprof that records; name the process that uses the GPU", o->what);
    return yield_find_holdings(y, err);
}

/* --- what it holds --- */

uint64_t yield_bytes(const struct yield *y)
{
    uint64_t recorded = 0, said = 0;
    for (uint32_t i = 0; i < y->holding_count; i++) {
        const struct wire_holding *h = &y->holdings[i];
        recorded += h->given_bytes > h->reserved_bytes ? h->given_bytes : h->reserved_bytes;
    }
    for (uint32_t i = 0; i < y->before.count; i++)
        if (y->before.gpu[i].process_bytes != CHECKPOINT_UNKNOWN)
            said += y->before.gpu[i].process_bytes;
    return recorded > said ? recorded : said;
}

/* 0: not known. */
static uint64_t available_bytes(void)
{
    unsigned long long kib = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && !kib && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
            kib = 0;
    if (file)
        fclose(file);
    return kib * 1024;
}

static int check_carried(const struct yield *y, struct error *err)
{
    char size[UNITS_TEXT];
    for (uint32_t i = 0; i < y->holding_count; i++) {
        const struct wire_holding *h = &y->holdings[i];
        if (h->managed_bytes)
            return error_set(err, ENOTSUP,
                             "%s: it has %s of managed memory on %s, which the driver's checkpoint does not carry: "
                             "nothing was done to it",
                             y->options->what, units_bytes(size, (int64_t)h->managed_bytes), h->name);
        if (h->foreign_bytes)
            return error_set(err, ENOTSUP,
                             "%s: it has %s of other processes' memory open (%s), which the driver's checkpoint does "
                             "not carry: nothing was done to it",
                             y->options->what, units_bytes(size, (int64_t)h->foreign_bytes), h->name);
        if (h->context_count > 1)
            return error_set(err, ENOTSUP,
                             "%s: it has %" PRIu64 " CUDA contexts on %s, which drivers were seen to crash at; --force "
                             "asks the driver all the same",
                             y->options->what, h->context_count, h->name);
    }
    return 0;
}

int yield_check_give(const struct yield *y, struct error *err)
{
    char need[UNITS_TEXT], have[UNITS_TEXT];
    const uint64_t bytes = yield_bytes(y), available = available_bytes();
    int rc = y->options->is_forced ? 0 : check_carried(y, err);
    if (rc || y->options->is_forced || !available || bytes <= available)
        return rc;
    return error_set(err, ENOMEM,
                     "%s: it has %s on GPUs, which would go to host memory, where %s are available: nothing was done "
                     "to it",
                     y->options->what, units_bytes(need, (int64_t)bytes), units_bytes(have, (int64_t)available));
}

int yield_check_driver(const struct yield *y, struct error *err)
{
    for (unsigned i = 0; i < sizeof bad_drivers / sizeof *bad_drivers; i++)
        if (!strcmp(y->before.driver, bad_drivers[i]) && !y->options->is_forced)
            return error_set(err, ENOTSUP,
                             "%s: driver %s is known to crash programs whose GPUs it is to give back; --force asks it "
                             "all the same",
                             y->options->what, bad_drivers[i]);
    return 0;
}

/* --- room --- */

const struct checkpoint_gpu *yield_gpu_of(const struct checkpoint_gpus *gpus, const uint64_t uuid[2])
{
    for (uint32_t i = 0; i < gpus->count; i++)
        if (!memcmp(gpus->gpu[i].uuid, uuid, sizeof gpus->gpu[i].uuid))
            return &gpus->gpu[i];
    return NULL;
}

/* Where nobody said what was given back, at least what is recorded has to come home. */
static uint64_t needed_bytes(const struct wire_holding *h)
{
    return h->given_bytes ? h->given_bytes : h->reserved_bytes;
}

int yield_check_room(const struct yield *y, const struct checkpoint_gpus *now, struct error *err)
{
    char need[UNITS_TEXT], have[UNITS_TEXT];
    const char *what = y->options->what;
    for (uint32_t i = 0; i < y->holding_count && !y->options->is_forced; i++) {
        const struct wire_holding *h = &y->holdings[i];
        const struct checkpoint_gpu *gpu = yield_gpu_of(now, h->uuid);
        const uint64_t bytes = needed_bytes(h);
        if (!bytes)
            continue;
        if (!gpu)
            return error_set(err, ENODATA,
                             "%s: how much of %s is free is not known, as NVML does not say; a restore without room "
                             "leaves it stuck for ever; --force tries it",
                             what, h->name);
        if (bytes > gpu->free_bytes)
            return error_set(err, ENOSPC, "%s: it needs %s of %s, where %s are free", what,
                             units_bytes(need, (int64_t)bytes), h->name, units_bytes(have, (int64_t)gpu->free_bytes));
    }
    return 0;
}

/* --- rows --- */

static void fill_held(const struct wire_holding *h, struct yield_result *result)
{
    struct yield_gpu *gpu = &result->gpu[result->gpu_count++];
    *gpu = (struct yield_gpu){.is_known = h->given_bytes != 0,
                              .given_bytes = h->given_bytes,
                              .reserved_bytes = h->reserved_bytes,
                              .managed_bytes = h->managed_bytes,
                              .foreign_bytes = h->foreign_bytes};
    snprintf(gpu->name, sizeof gpu->name, "%s", h->name);
}

void yield_fill_held(const struct yield *y, struct yield_result *result)
{
    result->gpu_count = 0;
    for (uint32_t i = 0; i < y->holding_count && result->gpu_count < YIELD_GPUS; i++)
        fill_held(&y->holdings[i], result);
}

/* Of the process where NVML tells processes apart, else of the whole GPU, which others use, too. */
static uint64_t difference(const struct checkpoint_gpu *before, const struct checkpoint_gpu *after)
{
    const int by_process = before->process_bytes != CHECKPOINT_UNKNOWN && after->process_bytes != CHECKPOINT_UNKNOWN;
    const uint64_t from = by_process ? before->process_bytes : after->free_bytes,
                   to = by_process ? after->process_bytes : before->free_bytes;
    return from > to ? from - to : 0;
}

static const struct wire_holding *holding_of(const struct yield *y, const uint64_t uuid[2])
{
    for (uint32_t i = 0; i < y->holding_count; i++)
        if (!memcmp(y->holdings[i].uuid, uuid, sizeof y->holdings[i].uuid) && y->holdings[i].reserved_bytes)
            return &y->holdings[i];
    return NULL;
}

void yield_fill(const struct yield *y, const struct checkpoint_gpus *after, struct yield_result *result)
{
    result->gpu_count = 0;
    for (uint32_t i = 0; i < y->before.count && result->gpu_count < YIELD_GPUS; i++) {
        const struct checkpoint_gpu *from = &y->before.gpu[i], *to = yield_gpu_of(after, from->uuid);
        const struct wire_holding *h = holding_of(y, from->uuid);
        const uint64_t bytes = to ? difference(from, to) : 0;
        if (!bytes && !h)
            continue;
        struct yield_gpu *gpu = &result->gpu[result->gpu_count++];
        *gpu = (struct yield_gpu){
            .is_known = to != NULL, .given_bytes = bytes, .reserved_bytes = h ? h->reserved_bytes : 0};
        if (h)
            snprintf(gpu->name, sizeof gpu->name, "%s", h->name);
        else
            snprintf(gpu->name, sizeof gpu->name, "GPU %u", from->index);
        memcpy(gpu->uuid, from->uuid, sizeof gpu->uuid);
    }
    for (uint32_t i = 0; i < y->holding_count && result->gpu_count < YIELD_GPUS; i++)
        if (y->holdings[i].reserved_bytes && !yield_gpu_of(&y->before, y->holdings[i].uuid))
            fill_held(&y->holdings[i], result);
}
