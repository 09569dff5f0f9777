/*
 * device_calls.h: calls to devices.h as a driver's hooks make them, and what the events that come of them say: blocks,
 * segments, samples.
 */
#ifndef MEMPROF_TEST_DEVICE_CALLS_H
#define MEMPROF_TEST_DEVICE_CALLS_H

#include "../../common/kind.h"
#include "../../profiler/devices/devices.h"
#include "../../profiler/wire.h"

#include <stdint.h>

#define DEVICE_SLOT  0x1000000ull /* no block is larger */
#define DEVICE_SLOTS 64u

extern struct shown {
    struct {
        uint64_t address, size;
        unsigned device, kind, pending;
        int touched;
    } blocks[4096];
    unsigned block_count;
    struct {
        uint64_t address, size;
        unsigned device, kind;
    } segments[4096];
    unsigned segment_count;
    uint64_t sampled[256][KIND_COUNT];
    uint64_t unmatched, transfers[8], transfer_bytes[8], used, total, oom;
    uint64_t most_reserved;
    struct {
        uint64_t address, size; /* of the block; of the copy */
        unsigned device, kind, what;
    } touches[64]; /* the newest */
    unsigned touch_count, touched_gone, touch_ends, moved;
    uint64_t uploaded_from; /* by the newest EVENT_UPLOAD */
    unsigned uploads;
    unsigned transfer_device, transfer_stack, transfer_calls, reserved_events;
} shown;

/* The last name that memory got. */
extern char device_newest_name[64];
extern uint64_t device_newest_address;

extern struct devices *devices;
extern unsigned device_thread, device_stack; /* that make the calls */
extern int device_refused;                   /* 1: the driver refuses them */
extern int device_refusals;                  /* not 0: each third that takes something away is refused at first */

/* A new struct devices, and nothing shown. */
void device_begin(void);

/* The parts of a sink. */
unsigned device_of(void *arg, unsigned ordinal, const uint64_t *uuid, uint64_t total_bytes, const char *model);
unsigned device_foreign_of(void *arg, unsigned device_id);
uint64_t device_map_of(void *arg, uint64_t address);
void device_name_of(void *arg, uint64_t address, const char *name);
void device_transfer(void *arg, uint32_t stack_id, unsigned device_id, unsigned direction, uint64_t count,
                     uint64_t bytes);

/* One call with count words, each a uint64_t. What devices_apply returned. */
int device_apply(unsigned call, unsigned device, unsigned kind, unsigned flags, int is_segment, unsigned count, ...);
#define W(x) ((uint64_t)(x))
#define CALL(name, device, kind, count, ...)                                                                           \
    device_apply(WIRE_CALL_##name, device, KIND_##kind, 0, 0, count, __VA_ARGS__)

static inline uint64_t device_address(unsigned slot)
{
    return 0x7000000000ull + slot * DEVICE_SLOT;
}

#endif
