#include "pickle.h"

#include "pickle_ops.h"
#include "pickle_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONG_MAX_BYTES 255u

/* --- values ----------------------------------------------------------------------------------------------------- */

double pickle_float(struct pickle_value v)
{
    uint64_t bits = v.bits & ~15ull;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static struct pickle_value make_int(int64_t number)
{
    if (number < -(1ll << 59) || number >= 1ll << 59)
        return pickle_make(PICKLE_OPAQUE, 0);
    return (struct pickle_value){(uint64_t)number << 4 | PICKLE_INT};
}

static int push_long(struct pickle *p, uint64_t length, struct error *err)
{
    if (length > LONG_MAX_BYTES)
        return pickle_too_much(p, err, "a number of more than 255 bytes");
    const uint8_t *data = pickle_take(p, length);
    if (!data)
        return pickle_truncated(p, err);
    if (length > 8) /* larger than anything counted here, unless the rest is the sign */
        for (uint64_t i = 8; i < length; i++)
            if (data[i] != (data[7] & 0x80 ? 0xff : 0))
                return pickle_push(p, pickle_make(PICKLE_OPAQUE, 0), err);
    unsigned used = length < 8 ? (unsigned)length : 8;
    uint64_t v = pickle_little(data, used);
    if (used && used < 8 && data[used - 1] & 0x80)
        v |= ~0ull << (8 * used);
    return pickle_push(p, make_int((int64_t)v), err);
}

static int push_float(struct pickle *p, const uint8_t *data, struct error *err)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; i++)
        bits = bits << 8 | data[i];
    return pickle_push(p, (struct pickle_value){(bits & ~15ull) | PICKLE_FLOAT}, err);
}

static int push_text(struct pickle *p, uint64_t length, struct error *err)
{
    struct pickle_value v;
    int rc = pickle_text_read(p, length, &v, err);
    return rc ? rc : pickle_push(p, v, err);
}

static int push_opaque(struct pickle *p, uint64_t length, struct error *err)
{
    int rc = pickle_skip(p, length, err);
    return rc ? rc : pickle_push(p, pickle_make(PICKLE_OPAQUE, 0), err);
}

/* --- containers ------------------------------------------------------------------------------------------------- */

/* A dict right below a new list or dict can no longer grow: a dict's next item would begin with a text. So the entries
 * of a list are shown one by one, however long the list. */
static int push_new(struct pickle *p, enum pickle_type type, struct error *err)
{
    struct pickle_value v;
    int rc = 0;
    if (p->depth > pickle_base(p) && pickle_type(p->stack[p->depth - 1]) == PICKLE_DICT)
        rc = pickle_seal(p, &p->stack[p->depth - 1], err);
    if (rc == 0)
        rc = pickle_box_open(p, type, &v, err);
    return rc ? rc : pickle_push(p, v, err);
}

static int container_below(struct pickle *p, uint32_t at, enum pickle_type type, struct pickle_value *box,
                           struct error *err)
{
    if (!at || pickle_type(p->stack[at - 1]) != type || pickle_box_of(p, p->stack[at - 1])->sealed)
        return pickle_damaged(p, err,
                              type == PICKLE_LIST ? "items are added to what is no list, or was complete"
                                                  : "items are set in what is no dict, or was complete");
    *box = p->stack[at - 1];
    return 0;
}

static int add_single(struct pickle *p, enum pickle_type type, uint32_t count, struct error *err)
{
    struct pickle_value box;
    if (p->depth < pickle_base(p) + count + 1)
        return pickle_damaged(p, err, "takes more values than there are");
    p->depth -= count;
    int rc = container_below(p, p->depth, type, &box, err);
    return rc ? rc : pickle_box_add(p, box, p->stack + p->depth, count, err);
}

static int pop_mark(struct pickle *p, uint32_t *at, struct error *err)
{
    *at = 0;
    if (!p->mark_count)
        return pickle_damaged(p, err, "ends a group that was not begun");
    *at = p->marks[--p->mark_count];
    return 0;
}

static int add_marked(struct pickle *p, enum pickle_type type, struct error *err)
{
    struct pickle_value box;
    uint32_t at;
    int rc = pop_mark(p, &at, err);
    if (rc == 0 && at <= pickle_base(p))
        rc = pickle_damaged(p, err, "items are added to nothing");
    if (rc == 0)
        rc = container_below(p, at, type, &box, err);
    if (rc)
        return rc;
    uint32_t count = p->depth - at;
    if (type == PICKLE_DICT && count % 2)
        return pickle_damaged(p, err, "a key without a value");
    p->depth = at;
    return pickle_box_add(p, box, p->stack + at, count, err);
}

static int make_tuple(struct pickle *p, uint32_t at, struct error *err)
{
    struct pickle_value v;
    uint32_t count = p->depth - at;
    int rc = pickle_box_open(p, PICKLE_TUPLE, &v, err);
    if (rc == 0)
        rc = pickle_box_add(p, v, p->stack + at, count, err);
    if (rc)
        return rc;
    pickle_box_of(p, v)->at = p->depth = at;
    return pickle_push(p, v, err);
}

static int fixed_tuple(struct pickle *p, uint32_t count, struct error *err)
{
    if (p->depth < pickle_base(p) + count)
        return pickle_damaged(p, err, "takes more values than there are");
    return make_tuple(p, p->depth - count, err);
}

/* A set: its items go, it stays one opaque value. */
static int drop_marked(struct pickle *p, int makes_one, struct error *err)
{
    uint32_t at;
    int rc = pop_mark(p, &at, err);
    if (rc)
        return rc;
    for (uint32_t i = at; i < p->depth; i++)
        if ((rc = pickle_seal(p, &p->stack[i], err)))
            return rc;
    p->depth = at;
    if (makes_one)
        return pickle_push(p, pickle_make(PICKLE_OPAQUE, 0), err);
    if (p->depth <= pickle_base(p) || pickle_type(p->stack[p->depth - 1]) != PICKLE_OPAQUE)
        return pickle_damaged(p, err, "items are added to what is no set");
    return 0;
}

/* --- opcodes ---------------------------------------------------------------------------------------------------- */

static int refuse(struct pickle *p, uint8_t op, struct error *err)
{
    unsigned long long at = p->op_offset;
    switch (pickle_ops[op].sort) {
    case PICKLE_CALLS:
        return error_set(err, EBADMSG, "byte %llu: %s would run or fetch code; a memory snapshot is data only: refused",
                         at, pickle_ops[op].name);
    case PICKLE_OLD:
        return error_set(err, EBADMSG, "byte %llu: %s is not of protocol 2 to 5, or of no use in a memory snapshot", at,
                         pickle_ops[op].name);
    default:
        return error_set(err, EBADMSG, "byte %llu: 0x%02x is not an opcode: this is no pickle, or it is damaged", at,
                         op);
    }
}

static int step(struct pickle *p, uint8_t op, struct error *err)
{
    const uint8_t *data = NULL;
    unsigned size = pickle_ops[op].argument_bytes;
    uint32_t at;
    int rc;
    if (__builtin_expect(pickle_ops[op].sort != PICKLE_READ, 0))
        return refuse(p, op, err);
    if (size && !(data = pickle_take(p, size)))
        return pickle_truncated(p, err);
    switch (op) {
    case PICKLE_OP_MEMOIZE:
        return pickle_memo_put(p, p->memo_count, err);
    case PICKLE_OP_BINPUT:
    case PICKLE_OP_LONG_BINPUT:
        return pickle_memo_put(p, pickle_little(data, size), err);
    case PICKLE_OP_BINGET:
    case PICKLE_OP_LONG_BINGET:
        return pickle_memo_get(p, pickle_little(data, size), err);
    case PICKLE_OP_MARK:
        if (p->mark_count == PICKLE_DEPTH_MAX)
            return pickle_too_much(p, err, "nested deeper than a memory snapshot is");
        p->marks[p->mark_count++] = p->depth;
        return 0;
    case PICKLE_OP_EMPTY_DICT:
        return push_new(p, PICKLE_DICT, err);
    case PICKLE_OP_EMPTY_LIST:
        return push_new(p, PICKLE_LIST, err);
    case PICKLE_OP_SETITEMS:
        return add_marked(p, PICKLE_DICT, err);
    case PICKLE_OP_APPENDS:
        return add_marked(p, PICKLE_LIST, err);
    case PICKLE_OP_SETITEM:
        return add_single(p, PICKLE_DICT, 2, err);
    case PICKLE_OP_APPEND:
        return add_single(p, PICKLE_LIST, 1, err);
    case PICKLE_OP_TUPLE:
        rc = pop_mark(p, &at, err);
        return rc ? rc : make_tuple(p, at, err);
    case PICKLE_OP_EMPTY_TUPLE:
        return fixed_tuple(p, 0, err);
    case PICKLE_OP_TUPLE1:
    case PICKLE_OP_TUPLE2:
    case PICKLE_OP_TUPLE3:
        return fixed_tuple(p, op - PICKLE_OP_TUPLE1 + 1u, err);
    case PICKLE_OP_BININT:
        return pickle_push(p, make_int((int32_t)pickle_little(data, 4)), err);
    case PICKLE_OP_BININT1:
    case PICKLE_OP_BININT2:
        return pickle_push(p, make_int((int64_t)pickle_little(data, size)), err);
    case PICKLE_OP_LONG1:
    case PICKLE_OP_LONG4:
        return push_long(p, pickle_little(data, size), err);
    case PICKLE_OP_BINFLOAT:
        return push_float(p, data, err);
    case PICKLE_OP_NONE:
        return pickle_push(p, pickle_make(PICKLE_NONE, 0), err);
    case PICKLE_OP_NEWTRUE:
    case PICKLE_OP_NEWFALSE:
        return pickle_push(p, pickle_make(PICKLE_BOOL, op == PICKLE_OP_NEWTRUE), err);
    case PICKLE_OP_SHORT_BINUNICODE:
    case PICKLE_OP_BINUNICODE:
    case PICKLE_OP_BINUNICODE8:
    case PICKLE_OP_SHORT_BINSTRING:
    case PICKLE_OP_BINSTRING:
        return push_text(p, pickle_little(data, size), err);
    case PICKLE_OP_SHORT_BINBYTES:
    case PICKLE_OP_BINBYTES:
    case PICKLE_OP_BINBYTES8:
    case PICKLE_OP_BYTEARRAY8:
        return push_opaque(p, pickle_little(data, size), err);
    case PICKLE_OP_EMPTY_SET:
        return push_opaque(p, 0, err);
    case PICKLE_OP_ADDITEMS:
        return drop_marked(p, 0, err);
    case PICKLE_OP_FROZENSET:
        return drop_marked(p, 1, err);
    default: /* FRAME: how the bytes were grouped when they were written */
        return 0;
    }
}

/* --- a whole pickle --------------------------------------------------------------------------------------------- */

static int check_begin(struct pickle *p, struct error *err)
{
    const uint8_t *data = pickle_take(p, 2);
    if (!data) {
        if (p->read_error)
            return pickle_truncated(p, err);
        return error_set(err, EBADMSG, "empty, or nearly so: not a pickle");
    }
    if (data[0] != PICKLE_OP_PROTO)
        return error_set(err, EBADMSG, "not a pickle of protocol 2 to 5: it begins with 0x%02x 0x%02x", data[0],
                         data[1]);
    if (data[1] < 2 || data[1] > 5)
        return error_set(err, EBADMSG, "a pickle of protocol %u; protocols 2 to 5 are read", data[1]);
    return 0;
}

int pickle_read(struct pickle *p, struct pickle_value *result, struct error *err)
{
    int rc = check_begin(p, err);
    while (rc == 0) {
        p->op_offset = pickle_offset(p);
        const uint8_t *op = pickle_take(p, 1);
        if (!op)
            return pickle_truncated(p, err);
        if (*op == PICKLE_OP_STOP)
            break;
        rc = step(p, *op, err);
    }
    if (rc)
        return rc;
    if (p->mark_count || p->depth != 1)
        return pickle_damaged(p, err, "stops with more or less than one value");
    rc = pickle_seal(p, &p->stack[0], err);
    *result = p->stack[0];
    return rc;
}

struct pickle *pickle_open(const struct pickle_user *user)
{
    struct pickle *p = xcalloc(1, sizeof *p);
    p->user = *user;
    p->buffer = xmalloc(PICKLE_BUFFER_BYTES);
    p->stack_capacity = 4096;
    p->stack = xmalloc(p->stack_capacity * sizeof *p->stack);
    return p;
}

void pickle_close(struct pickle *p)
{
    if (!p)
        return;
    pickle_boxes_free(p);
    pickle_texts_free(p);
    free(p->buffer);
    free(p);
}
