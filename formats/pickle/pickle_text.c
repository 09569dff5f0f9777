#include "pickle_private.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES (1u << 20)

static uint32_t text_hash(const char *data, size_t length)
{
    uint64_t h = 0x9E3779B97F4A7C15ull ^ length;
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        h = (h ^ word) * 0xD6E8FEB86659FD93ull;
        h ^= h >> 32;
        data += 8;
        length -= 8;
    }
    for (; length; length--)
        h = (h ^ (uint8_t)*data++) * 0x100000001B3ull;
    h ^= h >> 29;
    return (uint32_t)(h * 0xD6E8FEB86659FD93ull >> 32);
}

static void slots_grow(struct pickle *p)
{
    p->slot_count = p->slot_count ? p->slot_count * 2 : 4096;
    free(p->text_slots);
    p->text_slots = xcalloc(p->slot_count, sizeof *p->text_slots);
    for (uint32_t i = 0; i < p->text_count; i++) {
        uint32_t slot = p->texts[i].hash & (p->slot_count - 1);
        while (p->text_slots[slot])
            slot = (slot + 1) & (p->slot_count - 1);
        p->text_slots[slot] = i + 1;
    }
}

static const char *text_keep(struct pickle *p, const char *data, size_t length)
{
    if (p->arena_size - p->arena_used <= length) {
        p->arenas = xrealloc(p->arenas, (p->arena_count + 1) * sizeof *p->arenas);
        p->arena_size = length + 1 > ARENA_BYTES ? length + 1 : ARENA_BYTES;
        p->arena_used = 0;
        p->arenas[p->arena_count++] = xmalloc(p->arena_size);
    }
    char *kept = p->arenas[p->arena_count - 1] + p->arena_used;
    memcpy(kept, data, length);
    kept[length] = 0;
    p->arena_used += length + 1;
    return kept;
}

static int text_intern(struct pickle *p, const char *data, size_t length, struct pickle_value *value, struct error *err)
{
    uint32_t hash = text_hash(data, length), slot;
    if (p->text_count * 2 >= p->slot_count)
        slots_grow(p);
    for (slot = hash & (p->slot_count - 1); p->text_slots[slot]; slot = (slot + 1) & (p->slot_count - 1)) {
        const struct pickle_kept_text *t = &p->texts[p->text_slots[slot] - 1];
        if (t->hash == hash && t->length == length && memcmp(t->data, data, length) == 0) {
            *value = pickle_make(PICKLE_TEXT, p->text_slots[slot] - 1);
            return 0;
        }
    }
    p->text_bytes += length + sizeof(struct pickle_kept_text);
    if (p->text_count == PICKLE_INDEX_MAX || p->text_bytes > PICKLE_TEXTS_MAX)
        return pickle_too_much(p, err, "more text than a memory snapshot has");
    if (p->text_count == p->text_capacity) {
        p->text_capacity = p->text_capacity ? p->text_capacity * 2 : 1024;
        p->texts = xrealloc(p->texts, p->text_capacity * sizeof *p->texts);
    }
    p->texts[p->text_count] = (struct pickle_kept_text){text_keep(p, data, length), (uint32_t)length, hash};
    *value = pickle_make(PICKLE_TEXT, p->text_count);
    p->text_slots[slot] = ++p->text_count;
    return 0;
}

/* length bytes of the file as a text; larger than the buffer, through scratch. */
int pickle_text_read(struct pickle *p, uint64_t length, struct pickle_value *value, struct error *err)
{
    if (length > PICKLE_TEXT_MAX)
        return pickle_too_much(p, err, "a text of more than 16 MiB");
    if (length <= PICKLE_BUFFER_BYTES) {
        const uint8_t *data = pickle_take(p, length);
        return data ? text_intern(p, (const char *)data, length, value, err) : pickle_truncated(p, err);
    }
    if (p->scratch_capacity < length) {
        p->scratch_capacity = length;
        p->scratch = xrealloc(p->scratch, length);
    }
    for (size_t done = 0; done < length;) {
        size_t part = length - done < PICKLE_BUFFER_BYTES ? length - done : PICKLE_BUFFER_BYTES;
        const uint8_t *data = pickle_take(p, part);
        if (!data)
            return pickle_truncated(p, err);
        memcpy(p->scratch + done, data, part);
        done += part;
    }
    return text_intern(p, p->scratch, length, value, err);
}

const char *pickle_text(const struct pickle *p, struct pickle_value v, size_t *length)
{
    const struct pickle_kept_text *t = &p->texts[pickle_index(v)];
    if (length)
        *length = t->length;
    return t->data;
}

uint32_t pickle_text_count(const struct pickle *p)
{
    return p->text_count;
}

void pickle_texts_free(struct pickle *p)
{
    for (uint32_t i = 0; i < p->arena_count; i++)
        free(p->arenas[i]);
    free(p->arenas);
    free(p->texts);
    free(p->text_slots);
    free(p->scratch);
}
