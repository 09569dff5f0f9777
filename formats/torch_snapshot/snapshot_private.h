/*
 * snapshot_private.h: the parts of reading a snapshot: the values that stand for what was read, numbers for what is
 * equal (snapshot_intern.c), dicts by their known keys (snapshot_fields.c).
 */
#ifndef MEMPROF_SNAPSHOT_PRIVATE_H
#define MEMPROF_SNAPSHOT_PRIVATE_H

#include "snapshot.h"

/* The values that stand for what was read. */
enum snapshot_value {
    SNAPSHOT_VALUE_frame = PICKLE_USER,
    SNAPSHOT_VALUE_stack,
    SNAPSHOT_VALUE_event,
    SNAPSHOT_VALUE_block,
    SNAPSHOT_VALUE_segment,
    SNAPSHOT_VALUE_annotation,
    SNAPSHOT_VALUE_run, /* a list of events, blocks, segments or annotations; a pool */
};

static inline unsigned snapshot_type_of(struct pickle_value v)
{
    return (unsigned)pickle_type(v);
}

/* --- growing arrays --- */

void *snapshot_add(struct snapshot_table *t, size_t size_bytes);
#define SNAPSHOT_ADD(table, type) ((struct type *)snapshot_add(&(table), sizeof(struct type)))

int snapshot_is_full(const struct snapshot_table *t, struct error *err, const char *what);

/* --- numbers of frames, stacks and places --- */

uint32_t snapshot_frame_number(struct snapshot *snap, const struct snapshot_frame *f);
uint32_t snapshot_stack_number(struct snapshot *snap, const uint32_t *frames, uint32_t count);
uint16_t snapshot_place_number(struct snapshot *snap, const struct snapshot_place *place);
/* The run that a value stands for; an empty one where it is none of that type. */
const struct snapshot_run *snapshot_run_of(const struct snapshot *snap, struct pickle_value v, unsigned type);

/* --- dicts --- */

/* A dict by its known keys. */
struct snapshot_fields {
    struct pickle_value value[WORD_KEYS];
    uint64_t mask;
    uint32_t unknown;
};

#define FIELDS_HAVE(f, key) ((f)->mask >> WORD_##key & 1)

void fields_read(struct snapshot *snap, const struct pickle_value *items, size_t count, struct snapshot_fields *f);
/* Of a dict whose shape is known: keys that nobody here knows. */
void fields_count_unknown(struct snapshot *snap, const struct snapshot_fields *f, const struct pickle_value *items,
                          size_t count);

int64_t fields_number(const struct snapshot_fields *f, enum snapshot_word key, int64_t missing);
/* Not below 0. */
uint64_t fields_amount(const struct snapshot_fields *f, enum snapshot_word key);
/* One that is no number, or below 0, is no size: counted, and 0. */
uint64_t fields_size_told(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word key);
/* Of memory that was there: neither is one that no device has, or with which the sums would not fit. */
uint64_t fields_size(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word key);
/* One that is known; WORD_COUNT: none. */
enum snapshot_word fields_word(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word key);
/* The number of a text plus 1; 0: none. */
uint32_t fields_text(const struct snapshot_fields *f, enum snapshot_word key);
uint32_t fields_stack(const struct snapshot_fields *f);
uint16_t fields_place(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word pool_key);

#endif
