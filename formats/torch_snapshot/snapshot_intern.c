#include "snapshot_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 1000u

void *snapshot_add(struct snapshot_table *t, size_t size_bytes)
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

int snapshot_is_full(const struct snapshot_table *t, struct error *err, const char *what)
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

static uint32_t hash_stack(const struct snapshot *snap, uint32_t number)
{
    const struct snapshot_stack *s = SNAPSHOT_AT(snap->stacks, snapshot_stack, number);
    return mix((const uint32_t *)snap->stack_frames.data + s->first, s->count);
}

static uint32_t hash_frame(const struct snapshot *snap, uint32_t number)
{
    return mix(SNAPSHOT_AT(snap->frames, snapshot_frame, number), 3);
}

static void rehash(const struct snapshot *snap, uint32_t **slots, uint32_t *slot_count, uint32_t count,
                   uint32_t (*hash)(const struct snapshot *snap, uint32_t number))
{
    if (*slot_count > count * 2)
        return;
    *slot_count = *slot_count ? *slot_count * 2 : 1024;
    free(*slots);
    *slots = xcalloc(*slot_count, sizeof **slots);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = hash(snap, i) & (*slot_count - 1);
        while ((*slots)[slot])
            slot = (slot + 1) & (*slot_count - 1);
        (*slots)[slot] = i + 1;
    }
}

uint32_t snapshot_frame_number(struct snapshot *snap, const struct snapshot_frame *f)
{
    rehash(snap, &snap->frame_slots, &snap->frame_slot_count, snap->frames.count, hash_frame);
    uint32_t slot = mix(f, 3) & (snap->frame_slot_count - 1), number;
    for (; (number = snap->frame_slots[slot]); slot = (slot + 1) & (snap->frame_slot_count - 1))
        if (memcmp(SNAPSHOT_AT(snap->frames, snapshot_frame, number - 1), f, sizeof *f) == 0)
            return number - 1;
    *SNAPSHOT_ADD(snap->frames, snapshot_frame) = *f;
    snap->frame_slots[slot] = snap->frames.count;
    return snap->frames.count - 1;
}

uint32_t snapshot_stack_number(struct snapshot *snap, uint32_t count)
{
    uint32_t first = snap->stack_frames.count - count;
    const uint32_t *frames = snap->stack_frames.data;
    rehash(snap, &snap->stack_slots, &snap->stack_slot_count, snap->stacks.count, hash_stack);
    uint32_t slot = mix(frames + first, count) & (snap->stack_slot_count - 1), number;
    for (; (number = snap->stack_slots[slot]); slot = (slot + 1) & (snap->stack_slot_count - 1)) {
        const struct snapshot_stack *s = SNAPSHOT_AT(snap->stacks, snapshot_stack, number - 1);
        if (s->count == count && memcmp(frames + s->first, frames + first, count * sizeof *frames) == 0) {
            snap->stack_frames.count = first;
            return number - 1;
        }
    }
    *SNAPSHOT_ADD(snap->stacks, snapshot_stack) = (struct snapshot_stack){first, count};
    snap->stack_slots[slot] = snap->stacks.count;
    return snap->stacks.count - 1;
}

uint16_t snapshot_place_number(struct snapshot *snap, const struct snapshot_place *place)
{
    /* few, and mostly the one before; past the limit they are as good as the first */
    for (uint32_t i = snap->places.count; i-- > 0;)
        if (memcmp(SNAPSHOT_AT(snap->places, snapshot_place, i), place, sizeof *place) == 0)
            return (uint16_t)i;
    if (snap->places.count >= PLACES_MAX)
        return 0;
    *SNAPSHOT_ADD(snap->places, snapshot_place) = *place;
    return (uint16_t)(snap->places.count - 1);
}

const struct snapshot_run *snapshot_run_of(const struct snapshot *snap, struct pickle_value v, unsigned type)
{
    static const struct snapshot_run none = {0};
    if (snapshot_type_of(v) != SNAPSHOT_VALUE_run)
        return &none;
    const struct snapshot_run *r = SNAPSHOT_AT(snap->runs, snapshot_run, pickle_index(v));
    return r->type == type ? r : &none;
}
