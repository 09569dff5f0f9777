#include "pickle_private.h"

#include "../../common/array.h"

#include <stdlib.h>
#include <string.h>

int pickle_stack_grow(struct pickle *p, struct error *err)
{
    if (p->depth >= PICKLE_STACK_MAX)
        return pickle_too_much(p, err, "more values in one container than a memory snapshot has");
    ARRAY_ROOM(p->stack, p->depth + 1ul, p->stack_capacity);
    return 0;
}

const struct pickle_value *pickle_items(const struct pickle *p, struct pickle_value v, size_t *count)
{
    const struct pickle_box *b = pickle_box_of(p, v);
    *count = b->count;
    return b->items;
}

int pickle_box_open(struct pickle *p, enum pickle_type type, struct pickle_value *value, struct error *err)
{
    uint32_t index;
    if (p->free_count) {
        index = p->free_boxes[--p->free_count];
    } else {
        if (p->box_count == PICKLE_KEPT_MAX)
            return pickle_too_much(p, err, "more lists and dicts at once than a memory snapshot has");
        ARRAY_ROOM(p->boxes, p->box_count + 1ul, p->box_capacity);
        index = p->box_count++;
        p->boxes[index] = (struct pickle_box){0};
    }
    struct pickle_box *b = &p->boxes[index];
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
    struct pickle_box *b = &p->boxes[index];
    *ARRAY_ADD(p->free_boxes, p->free_count, p->free_capacity) = index;
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

int pickle_seal(struct pickle *p, struct pickle_value *value, struct error *err)
{
    struct pickle_value v = *value;
    struct pickle_box *b;
    if (!pickle_is_box(v) || (b = pickle_box_of(p, v))->sealed)
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
        return pickle_too_much(p, err, "more items than memprof counts");
    if (b->memo && p->memo[b->memo - 1] == (uint32_t)v.bits)
        p->memo[b->memo - 1] = memo_pack(result);
    box_free(p, pickle_index(v));
    *value = result;
    return 0;
}

int pickle_box_add(struct pickle *p, struct pickle_value box, struct pickle_value *values, uint32_t count,
                   struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = pickle_seal(p, &values[i], err);
        if (rc)
            return rc;
    }
    struct pickle_box *b = pickle_box_of(p, box); /* now: sealing calls the user, but opens no box */
    if (!count)
        return 0;
    if ((uint64_t)b->count + count > 2ull * PICKLE_STACK_MAX)
        return pickle_too_much(p, err, "a list longer than a memory snapshot has");
    ARRAY_ROOM(b->items, b->count + count, b->capacity);
    memcpy(b->items + b->count, values, count * sizeof *values);
    b->count += count;
    return 0;
}

int pickle_memo_put(struct pickle *p, uint64_t index, struct error *err)
{
    if (p->depth <= pickle_base(p))
        return pickle_damaged(p, err, "remembers a value that is not there");
    /* a remembered value takes at least two bytes of the file */
    if (index > pickle_offset(p) || index > PICKLE_INDEX_MAX)
        return pickle_damaged(p, err, "remembers a value under a number that no pickler uses");
    if (index >= p->memo_capacity) {
        uint64_t capacity = p->memo_capacity ? p->memo_capacity * 2ull : 4096;
        while (capacity <= index)
            capacity *= 2;
        p->memo = xrealloc(p->memo, capacity * sizeof *p->memo);
        memset(p->memo + p->memo_capacity, 0xff, (capacity - p->memo_capacity) * sizeof *p->memo);
        p->memo_capacity = (uint32_t)capacity;
    }
    struct pickle_value v = p->stack[p->depth - 1];
    if (pickle_is_box(v) && !pickle_box_of(p, v)->sealed) {
        struct pickle_box *b = pickle_box_of(p, v);
        if (b->memo)
            return pickle_damaged(p, err, "remembers a list or dict twice");
        b->memo = (uint32_t)index + 1;
    }
    p->memo[index] = memo_pack(v);
    p->memo_count++;
    return 0;
}

int pickle_memo_get(struct pickle *p, uint64_t index, struct error *err)
{
    if (index >= p->memo_capacity || p->memo[index] == UINT32_MAX)
        return pickle_damaged(p, err, "asks for a value that was not remembered");
    struct pickle_value v = {p->memo[index]};
    if (pickle_is_box(v) && !pickle_box_of(p, v)->sealed) {
        /* still on the stack: from now on it stays as it is, and a list in itself is refused when it is added to */
        struct pickle_box *b = pickle_box_of(p, v);
        if (b->memo != index + 1 || b->at >= p->depth || p->stack[b->at].bits != v.bits)
            return pickle_damaged(p, err, "asks for a value that has changed since");
        uint32_t at = b->at;
        int rc = pickle_seal(p, &p->stack[at], err);
        if (rc)
            return rc;
        v = p->stack[at];
    }
    return pickle_push(p, v, err);
}

void pickle_boxes_free(struct pickle *p)
{
    for (uint32_t i = 0; i < p->box_count; i++)
        free(p->boxes[i].items);
    free(p->boxes);
    free(p->free_boxes);
    free(p->memo);
    free(p->stack);
}
