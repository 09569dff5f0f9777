#include "snapshot_private.h"

#include "../../common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 1000u

void *snapshot_add(struct snapshot_table *t, size_t size_bytes)
{
    if (t->count == t->capacity) {
        size_t capacity = t->capacity;
        t->data = array_grow(t->data, t->count + 1ul, &capacity, size_bytes, 0);
        t->capacity = (uint32_t)capacity; /* import_is_full keeps it small enough */
    }
    return (char *)t->data + size_bytes * t->count++;
}

int snapshot_is_full(const struct snapshot_table *t, struct error *err, const char *what)
{
    return t->count >= PICKLE_INDEX_MAX ? error_set(err, E2BIG, "more %s than memprof counts", what) : 0;
}

uint32_t snapshot_frame_number(struct snapshot *snap, const struct snapshot_frame *f)
{
    uint32_t number =
        map_number_or(&snap->frame_map, (uint64_t)f->function << 32 | f->file, f->line, snap->frames.count);
    if (number == snap->frames.count)
        *SNAPSHOT_ADD(snap->frames, snapshot_frame) = *f;
    return number;
}

uint32_t snapshot_stack_number(struct snapshot *snap, const uint32_t *frames, uint32_t count)
{
    uint32_t *slot = text_map_slot(&snap->stack_map, frames, count * sizeof *frames);
    if (!*slot) {
        *SNAPSHOT_ADD(snap->stacks, snapshot_stack) = (struct snapshot_stack){text_map_key(slot), count};
        *slot = snap->stacks.count;
    }
    return *slot - 1;
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
