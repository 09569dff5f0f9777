/*
 * record_parts.h: what is too long for one record: bytes that follow each other, told in records of WIRE_CODE_PART
 * words.
 */
#ifndef MEMPROF_RECORD_PARTS_H
#define MEMPROF_RECORD_PARTS_H

#include "record_ring.h"

struct record_part {
    const unsigned char *data;
    uint64_t bytes;
};

/* The words that it takes: each part begins with a new one. */
static inline uint64_t record_part_words(uint64_t bytes)
{
    return (bytes + 7) / 8;
}

/* Records of a kind (WIRE_CODE, WIRE_SOURCE) under one number. 0: no room; some of them may have been told. */
int record_parts(struct thread *t, uint64_t kind, uint32_t number, const struct record_part *parts,
                 unsigned count) HIDDEN;

#endif
