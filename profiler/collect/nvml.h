/*
 * nvml.h: what NVIDIA's management library says of the devices in use, sampled by a thread of its own, so that a
 * library that hangs stalls nothing. The library is opened at the first device; without it there are no figures.
 */
#ifndef MEMPROF_NVML_H
#define MEMPROF_NVML_H

#include <stdint.h>

struct nvml;

struct nvml_figures {
    uint64_t total_bytes, used_bytes;
    uint64_t count; /* samples so far; 0: none */
};

/* NULL: no thread to be had. Samples come every interval_ns. */
struct nvml *nvml_start(uint64_t interval_ns);
/* Watches the device of that UUID ("GPU-...") under device_id, 1..255; once each. */
void nvml_watch(struct nvml *n, unsigned device_id, const char *uuid);
void nvml_read(const struct nvml *n, unsigned device_id, struct nvml_figures *figures);
/* Waits a moment for the thread; one that hangs keeps what it uses, to the end of the process. */
void nvml_stop(struct nvml *n);

#endif
