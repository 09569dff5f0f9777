#include "import_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 1000u

void *import_add(struct import_table *t, size_t size_bytes)
{
    if (t->count == t->capacity) {
        /* by half: the last doubling of a large array would be the most memory of all */
        uint64_t capacity = t->capacity ? t->capacity + (uint64_t)t->capacity / 2 : 256;
        if (capacity > UINT32_MAX)
            capacity = UINT32_MAX;
        t->data = xrealloc(t->data, capacity * size_bytes);
        t->capacity = (uint32_t)capacity;
    }
    return (char *)t->data + size_bytes * t->count++;
}

int import_is_full(const struct import_table *t, struct error *err, const char *what)
{
    return t->count >= PICKLE_INDEX_MAX ? error_set(err, E2BIG, "more %s than memprof counts", what) : 0;
}

static uint32_t mix(const void *data, size_t words)
{
    const uint32_t *w = data;
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (size_t i = 0; i < words; i++) {
        h = (h ^ w[i]) * 0xD6E8FEB86659FD93ull;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

static uint32_t hash_stack(const struct import *im, uint32_t number)
{
    const struct import_stack *s = IMPORT_AT(im->stacks, import_stack, number);
    return mix((const uint32_t *)im->stack_frames.data + s->first, s->count);
}

static uint32_t hash_frame(const struct import *im, uint32_t number)
{
    return mix(IMPORT_AT(im->frames, import_frame, number), 3);
}

static void rehash(const struct import *im, uint32_t **slots, uint32_t *slot_count, uint32_t count,
                   uint32_t (*hash)(const struct import *im, uint32_t number))
{
    if (*slot_count > count * 2)
        return;
    *slot_count = *slot_count ? *slot_count * 2 : 1024;
    free(*slots);
    *slots = xcalloc(*slot_count, sizeof **slots);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = hash(im, i) & (*slot_count - 1);
        while ((*slots)[slot])
            slot = (slot + 1) & (*slot_count - 1);
        (*slots)[slot] = i + 1;
    }
}

uint32_t import_frame_number(struct import *im, const struct import_frame *f)
{
    rehash(im, &im->frame_slots, &im->frame_slot_count, im->frames.count, hash_frame);
    uint32_t slot = mix(f, 3) & (im->frame_slot_count - 1), number;
    for (; (number = im->frame_slots[slot]); slot = (slot + 1) & (im->frame_slot_count - 1))
        if (memcmp(IMPORT_AT(im->frames, import_frame, number - 1), f, sizeof *f) == 0)
            return number - 1;
    *IMPORT_ADD(im->frames, import_frame) = *f;
    im->frame_slots[slot] = im->frames.count;
    return im->frames.count - 1;
}

uint32_t import_stack_number(struct import *im, uint32_t count)
{
    uint32_t first = im->stack_frames.count - count;
    const uint32_t *frames = im->stack_frames.data;
    rehash(im, &im->stack_slots, &im->stack_slot_count, im->stacks.count, hash_stack);
    uint32_t slot = mix(frames + first, count) & (im->stack_slot_count - 1), number;
    for (; (number = im->stack_slots[slot]); slot = (slot + 1) & (im->stack_slot_count - 1)) {
        const struct import_stack *s = IMPORT_AT(im->stacks, import_stack, number - 1);
        if (s->count == count && memcmp(frames + s->first, frames + first, count * sizeof *frames) == 0) {
            im->stack_frames.count = first;
            return number - 1;
        }
    }
    *IMPORT_ADD(im->stacks, import_stack) = (struct import_stack){first, count};
    im->stack_slots[slot] = im->stacks.count;
    return im->stacks.count - 1;
}

uint16_t import_place_number(struct import *im, const struct import_place *place)
{
    /* few, and mostly the one before; past the limit they are as good as the first */
    for (uint32_t i = im->places.count; i-- > 0;)
        if (memcmp(IMPORT_AT(im->places, import_place, i), place, sizeof *place) == 0)
            return (uint16_t)i;
    if (im->places.count >= PLACES_MAX)
        return 0;
    *IMPORT_ADD(im->places, import_place) = *place;
    return (uint16_t)(im->places.count - 1);
}

const struct import_run *import_run_of(const struct import *im, struct pickle_value v, unsigned type)
{
    static const struct import_run none = {0};
    if (import_type_of(v) != IMPORT_VALUE_run)
        return &none;
    const struct import_run *r = IMPORT_AT(im->runs, import_run, pickle_index(v));
    return r->type == type ? r : &none;
}
