/*
 * pickle.h: a reader of Python pickles (protocols 2 to 5) that hold data and nothing else. It streams: a container is
 * shown to its user when it is complete, who may put a small value of its own in its place, so that memory follows what
 * the user keeps and not the file. An opcode that could call or import something is refused with its name and place.
 * Everything is bounded; the bytes are treated as hostile.
 */
#ifndef MEMPROF_PICKLE_H
#define MEMPROF_PICKLE_H

#include "../../common/error.h"

#include <stddef.h>
#include <stdint.h>

struct pickle;

enum pickle_type {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,   /* of up to 60 bits */
    PICKLE_FLOAT, /* of up to 60 bits */
    PICKLE_TEXT,
    PICKLE_OPAQUE, /* bytes, sets, larger numbers, what the user dropped */
    PICKLE_LIST,
    PICKLE_DICT,
    PICKLE_TUPLE,
    PICKLE_USER /* the user's own types are this and above, up to 15 */
};

/* A type in the low 4 bits, the rest above. */
struct pickle_value {
    uint64_t bits;
};

#define PICKLE_INDEX_MAX ((1u << 28) - 1) /* of texts, containers and users' values */

static inline enum pickle_type pickle_type(struct pickle_value v)
{
    return (enum pickle_type)(v.bits & 15);
}

static inline uint32_t pickle_index(struct pickle_value v) /* of texts: its number, from 0; of users' values: theirs */
{
    return (uint32_t)(v.bits >> 4);
}

static inline int64_t pickle_int(struct pickle_value v)
{
    return (int64_t)v.bits >> 4;
}

static inline struct pickle_value pickle_make(unsigned type, uint32_t index) /* index <= PICKLE_INDEX_MAX */
{
    return (struct pickle_value){(uint64_t)index << 4 | type};
}

double pickle_float(struct pickle_value v);

struct pickle_user {
    void *context;
    /* Up to size bytes of the file into data: how many, 0 at its end, -errno. */
    long (*read)(void *context, void *data, size_t size);
    /* A list, dict (items: key, value, ...) or tuple is complete; the containers among its items were shown before.
     * *result is the container: set it to a value of the user's, or to a PICKLE_OPAQUE (pickle_make(PICKLE_OPAQUE, 0)),
     * and the container is forgotten; left alone it is kept, up to PICKLE_KEPT_MAX of them. 0 or -errno with err. */
    int (*complete)(void *context, struct pickle *p, enum pickle_type type, const struct pickle_value *items,
                    size_t count, struct pickle_value *result, struct error *err);
};

#define PICKLE_KEPT_MAX  (1u << 22)  /* containers, open or kept */
#define PICKLE_TEXT_MAX  (16u << 20) /* bytes of one text */
#define PICKLE_TEXTS_MAX (1ull << 30)
#define PICKLE_STACK_MAX (1u << 26) /* values that wait for their container */
#define PICKLE_DEPTH_MAX 1000u
#define PICKLE_REST_MAX  (1ull << 32)

struct pickle *pickle_open(const struct pickle_user *user);
void pickle_close(struct pickle *p);

/* Reads one pickle. 0 and its value, or -errno with err: -EBADMSG for what is damaged, not a pickle or refused ("byte
 * 17:
 * ..."), -E2BIG past a limit, what read and complete returned. */
int pickle_read(struct pickle *p, struct pickle_value *result, struct error *err);

uint64_t pickle_offset(const struct pickle *p); /* bytes read */
/* After pickle_read: reads on to the file's end; how many bytes there were, counted to PICKLE_REST_MAX. */
uint64_t pickle_rest(struct pickle *p);
/* Equal texts have one number. Borrowed until pickle_close; ends with a NUL that length does not count. */
const char *pickle_text(const struct pickle *p, struct pickle_value v, size_t *length);
/* Items of a container that was kept. */
const struct pickle_value *pickle_items(const struct pickle *p, struct pickle_value v, size_t *count);

#endif
