#include "map.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PAGE_BYTES 32768u

/* --- words --- */

static struct map_entry *find(const struct map *m, uint64_t a, uint64_t b)
{
    size_t i = map_home(m, a, b);
    while (m->entries[i].value && (m->entries[i].a != a || m->entries[i].b != b))
        i = (i + 1) & m->mask;
    return &m->entries[i];
}

static void grow(struct map *m)
{
    struct map old = *m;
    m->mask = old.entries ? old.mask * 2 + 1 : 15;
    m->entries = xcalloc(m->mask + 1, sizeof *m->entries);
    for (size_t i = 0; old.entries && i <= old.mask; i++)
        if (old.entries[i].value)
            *find(m, old.entries[i].a, old.entries[i].b) = old.entries[i];
    free(old.entries);
}

uint64_t map_get(const struct map *m, uint64_t a, uint64_t b)
{
    return m->count ? find(m, a, b)->value : 0;
}

uint64_t *map_slot(struct map *m, uint64_t a, uint64_t b)
{
    if (m->count >= m->mask / 3 * 2)
        grow(m);
    struct map_entry *e = find(m, a, b);
    if (!e->value) {
        *e = (struct map_entry){a, b, 0};
        m->count++;
    }
    return &e->value;
}

uint64_t map_take(struct map *m, uint64_t a, uint64_t b)
{
    struct map_entry *e = m->count ? find(m, a, b) : NULL;
    uint64_t value = e ? e->value : 0;
    if (!value)
        return 0;
    m->count--;
    size_t hole = (size_t)(e - m->entries);
    for (size_t i = (hole + 1) & m->mask; m->entries[i].value; i = (i + 1) & m->mask) {
        size_t from = map_home(m, m->entries[i].a, m->entries[i].b);
        if (((i - from) & m->mask) < ((i - hole) & m->mask))
            continue;
        m->entries[hole] = m->entries[i];
        hole = i;
    }
    m->entries[hole].value = 0;
    return value;
}

struct map_entry *map_next(const struct map *m, const struct map_entry *entry)
{
    for (size_t i = entry ? (size_t)(entry - m->entries) + 1 : 0; m->entries && i <= m->mask; i++)
        if (m->entries[i].value)
            return &m->entries[i];
    return NULL;
}

void map_close(struct map *m)
{
    free(m->entries);
    *m = (struct map){0};
}

void map_close_pointers(struct map *m, void (*end)(void *value))
{
    for (struct map_entry *e = NULL; (e = map_next(m, e));)
        end((void *)(uintptr_t)e->value);
    map_close(m);
}

/* --- strings of bytes --- */

/* What a string is kept as. They stand one after the other in pages that never move. */
struct text {
    uint32_t number;
    char bytes[];
};

struct text_page {
    struct text_page *next;
    char bytes[];
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t p = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd6e8feb86659fd93ull);
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t hash_bytes(uint64_t seed, const char *p, size_t length)
{
    uint64_t h = mix(seed, length), word;
    for (; length >= 8; p += 8, length -= 8) {
        memcpy(&word, p, 8);
        h = mix(h ^ word, seed);
    }
    word = 0;
    memcpy(&word, p, length);
    return mix(h ^ word, seed);
}

static struct text *keep(struct text_map *m, const void *key, size_t length)
{
    size_t bytes = (sizeof(struct text) + length + 1 + 3) & ~(size_t)3; /* the next one's number is aligned */
    if (bytes > m->free_count) {
        m->free_count = bytes > PAGE_BYTES ? bytes : PAGE_BYTES;
        struct text_page *page = xmalloc(sizeof *page + m->free_count);
        page->next = m->pages;
        m->pages = page;
        m->free_bytes = page->bytes;
    }
    struct text *t = (struct text *)m->free_bytes;
    t->number = 0;
    memcpy(t->bytes, key, length);
    t->bytes[length] = 0;
    m->free_bytes += bytes;
    m->free_count -= bytes;
    return t;
}

uint32_t *text_map_slot(struct text_map *m, const void *key, size_t length)
{
    if (length > UINT32_MAX / 2)
        bug("a key of %zu bytes", length);
    if (!m->map.count && getrandom(&m->seed, sizeof m->seed, GRND_NONBLOCK) != sizeof m->seed)
        m->seed = (uintptr_t)m;
    uint64_t hash = hash_bytes(m->seed, key, length);
    /* the hash and the length are the key; above the length, a number tells others of the same hash apart */
    for (uint64_t b = length;; b += 1ull << 32) {
        uint64_t *slot = map_slot(&m->map, hash, b);
        struct text *t = (struct text *)(uintptr_t)*slot;
        if (t && memcmp(t->bytes, key, length) != 0)
            continue;
        if (!t)
            *slot = (uintptr_t)(t = keep(m, key, length));
        return &t->number;
    }
}

const uint32_t *text_map_find(const struct text_map *m, const void *key, size_t length)
{
    if (!m->map.count || length > UINT32_MAX / 2)
        return NULL;
    const uint64_t hash = hash_bytes(m->seed, key, length);
    const struct text *t;
    uint64_t b = length;
    while ((t = (const struct text *)(uintptr_t)map_get(&m->map, hash, b)) && memcmp(t->bytes, key, length) != 0)
        b += 1ull << 32;
    return t ? &t->number : NULL;
}

void text_map_close(struct text_map *m)
{
    for (struct text_page *p = m->pages, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    map_close(&m->map);
    *m = (struct text_map){0};
}
