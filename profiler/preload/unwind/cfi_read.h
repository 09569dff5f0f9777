/*
 * cfi_read.h: bounded reading of call frame information. For cfi.c and cfi_evaluate.c.
 */
#ifndef MEMPROF_CFI_READ_H
#define MEMPROF_CFI_READ_H

#include "cfi.h"

#include <stddef.h>

struct cursor {
    const uint8_t *at, *end;
    int failed; /* set by a read past the end, which gives 0; checked once after a group of reads */
};

static inline uint64_t take(struct cursor *c, unsigned bytes)
{
    if ((size_t)(c->end - c->at) < bytes) {
        c->failed = 1;
        c->at = c->end;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)c->at[i] << (8 * i);
    c->at += bytes;
    return value;
}

static inline int64_t take_signed(struct cursor *c, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(take(c, bytes) << shift) >> shift;
}

static inline uint64_t take_leb(struct cursor *c, int is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)take(c, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    if (is_signed && shift < 64 && (byte & 64))
        value |= ~0ull << shift;
    return value;
}

static inline uint64_t take_uleb(struct cursor *c)
{
    return take_leb(c, 0);
}

static inline int64_t take_sleb(struct cursor *c)
{
    return (int64_t)take_leb(c, 1);
}

static inline void skip(struct cursor *c, uint64_t bytes)
{
    if ((uint64_t)(c->end - c->at) < bytes) {
        c->failed = 1;
        bytes = (uint64_t)(c->end - c->at);
    }
    c->at += bytes;
}

/* The content of the block (a length, then so many bytes) at an address that a row holds. */
static inline int block_open(const struct cfi_image *image, int64_t block, struct cursor *c)
{
    uint64_t at = (uint64_t)block;
    if (at < (uint64_t)image->begin || at >= (uint64_t)image->end)
        return -1;
    *c = (struct cursor){image->begin + (at - (uint64_t)image->begin), image->end, 0};
    uint64_t bytes = take_uleb(c);
    if (c->failed || bytes > (uint64_t)(c->end - c->at))
        return -1;
    c->end = c->at + bytes;
    return 0;
}

#endif
