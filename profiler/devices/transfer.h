/*
 * transfer.h: copies and fills by stack, device and direction, summed in memory; their rows.
 */
#ifndef MEMPROF_TRANSFER_H
#define MEMPROF_TRANSFER_H

#include <stdint.h>

#include "../../common/map.h"

struct store;

struct transfers { /* all zero: empty */
    struct transfer {
        uint64_t count, bytes;
        uint32_t stack_id;
        uint8_t device_id;
        uint8_t direction; /* enum wire_direction */
        uint8_t dirty;
    } * entries;
    uint32_t count, capacity;
    struct map index; /* (stack_id, device_id << 8 | direction) -> entries */
};

/* count of them (not 0), with so many bytes in all. */
void transfers_add(struct transfers *t, uint32_t stack_id, unsigned device_id, unsigned direction, uint64_t count,
                   uint64_t bytes);
/* Those that changed since the last time. */
void transfers_write(struct transfers *t, struct store *store);
/* They are counted from 0 again. */
void transfers_anew(struct transfers *t, struct store *store);
void transfers_close(struct transfers *t);

#endif
