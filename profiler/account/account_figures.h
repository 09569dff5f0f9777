/*
 * account_figures.h: what a device, or several, hold at this moment, for those who ask while the program runs; and
 * epochs, from whose begin peaks and counts are told. One thread, the accounts' own.
 */
#ifndef MEMPROF_ACCOUNT_FIGURES_H
#define MEMPROF_ACCOUNT_FIGURES_H

#include <stdint.h>

struct account;

#define ACCOUNT_TYPES 4u /* that have sums of their own: all devices, "cuda", ... */

struct account_figures { /* bytes, blocks, nanoseconds; names as in profiler/wire_figures.def */
    uint64_t time_ns, epoch;
    uint64_t active_bytes, active_count, allocated_bytes, reserved_bytes, used_bytes, total_bytes;
    uint64_t peak_active_bytes, peak_reserved_bytes, alloc_count, alloc_bytes, free_count, free_bytes; /* epoch's */
    uint64_t thread_active_bytes, thread_active_count, thread_alloc_count, thread_alloc_bytes, thread_free_count,
        thread_free_bytes;
};

/* From here on the devices of this number are of a type: 1 to ACCOUNT_TYPES - 1, 0: of none. Before their first event.
 * The host needs none: of all devices it is one from the start. is_ours 0: what it holds is not among all devices'. */
void account_set_type(struct account *a, unsigned device, unsigned type, int is_ours);

/* Of one device. thread_id 0: no thread's. */
void account_figures_device(const struct account *a, unsigned device, uint32_t thread_id, struct account_figures *f);
/* Of all devices of a type; 0: of all that are ours. Its peaks are those of the sum. */
void account_figures_type(const struct account *a, unsigned type, uint32_t thread_id, struct account_figures *f);

/* Peaks of the sum of a type's devices over the run; type not 0. */
struct account_peaks {
    uint64_t active_bytes, active_ns, reserved_bytes, reserved_ns;
};
struct account_peaks account_type_peaks(const struct account *a, unsigned type);

/* A new epoch begins. */
void account_epoch(struct account *a, uint64_t time_ns);

#endif
