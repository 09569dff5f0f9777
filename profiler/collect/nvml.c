#include "nvml.h"

#include "../store/device_row.h"

#include "../../common/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STOP_WAIT_NS 100000000u

/* As nvml.h of CUDA 11 to 13 has them. */
struct memory_info {
    unsigned long long total, free, used;
};
struct api {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*memory)(void *device, struct memory_info *info);
};

struct watched {
    char uuid[64];     /* written before state is set */
    uint32_t state;    /* WATCH_*; by us, then by the thread */
    void *handle;      /* thread only */
    uint64_t sequence; /* odd while the thread writes the two below */
    uint64_t total_bytes, used_bytes;
};
enum { WATCH_NOT, WATCH_ASKED, WATCH_FOUND, WATCH_FAILED };

struct nvml {
    pthread_t thread;
    pthread_mutex_t lock; /* of stop */
    pthread_cond_t wake;
    int stop;
    uint64_t interval_ns;
    struct watched watched[DEVICE_ROWS];
};

/* --- the thread --- */

static int api_open(struct api *api)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return -1;
    *(void **)&api->init = dlsym(library, "nvmlInit_v2");
    *(void **)&api->shutdown = dlsym(library, "nvmlShutdown");
    *(void **)&api->by_uuid = dlsym(library, "nvmlDeviceGetHandleByUUID");
    *(void **)&api->memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    return api->init && api->shutdown && api->by_uuid && api->memory && api->init() == 0 ? 0 : -1;
}

static void sample(const struct api *api, struct watched *w)
{
    struct memory_info info = {0};
    uint32_t state = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE);
    if (state == WATCH_ASKED) {
        state = api->by_uuid(w->uuid, &w->handle) == 0 ? WATCH_FOUND : WATCH_FAILED;
        __atomic_store_n(&w->state, state, __ATOMIC_RELAXED);
    }
    if (state != WATCH_FOUND || api->memory(w->handle, &info) != 0 || info.used > info.total)
        return;
    __atomic_store_n(&w->sequence, w->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&w->total_bytes, info.total, __ATOMIC_RELAXED);
    __atomic_store_n(&w->used_bytes, info.used, __ATOMIC_RELAXED);
    __atomic_store_n(&w->sequence, w->sequence + 1, __ATOMIC_RELEASE);
}

/* Returns whether it is over. */
static int pause_a_while(struct nvml *n)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + n->interval_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&n->lock);
    while (!n->stop && pthread_cond_timedwait(&n->wake, &n->lock, &until) == 0)
        ;
    int stop = n->stop;
    pthread_mutex_unlock(&n->lock);
    return stop;
}

static void *work(void *arg)
{
    struct nvml *n = arg;
    struct api api;
    if (api_open(&api))
        return NULL;
    do
        for (unsigned i = 1; i < DEVICE_ROWS; i++)
            sample(&api, &n->watched[i]);
    while (!pause_a_while(n));
    api.shutdown();
    return NULL;
}

/* --- the collector's side --- */

struct nvml *nvml_start(uint64_t interval_ns)
{
    struct nvml *n = xcalloc(1, sizeof *n);
    pthread_condattr_t monotonic;
    n->interval_ns = interval_ns;
    pthread_mutex_init(&n->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&n->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&n->thread, NULL, work, n) == 0)
        return n;
    free(n);
    return NULL;
}

void nvml_watch(struct nvml *n, unsigned device_id, const char *uuid)
{
    struct watched *w = &n->watched[device_id % DEVICE_ROWS];
    if (__atomic_load_n(&w->state, __ATOMIC_RELAXED) != WATCH_NOT)
        return;
    snprintf(w->uuid, sizeof w->uuid, "%s", uuid);
    __atomic_store_n(&w->state, WATCH_ASKED, __ATOMIC_RELEASE);
}

void nvml_read(const struct nvml *n, unsigned device_id, struct nvml_figures *figures)
{
    const struct watched *w = &n->watched[device_id % DEVICE_ROWS];
    uint64_t before, after;
    do {
        before = __atomic_load_n(&w->sequence, __ATOMIC_ACQUIRE);
        figures->total_bytes = __atomic_load_n(&w->total_bytes, __ATOMIC_RELAXED);
        figures->used_bytes = __atomic_load_n(&w->used_bytes, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        after = __atomic_load_n(&w->sequence, __ATOMIC_RELAXED);
    } while (before != after || before & 1);
    figures->count = before / 2;
}

void nvml_stop(struct nvml *n)
{
    struct timespec until;
    if (!n)
        return;
    pthread_mutex_lock(&n->lock);
    n->stop = 1;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += STOP_WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_timedjoin_np(n->thread, NULL, &until) == 0)
        free(n);
}
