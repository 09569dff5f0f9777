#include "pickle.h"

#include "pickle_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES   (1u << 18)
#define ARENA_BYTES    (1u << 20)
#define LONG_MAX_BYTES 255u

struct box { /* a list, dict or tuple */
    struct pickle_value *items;
    uint32_t count, capacity;
    uint32_t memo; /* its place in the memo plus 1; 0: none */
    uint32_t at;   /* its place on the stack while it is open */
    uint8_t type;  /* enum pickle_type; 0: free */
    uint8_t sealed;
};

struct text {
    const char *data;
    uint32_t length, hash;
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

    struct box *boxes;
    uint32_t box_count, box_capacity;
    uint32_t *free_boxes;
    uint32_t free_count, free_capacity;

    struct text *texts;
    uint32_t text_count, text_capacity;
    uint32_t *text_slots; /* number plus 1; a power of two of them */
    uint32_t slot_count;
    uint64_t text_bytes;
    char **arenas;
    uint32_t arena_count;
    size_t arena_used, arena_size;
    char *scratch; /* a text that the buffer does not hold whole */
    size_t scratch_capacity;
};

/* --- bytes ------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) int fill(struct pickle *p)
{
    size_t kept = p->end - p->next;
    memmove(p->buffer, p->buffer + p->next, kept);
    p->buffer_offset += p->next;
    p->next = 0;
    p->end = kept;
    long got = p->user.read(p->user.context, p->buffer + kept, BUFFER_BYTES - kept);
    if (got <= 0) {
        p->read_error = (int)got;
        return -1;
    }
    p->end += (size_t)got;
    return 0;
}

/* The next size bytes (at most BUFFER_BYTES), or NULL where the file ends. */
static inline const uint8_t *take(struct pickle *p, size_t size)
{
    while (__builtin_expect(p->end - p->next < size, 0))
        if (fill(p))
            return NULL;
    const uint8_t *data = p->buffer + p->next;
    p->next += size;
    return data;
}

uint64_t pickle_offset(const struct pickle *p)
{
    return p->buffer_offset + p->next;
}

static uint64_t little(const uint8_t *data, unsigned size)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < size; i++)
        v |= (uint64_t)data[i] << (8 * i);
    return v;
}

static int damaged(struct pickle *p, struct error *err, const char *what)
{
    return error_set(err, EBADMSG, "byte %llu: %s", (unsigned long long)p->op_offset, what);
}

static int too_much(struct pickle *p, struct error *err, const char *what)
{
    return error_set(err, E2BIG, "byte %llu: %s", (unsigned long long)p->op_offset, what);
}

static int truncated(struct pickle *p, struct error *err)
{
    if (p->read_error)
        return error_set(err, -p->read_error, "reading: %s", strerror(-p->read_error));
    return error_set(err, EBADMSG, "ends at byte %llu, before the pickle does: it was cut",
                     (unsigned long long)(p->buffer_offset + p->end));
}

/* --- texts ------------------------------------------------------------------------------------------------------ */

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
        const struct text *t = &p->texts[p->text_slots[slot] - 1];
        if (t->hash == hash && t->length == length && memcmp(t->data, data, length) == 0) {
            *value = pickle_make(PICKLE_TEXT, p->text_slots[slot] - 1);
            return 0;
        }
    }
    p->text_bytes += length + sizeof(struct text);
    if (p->text_count == PICKLE_INDEX_MAX || p->text_bytes > PICKLE_TEXTS_MAX)
        return too_much(p, err, "more text than a memory snapshot has");
    if (p->text_count == p->text_capacity) {
        p->text_capacity = p->text_capacity ? p->text_capacity * 2 : 1024;
        p->texts = xrealloc(p->texts, p->text_capacity * sizeof *p->texts);
    }
    p->texts[p->text_count] = (struct text){text_keep(p, data, length), (uint32_t)length, hash};
    *value = pickle_make(PICKLE_TEXT, p->text_count);
    p->text_slots[slot] = ++p->text_count;
    return 0;
}

/* length bytes of the file as a text; larger than the buffer, through scratch. */
static int text_read(struct pickle *p, uint64_t length, struct pickle_value *value, struct error *err)
{
    if (length > PICKLE_TEXT_MAX)
        return too_much(p, err, "a text of more than 16 MiB");
    if (length <= BUFFER_BYTES) {
        const uint8_t *data = take(p, length);
        return data ? text_intern(p, (const char *)data, length, value, err) : truncated(p, err);
    }
    if (p->scratch_capacity < length) {
        p->scratch_capacity = length;
        p->scratch = xrealloc(p->scratch, length);
    }
    for (size_t done = 0; done < length;) {
        size_t part = length - done < BUFFER_BYTES ? length - done : BUFFER_BYTES;
        const uint8_t *data = take(p, part);
        if (!data)
            return truncated(p, err);
        memcpy(p->scratch + done, data, part);
        done += part;
    }
    return text_intern(p, p->scratch, length, value, err);
}

static int skip(struct pickle *p, uint64_t length, struct error *err)
{
    while (length) {
        size_t part = length < BUFFER_BYTES ? length : BUFFER_BYTES;
        if (!take(p, part))
            return truncated(p, err);
        length -= part;
    }
    return 0;
}

const char *pickle_text(const struct pickle *p, struct pickle_value v, size_t *length)
{
    const struct text *t = &p->texts[pickle_index(v)];
    if (length)
        *length = t->length;
    return t->data;
}

uint32_t pickle_text_count(const struct pickle *p)
{
    return p->text_count;
}

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

static int is_box(struct pickle_value v)
{
    return pickle_type(v) >= PICKLE_LIST && pickle_type(v) <= PICKLE_TUPLE;
}

static struct box *box_of(const struct pickle *p, struct pickle_value v)
{
    return &p->boxes[pickle_index(v)];
}

const struct pickle_value *pickle_items(const struct pickle *p, struct pickle_value v, size_t *count)
{
    const struct box *b = box_of(p, v);
    *count = b->count;
    return b->items;
}

static int push(struct pickle *p, struct pickle_value v, struct error *err)
{
    if (__builtin_expect(p->depth == p->stack_capacity, 0)) {
        if (p->depth >= PICKLE_STACK_MAX)
            return too_much(p, err, "more values in one container than a memory snapshot has");
        p->stack_capacity *= 2;
        p->stack = xrealloc(p->stack, p->stack_capacity * sizeof *p->stack);
    }
    p->stack[p->depth++] = v;
    return 0;
}

static int box_open(struct pickle *p, enum pickle_type type, struct pickle_value *value, struct error *err)
{
    uint32_t index;
    if (p->free_count) {
        index = p->free_boxes[--p->free_count];
    } else {
        if (p->box_count == PICKLE_KEPT_MAX)
            return too_much(p, err, "more lists and dicts at once than a memory snapshot has");
        if (p->box_count == p->box_capacity) {
            p->box_capacity = p->box_capacity ? p->box_capacity * 2 : 256;
            p->boxes = xrealloc(p->boxes, p->box_capacity * sizeof *p->boxes);
        }
        index = p->box_count++;
        p->boxes[index] = (struct box){0};
    }
    struct box *b = &p->boxes[index];
    b->type = (uint8_t)type;
    b->sealed = 0;
    b->count = 0;
    b->memo = 0;
    b->at = p->depth;
    *value = pickle_make(type, index);
    return 0;
}

static void box_free(struct pickle *p, uint32_t index)
{
    struct box *b = &p->boxes[index];
    if (p->free_count == p->free_capacity) {
        p->free_capacity = p->free_capacity ? p->free_capacity * 2 : 256;
        p->free_boxes = xrealloc(p->free_boxes, p->free_capacity * sizeof *p->free_boxes);
    }
    p->free_boxes[p->free_count++] = index;
    b->type = 0;
    b->count = 0;
    if (b->capacity > 1024) { /* the next user of the place is small, most likely */
        free(b->items);
        b->items = NULL;
        b->capacity = 0;
    }
}

static uint32_t memo_pack(struct pickle_value v)
{
    if (pickle_type(v) == PICKLE_INT || pickle_type(v) == PICKLE_FLOAT)
        return PICKLE_OPAQUE; /* no pickler does that */
    return (uint32_t)v.bits;
}

/* Shows a complete container to the user: *value becomes what stands for it. */
static int seal(struct pickle *p, struct pickle_value *value, struct error *err)
{
    struct pickle_value v = *value;
    struct box *b;
    if (!is_box(v) || (b = box_of(p, v))->sealed)
        return 0;
    struct pickle_value result = v;
    b->sealed = 1;
    if (b->capacity > 1024 && b->count < b->capacity / 2) {
        b->capacity = b->count ? b->count : 1;
        b->items = xrealloc(b->items, b->capacity * sizeof *b->items);
    }
    int rc = p->user.complete(p->user.context, p, (enum pickle_type)b->type, b->items, b->count, &result, err);
    if (rc)
        return rc;
    if (result.bits == v.bits)
        return 0;
    if (result.bits >> 32)
        return too_much(p, err, "more items than memprof counts");
    if (b->memo && p->memo[b->memo - 1] == (uint32_t)v.bits)
        p->memo[b->memo - 1] = memo_pack(result);
    box_free(p, pickle_index(v));
    *value = result;
    return 0;
}

static int box_add(struct pickle *p, struct pickle_value box, struct pickle_value *values, uint32_t count,
                   struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = seal(p, &values[i], err);
        if (rc)
            return rc;
    }
    struct box *b = box_of(p, box); /* now: sealing calls the user, but opens no box */
    if (!count)
        return 0;
    if (b->capacity - b->count < count) {
        uint64_t capacity = b->capacity ? b->capacity * 2ull : 16;
        while (capacity < (uint64_t)b->count + count)
            capacity *= 2;
        if (capacity > 2ull * PICKLE_STACK_MAX)
            return too_much(p, err, "a list longer than a memory snapshot has");
        b->items = xrealloc(b->items, capacity * sizeof *b->items);
        b->capacity = (uint32_t)capacity;
    }
    memcpy(b->items + b->count, values, count * sizeof *values);
    b->count += count;
    return 0;
}

/* --- opcodes ---------------------------------------------------------------------------------------------------- */

static uint32_t base(const struct pickle *p) /* of the stack above the last mark */
{
    return p->mark_count ? p->marks[p->mark_count - 1] : 0;
}

/* A dict right below a new list or dict can no longer grow: a dict's next item would begin with a text. So the entries
 * of a list are shown one by one, however long the list. */
static int push_new(struct pickle *p, enum pickle_type type, struct error *err)
{
    struct pickle_value v;
    int rc = 0;
    if (p->depth > base(p) && pickle_type(p->stack[p->depth - 1]) == PICKLE_DICT)
        rc = seal(p, &p->stack[p->depth - 1], err);
    if (rc == 0)
        rc = box_open(p, type, &v, err);
    return rc ? rc : push(p, v, err);
}

static int container_below(struct pickle *p, uint32_t at, enum pickle_type type, struct pickle_value *box,
                           struct error *err)
{
    if (!at || pickle_type(p->stack[at - 1]) != type || box_of(p, p->stack[at - 1])->sealed)
        return damaged(p, err,
                       type == PICKLE_LIST ? "items are added to what is no list, or was complete"
                                           : "items are set in what is no dict, or was complete");
    *box = p->stack[at - 1];
    return 0;
}

static int add_single(struct pickle *p, enum pickle_type type, uint32_t count, struct error *err)
{
    struct pickle_value box;
    if (p->depth < base(p) + count + 1)
        return damaged(p, err, "takes more values than there are");
    p->depth -= count;
    int rc = container_below(p, p->depth, type, &box, err);
    return rc ? rc : box_add(p, box, p->stack + p->depth, count, err);
}

static int pop_mark(struct pickle *p, uint32_t *at, struct error *err)
{
    *at = 0;
    if (!p->mark_count)
        return damaged(p, err, "ends a group that was not begun");
    *at = p->marks[--p->mark_count];
    return 0;
}

static int add_marked(struct pickle *p, enum pickle_type type, struct error *err)
{
    struct pickle_value box;
    uint32_t at;
    int rc = pop_mark(p, &at, err);
    if (rc == 0 && at <= base(p))
        rc = damaged(p, err, "items are added to nothing");
    if (rc == 0)
        rc = container_below(p, at, type, &box, err);
    if (rc)
        return rc;
    uint32_t count = p->depth - at;
    if (type == PICKLE_DICT && count % 2)
        return damaged(p, err, "a key without a value");
    p->depth = at;
    return box_add(p, box, p->stack + at, count, err);
}

static int make_tuple(struct pickle *p, uint32_t at, struct error *err)
{
    struct pickle_value v;
    uint32_t count = p->depth - at;
    int rc = box_open(p, PICKLE_TUPLE, &v, err);
    if (rc == 0)
        rc = box_add(p, v, p->stack + at, count, err);
    if (rc)
        return rc;
    box_of(p, v)->at = p->depth = at;
    return push(p, v, err);
}

static int fixed_tuple(struct pickle *p, uint32_t count, struct error *err)
{
    if (p->depth < base(p) + count)
        return damaged(p, err, "takes more values than there are");
    return make_tuple(p, p->depth - count, err);
}

static int memo_put(struct pickle *p, uint64_t index, struct error *err)
{
    if (p->depth <= base(p))
        return damaged(p, err, "remembers a value that is not there");
    /* a remembered value takes at least two bytes of the file */
    if (index > pickle_offset(p) || index > PICKLE_INDEX_MAX)
        return damaged(p, err, "remembers a value under a number that no pickler uses");
    if (index >= p->memo_capacity) {
        uint64_t capacity = p->memo_capacity ? p->memo_capacity * 2ull : 4096;
        while (capacity <= index)
            capacity *= 2;
        p->memo = xrealloc(p->memo, capacity * sizeof *p->memo);
        memset(p->memo + p->memo_capacity, 0xff, (capacity - p->memo_capacity) * sizeof *p->memo);
        p->memo_capacity = (uint32_t)capacity;
    }
    struct pickle_value v = p->stack[p->depth - 1];
    if (is_box(v) && !box_of(p, v)->sealed) {
        struct box *b = box_of(p, v);
        if (b->memo)
            return damaged(p, err, "remembers a list or dict twice");
        b->memo = (uint32_t)index + 1;
    }
    p->memo[index] = memo_pack(v);
    p->memo_count++;
    return 0;
}

static int memo_get(struct pickle *p, uint64_t index, struct error *err)
{
    if (index >= p->memo_capacity || p->memo[index] == UINT32_MAX)
        return damaged(p, err, "asks for a value that was not remembered");
    struct pickle_value v = {p->memo[index]};
    if (is_box(v) && !box_of(p, v)->sealed) {
        /* still on the stack: from now on it stays as it is, and a list in itself is refused when it is added to */
        struct box *b = box_of(p, v);
        if (b->memo != index + 1 || b->at >= p->depth || p->stack[b->at].bits != v.bits)
            return damaged(p, err, "asks for a value that has changed since");
        uint32_t at = b->at;
        int rc = seal(p, &p->stack[at], err);
        if (rc)
            return rc;
        v = p->stack[at];
    }
    return push(p, v, err);
}

static int push_long(struct pickle *p, uint64_t length, struct error *err)
{
    if (length > LONG_MAX_BYTES)
        return too_much(p, err, "a number of more than 255 bytes");
    const uint8_t *data = take(p, length);
    if (!data)
        return truncated(p, err);
    if (length > 8) /* larger than anything counted here, unless the rest is the sign */
        for (uint64_t i = 8; i < length; i++)
            if (data[i] != (data[7] & 0x80 ? 0xff : 0))
                return push(p, pickle_make(PICKLE_OPAQUE, 0), err);
    unsigned used = length < 8 ? (unsigned)length : 8;
    uint64_t v = little(data, used);
    if (used && used < 8 && data[used - 1] & 0x80)
        v |= ~0ull << (8 * used);
    return push(p, make_int((int64_t)v), err);
}

static int push_float(struct pickle *p, const uint8_t *data, struct error *err)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; i++)
        bits = bits << 8 | data[i];
    return push(p, (struct pickle_value){(bits & ~15ull) | PICKLE_FLOAT}, err);
}

static int push_text(struct pickle *p, uint64_t length, struct error *err)
{
    struct pickle_value v;
    int rc = text_read(p, length, &v, err);
    return rc ? rc : push(p, v, err);
}

static int push_opaque(struct pickle *p, uint64_t length, struct error *err)
{
    int rc = skip(p, length, err);
    return rc ? rc : push(p, pickle_make(PICKLE_OPAQUE, 0), err);
}

/* A set: its items go, it stays one opaque value. */
static int drop_marked(struct pickle *p, int makes_one, struct error *err)
{
    uint32_t at;
    int rc = pop_mark(p, &at, err);
    if (rc)
        return rc;
    for (uint32_t i = at; i < p->depth; i++)
        if ((rc = seal(p, &p->stack[i], err)))
            return rc;
    p->depth = at;
    if (makes_one)
        return push(p, pickle_make(PICKLE_OPAQUE, 0), err);
    if (p->depth <= base(p) || pickle_type(p->stack[p->depth - 1]) != PICKLE_OPAQUE)
        return damaged(p, err, "items are added to what is no set");
    return 0;
}

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
    if (size && !(data = take(p, size)))
        return truncated(p, err);
    switch (op) {
    case PICKLE_OP_MEMOIZE:
        return memo_put(p, p->memo_count, err);
    case PICKLE_OP_BINPUT:
    case PICKLE_OP_LONG_BINPUT:
        return memo_put(p, little(data, size), err);
    case PICKLE_OP_BINGET:
    case PICKLE_OP_LONG_BINGET:
        return memo_get(p, little(data, size), err);
    case PICKLE_OP_MARK:
        if (p->mark_count == PICKLE_DEPTH_MAX)
            return too_much(p, err, "nested deeper than a memory snapshot is");
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
        return push(p, make_int((int32_t)little(data, 4)), err);
    case PICKLE_OP_BININT1:
    case PICKLE_OP_BININT2:
        return push(p, make_int((int64_t)little(data, size)), err);
    case PICKLE_OP_LONG1:
    case PICKLE_OP_LONG4:
        return push_long(p, little(data, size), err);
    case PICKLE_OP_BINFLOAT:
        return push_float(p, data, err);
    case PICKLE_OP_NONE:
        return push(p, pickle_make(PICKLE_NONE, 0), err);
    case PICKLE_OP_NEWTRUE:
    case PICKLE_OP_NEWFALSE:
        return push(p, pickle_make(PICKLE_BOOL, op == PICKLE_OP_NEWTRUE), err);
    case PICKLE_OP_SHORT_BINUNICODE:
    case PICKLE_OP_BINUNICODE:
    case PICKLE_OP_BINUNICODE8:
    case PICKLE_OP_SHORT_BINSTRING:
    case PICKLE_OP_BINSTRING:
        return push_text(p, little(data, size), err);
    case PICKLE_OP_SHORT_BINBYTES:
    case PICKLE_OP_BINBYTES:
    case PICKLE_OP_BINBYTES8:
    case PICKLE_OP_BYTEARRAY8:
        return push_opaque(p, little(data, size), err);
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
    const uint8_t *data = take(p, 2);
    if (!data) {
        if (p->read_error)
            return truncated(p, err);
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
        const uint8_t *op = take(p, 1);
        if (!op)
            return truncated(p, err);
        if (*op == PICKLE_OP_STOP)
            break;
        rc = step(p, *op, err);
    }
    if (rc)
        return rc;
    if (p->mark_count || p->depth != 1)
        return damaged(p, err, "stops with more or less than one value");
    rc = seal(p, &p->stack[0], err);
    *result = p->stack[0];
    return rc;
}

uint64_t pickle_rest(struct pickle *p)
{
    uint64_t bytes = p->end - p->next;
    p->next = p->end;
    while (bytes < PICKLE_REST_MAX && fill(p) == 0) {
        bytes += p->end - p->next;
        p->next = p->end;
    }
    return bytes < PICKLE_REST_MAX ? bytes : PICKLE_REST_MAX;
}

struct pickle *pickle_open(const struct pickle_user *user)
{
    struct pickle *p = xcalloc(1, sizeof *p);
    p->user = *user;
    p->buffer = xmalloc(BUFFER_BYTES);
    p->stack_capacity = 4096;
    p->stack = xmalloc(p->stack_capacity * sizeof *p->stack);
    return p;
}

void pickle_close(struct pickle *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->box_count; i++)
        free(p->boxes[i].items);
    for (uint32_t i = 0; i < p->arena_count; i++)
        free(p->arenas[i]);
    free(p->boxes);
    free(p->free_boxes);
    free(p->arenas);
    free(p->texts);
    free(p->text_slots);
    free(p->scratch);
    free(p->memo);
    free(p->stack);
    free(p->buffer);
    free(p);
}
