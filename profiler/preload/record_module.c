/* The unwinder tells of modules that come and go: the records of that, and of those that call past this library. */
#include "record_module.h"

#include "record_ring.h"

static void add_padded(struct thread *t, uint64_t *at, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        for (size_t k = 0; k < 8 && i + k < bytes; k++)
            word |= (uint64_t)p[i + k] << (8 * k);
        record_word(t, (*at)++, word);
    }
}

static size_t path_length(const char *path)
{
    size_t bytes = 0;
    while (bytes < WIRE_PATH_MAX && path[bytes])
        bytes++;
    return bytes;
}

int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path)
{
    struct thread *t = &self;
    const size_t path_bytes = path_length(path);
    if (build_id_bytes > 64)
        build_id_bytes = 0;
    unsigned words = (unsigned)(6 + (build_id_bytes + 7) / 8 + (path_bytes + 7) / 8);
    if (!t->ring || !record_room(t, words))
        return 0;
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, words);
    record_word(t, at++, stamp);
    record_word(t, at++, (uint64_t)WIRE_MODULE_LOAD << 56 | (uint64_t)words << 32 | number);
    record_word(t, at++, start);
    record_word(t, at++, end);
    record_word(t, at++, bias);
    record_word(t, at++, (uint64_t)build_id_bytes << 32 | path_bytes);
    add_padded(t, &at, build_id, build_id_bytes);
    add_padded(t, &at, path, path_bytes);
    record_end(t);
    return 1;
}

void record_module_unload(uint32_t number)
{
    struct thread *t = &self;
    if (!t->ring)
        return;
    uint64_t words[] = {WIRE_WORD1(WIRE_MODULE_UNLOAD, 0, number)};
    record_words(t, words, 2);
}

void record_module_unhooked(struct thread *t, const char *path)
{
    const size_t bytes = path_length(path);
    const unsigned words = (unsigned)(2 + (bytes + 7) / 8);
    if (!t->ring || !record_room(t, words))
        return;
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, words);
    record_word(t, at++, stamp);
    record_word(t, at++, (uint64_t)WIRE_UNHOOKED << 56 | (uint64_t)words << 32 | bytes);
    add_padded(t, &at, path, bytes);
    record_end(t);
}
