/*
 * pickle_private.h: the state of a reader, and its stages: bytes of the file (pickle_bytes.c), texts (pickle_text.c),
 * values and containers (pickle_box.c), opcodes (pickle.c). What is read for every value is inline.
 */
#ifndef MEMPROF_PICKLE_PRIVATE_H
#define MEMPROF_PICKLE_PRIVATE_H

#include "../../common/map.h"
#include "pickle.h"

#define PICKLE_BUFFER_BYTES (1u << 18)

struct pickle_box { /* a list, dict or tuple */
    struct pickle_value *items;
    uint32_t count, capacity;
    uint32_t memo; /* its place in the memo plus 1; 0: none */
    uint32_t at;   /* its place on the stack while it is open */
    uint8_t type;  /* enum pickle_type; 0: free */
    uint8_t sealed;
};

struct pickle_kept_text {
    const char *data;
    uint32_t length;
};

struct pickle {
    struct pickle_user user;
    uint8_t *buffer;
    size_t next, end;       /* in the buffer */
    uint64_t buffer_offset; /* of the buffer's first byte in the file */
    uint64_t op_offset;
    int read_error;

    struct pickle_value *stack;
    uint32_t depth, stack_capacity;
    uint32_t marks[PICKLE_DEPTH_MAX];
    uint32_t mark_count;

    uint32_t *memo; /* type and 28 bits of index */
    uint32_t memo_count, memo_capacity;

    struct pickle_box *boxes;
    uint32_t box_count, box_capacity;
    uint32_t *free_boxes;
    uint32_t free_count, free_capacity;

    struct pickle_kept_text *texts;
    uint32_t text_count, text_capacity;
    struct text_map text_map; /* numbers plus 1 */
    uint64_t text_bytes;
    char *scratch; /* a text that the buffer does not hold whole */
    size_t scratch_capacity;
};

/* --- bytes: -errno with err, or an error that says at which byte of the file --- */

/* Reads on; -1 at the end of the file, or where reading fails. */
int pickle_fill(struct pickle *p);
/* The next size bytes (at most PICKLE_BUFFER_BYTES), or NULL where the file ends. */
static inline const uint8_t *pickle_take(struct pickle *p, size_t size)
{
    while (__builtin_expect(p->end - p->next < size, 0))
        if (pickle_fill(p))
            return NULL;
    const uint8_t *data = p->buffer + p->next;
    p->next += size;
    return data;
}

static inline uint64_t pickle_little(const uint8_t *data, unsigned size)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < size; i++)
        v |= (uint64_t)data[i] << (8 * i);
    return v;
}

int pickle_skip(struct pickle *p, uint64_t length, struct error *err);
int pickle_damaged(struct pickle *p, struct error *err, const char *what);
int pickle_too_much(struct pickle *p, struct error *err, const char *what);
int pickle_truncated(struct pickle *p, struct error *err);

/* --- texts --- */

/* length bytes of the file as a text. */
int pickle_text_read(struct pickle *p, uint64_t length, struct pickle_value *value, struct error *err);
void pickle_texts_free(struct pickle *p);

/* --- values and containers --- */

static inline int pickle_is_box(struct pickle_value v)
{
    return pickle_type(v) >= PICKLE_LIST && pickle_type(v) <= PICKLE_TUPLE;
}

static inline struct pickle_box *pickle_box_of(const struct pickle *p, struct pickle_value v)
{
    return &p->boxes[pickle_index(v)];
}

/* Where the stack above the last mark begins. */
static inline uint32_t pickle_base(const struct pickle *p)
{
    return p->mark_count ? p->marks[p->mark_count - 1] : 0;
}

int pickle_stack_grow(struct pickle *p, struct error *err);

static inline int pickle_push(struct pickle *p, struct pickle_value v, struct error *err)
{
    int rc = 0;
    if (__builtin_expect(p->depth == p->stack_capacity, 0) && (rc = pickle_stack_grow(p, err)))
        return rc;
    p->stack[p->depth++] = v;
    return 0;
}

int pickle_box_open(struct pickle *p, enum pickle_type type, struct pickle_value *value, struct error *err);
/* Shows a complete container to the user: *value becomes what stands for it. */
int pickle_seal(struct pickle *p, struct pickle_value *value, struct error *err);
/* The values are sealed first. */
int pickle_box_add(struct pickle *p, struct pickle_value box, struct pickle_value *values, uint32_t count,
                   struct error *err);
/* The value on top of the stack gets a number; the one with that number is pushed. */
int pickle_memo_put(struct pickle *p, uint64_t index, struct error *err);
int pickle_memo_get(struct pickle *p, uint64_t index, struct error *err);
void pickle_boxes_free(struct pickle *p);

#endif
