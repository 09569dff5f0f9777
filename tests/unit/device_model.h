/*
 * device_model.h: a second model of devices: plain lists of what is there, added up anew every time.
 */
#ifndef MEMPROF_TEST_DEVICE_MODEL_H
#define MEMPROF_TEST_DEVICE_MODEL_H

#include "device_calls.h"

#include <stdint.h>

struct piece { /* memory: a plain block, a block of a pool, a mapping */
    int live, is_segment, is_pending, is_foreign;
    uint64_t size, context, stream;
    unsigned device, kind;
    int pool, object; /* index, or -1 */
};

extern struct model {
    struct piece pieces[DEVICE_SLOTS]; /* piece i lies at address (i) */
    struct {
        uint64_t size;
        int live;
        unsigned device;
    } arrays[16];
    struct {
        uint64_t handle, reserved;
        int is_known, is_graph, is_imported;
        unsigned device;
    } pools[12]; /* the first two: the graph memory of the devices */
    struct {
        uint64_t handles[3]; /* 0: none; each one reference */
        uint64_t size;
        unsigned device;
        int flags;
    } objects[16];
    struct {
        int exists;
        unsigned count;
        struct {
            unsigned slot, is_alloc, device;
            uint64_t size;
        } nodes[8];
    } graphs[8]; /* handle: 0x9000 + i */
    struct {
        uint64_t size; /* 0: none */
        unsigned pool, slot;
    } subs[64];                    /* in segment slot, at offset i * 0x1000 */
    int sub_segment[DEVICE_SLOTS]; /* pool + 1 */
} m;

/* A slot with or without a live piece, by chance; -1: none was found. */
int model_slot(int live);
int model_is_mapped(int object);
uint64_t model_pool_active(int pool);
/* A pool has reserved what its blocks need. */
void model_pool_grows(int pool);
/* What ends when a piece does. */
void model_piece_ends(unsigned slot);
/* Active, allocated and reserved bytes of every device: fails, naming the call, where the events do not say the same.
 */
void model_compare(const char *after);

#endif
