/*
 * import_fields.h: the parts of reading a snapshot: the values that stand for what was read, numbers for what is equal
 * (import_intern.c), dicts by their known keys (import_fields.c).
 */
#ifndef MEMPROF_IMPORT_FIELDS_H
#define MEMPROF_IMPORT_FIELDS_H

#include "import_private.h"

/* The values that stand for what was read. */
enum import_value {
    IMPORT_VALUE_frame = PICKLE_USER,
    IMPORT_VALUE_stack,
    IMPORT_VALUE_event,
    IMPORT_VALUE_block,
    IMPORT_VALUE_segment,
    IMPORT_VALUE_annotation,
    IMPORT_VALUE_run, /* a list of events, blocks, segments or annotations; a pool */
};

static inline unsigned import_type_of(struct pickle_value v)
{
    return (unsigned)pickle_type(v);
}

/* --- growing arrays --- */

void *import_add(struct import_table *t, size_t size_bytes);
#define IMPORT_ADD(table, type) ((struct type *)import_add(&(table), sizeof(struct type)))

int import_is_full(const struct import_table *t, struct error *err, const char *what);

/* --- numbers of frames, stacks and places --- */

uint32_t import_frame_number(struct import *im, const struct import_frame *f);
/* The last count of stack_frames as a stack: they go again where it is known. */
uint32_t import_stack_number(struct import *im, uint32_t count);
uint16_t import_place_number(struct import *im, const struct import_place *place);
/* The run that a value stands for; an empty one where it is none of that type. */
const struct import_run *import_run_of(const struct import *im, struct pickle_value v, unsigned type);

/* --- dicts --- */

enum import_key {
#define X(id, name) KEY_##id,
#include "import_keys.def"
#undef X
    KEY_COUNT
};

/* A dict by its known keys. */
struct import_fields {
    struct pickle_value value[KEY_COUNT];
    uint64_t mask;
    uint32_t unknown;
};

#define FIELDS_HAVE(f, key) ((f)->mask >> KEY_##key & 1)

void fields_read(struct import *im, const struct pickle_value *items, size_t count, struct import_fields *f);
/* Of a dict whose shape is known: keys that nobody here knows. */
void fields_count_unknown(struct import *im, const struct import_fields *f, const struct pickle_value *items,
                          size_t count);

int64_t fields_number(const struct import_fields *f, enum import_key key, int64_t missing);
/* Not below 0. */
uint64_t fields_amount(const struct import_fields *f, enum import_key key);
/* One that is no number, or below 0, is no size: counted, and 0. */
uint64_t fields_size_told(struct import *im, const struct import_fields *f, enum import_key key);
/* Of memory that was there: neither is one that no device has, or with which the sums would not fit. */
uint64_t fields_size(struct import *im, const struct import_fields *f, enum import_key key);
/* The number of a text plus 1; 0: none. */
uint32_t fields_text(const struct import_fields *f, enum import_key key);
uint32_t fields_stack(const struct import_fields *f);
uint16_t fields_place(struct import *im, const struct import_fields *f, enum import_key pool_key);

#endif
