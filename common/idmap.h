/*
 * idmap.h: from a 64-bit number (an address, a handle) to a pointer. Open addressing, at most three quarters full.
 */
#ifndef MEMPROF_IDMAP_H
#define MEMPROF_IDMAP_H

#include "error.h"

#include <stdint.h>
#include <stdlib.h>

struct idmap { /* all zero: empty */
    struct idmap_entry {
        uint64_t key;
        void *value; /* NULL: free */
    } * entries;
    uint32_t capacity; /* a power of two */
    uint32_t count;
};

static inline uint32_t idmap_home(const struct idmap *m, uint64_t key)
{
    uint64_t h = key * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32) & (m->capacity - 1);
}

static inline uint32_t idmap_place(const struct idmap *m, uint64_t key)
{
    uint32_t i = idmap_home(m, key);
    while (m->entries[i].value && m->entries[i].key != key)
        i = (i + 1) & (m->capacity - 1);
    return i;
}

static inline void *idmap_get(const struct idmap *m, uint64_t key)
{
    return m->capacity ? m->entries[idmap_place(m, key)].value : NULL;
}

static inline void idmap_put(struct idmap *m, uint64_t key, void *value)
{
    if (m->count >= m->capacity / 4 * 3) {
        struct idmap old = *m;
        m->capacity = old.capacity ? old.capacity * 2 : 16;
        m->entries = xcalloc(m->capacity, sizeof *m->entries);
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.entries[i].value)
                m->entries[idmap_place(m, old.entries[i].key)] = old.entries[i];
        free(old.entries);
    }
    struct idmap_entry *e = &m->entries[idmap_place(m, key)];
    m->count += !e->value;
    *e = (struct idmap_entry){key, value};
}

/* Returns what was there. */
static inline void *idmap_remove(struct idmap *m, uint64_t key)
{
    if (!m->capacity)
        return NULL;
    uint32_t hole = idmap_place(m, key), mask = m->capacity - 1;
    void *value = m->entries[hole].value;
    if (!value)
        return NULL;
    m->count--;
    for (uint32_t i = (hole + 1) & mask; m->entries[i].value; i = (i + 1) & mask) {
        uint32_t home = idmap_home(m, m->entries[i].key);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        m->entries[hole] = m->entries[i];
        hole = i;
    }
    m->entries[hole].value = NULL;
    return value;
}

static inline void idmap_close(struct idmap *m)
{
    free(m->entries);
    *m = (struct idmap){0};
}

#endif
