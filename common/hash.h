/* hash.h: hashes for tables in memory, of texts (FNV-1a) and of two numbers: the same in every run, not for what an
 * enemy chooses and not for files. */
#ifndef MEMPROF_HASH_H
#define MEMPROF_HASH_H

#include <stdint.h>

#define HASH_START 0xcbf29ce484222325ull

static inline uint64_t hash_byte(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * 0x100000001b3ull;
}

/* Of a text after what hash is of: HASH_START of nothing. NULL is as "". */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = hash_byte(hash, (unsigned char)*text);
    return hash;
}

/* All bits of it depend on all of both. */
static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15ull + b;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

#endif
