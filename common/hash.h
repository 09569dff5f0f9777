/* hash.h: hashes of texts, for tables in memory (FNV-1a): the same in every run, not for what an enemy chooses and not
 * for files. */
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

#endif
