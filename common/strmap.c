#include "strmap.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PAGE_BYTES 32768u

/* Keys stand one after the other in pages that never move. */
struct page {
    struct page *next;
    char bytes[];
};

struct entry {
    const char *key; /* NULL: empty */
    uint32_t length;
    uint32_t hash;
    uint32_t value;
};

struct strmap {
    struct entry *entries;
    size_t capacity; /* a power of two, at most 3/4 full */
    size_t count;
    uint64_t seed;
    struct page *pages;
    char *free_bytes;
    size_t free_count;
};

struct strmap *strmap_open(void)
{
    struct strmap *m = xcalloc(1, sizeof *m);
    m->capacity = 64;
    m->entries = xcalloc(m->capacity, sizeof *m->entries);
    if (getrandom(&m->seed, sizeof m->seed, GRND_NONBLOCK) != sizeof m->seed)
        m->seed = (uint64_t)(uintptr_t)m;
    return m;
}

void strmap_close(struct strmap *m)
{
    if (!m)
        return;
    for (struct page *p = m->pages, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(m->entries);
    free(m);
}

size_t strmap_count(const struct strmap *m)
{
    return m->count;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t p = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd6e8feb86659fd93ull);
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint32_t hash_bytes(uint64_t seed, const char *p, size_t length)
{
    uint64_t h = mix(seed, length);
    uint64_t word;
    for (; length >= 8; p += 8, length -= 8) {
        memcpy(&word, p, 8);
        h = mix(h ^ word, seed);
    }
    word = 0;
    memcpy(&word, p, length);
    h = mix(h ^ word, seed);
    return (uint32_t)(h ^ h >> 32);
}

static const char *keep(struct strmap *m, const void *key, size_t length)
{
    if (length + 1 > m->free_count) {
        m->free_count = length + 1 > PAGE_BYTES ? length + 1 : PAGE_BYTES;
        struct page *page = xmalloc(sizeof *page + m->free_count);
        page->next = m->pages;
        m->pages = page;
        m->free_bytes = page->bytes;
    }
    char *copy = m->free_bytes;
    memcpy(copy, key, length);
    copy[length] = 0;
    m->free_bytes += length + 1;
    m->free_count -= length + 1;
    return copy;
}

static void grow(struct strmap *m)
{
    size_t capacity = m->capacity * 2;
    struct entry *entries = xcalloc(capacity, sizeof *entries);
    for (size_t i = 0; i < m->capacity; i++) {
        if (!m->entries[i].key)
            continue;
        size_t at = m->entries[i].hash & (capacity - 1);
        while (entries[at].key)
            at = (at + 1) & (capacity - 1);
        entries[at] = m->entries[i];
    }
    free(m->entries);
    m->entries = entries;
    m->capacity = capacity;
}

uint32_t *strmap_slot(struct strmap *m, const void *key, size_t length, int *is_new, const char **copy)
{
    if (length > UINT32_MAX / 2)
        bug("a key of %zu bytes", length);
    if (m->count >= m->capacity / 4 * 3)
        grow(m);
    uint32_t hash = hash_bytes(m->seed, key, length);
    size_t at = hash & (m->capacity - 1);
    for (; m->entries[at].key; at = (at + 1) & (m->capacity - 1)) {
        struct entry *e = &m->entries[at];
        if (e->hash == hash && e->length == length && memcmp(e->key, key, length) == 0)
            break;
    }
    struct entry *e = &m->entries[at];
    int made = !e->key;
    if (made) {
        e->key = keep(m, key, length);
        e->length = (uint32_t)length;
        e->hash = hash;
        e->value = 0;
        m->count++;
    }
    if (is_new)
        *is_new = made;
    if (copy)
        *copy = e->key;
    return &e->value;
}
