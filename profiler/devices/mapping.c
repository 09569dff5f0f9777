#include "mapping.h"

#include "../../common/array.h"
#include "../../common/range.h"

#include "../../common/error.h"
#include "../../common/kind.h"
#include "../wire.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE        4096ull
#define ADDRESS_END (1ull << 57) /* of user space with five levels of pages */

enum { RANGE_BLOCK, RANGE_RESERVE, RANGE_SEGMENT, RANGE_ARENA };

struct mapping {
    struct range_map *ranges;
    struct attached { /* by shmat: shmdt takes the whole, and does not say how much that is */
        uint64_t start, end;
    } * attached;
    uint32_t attached_count, attached_capacity;
};

/* One call of mapping_apply. */
struct change {
    struct range_map *ranges;
    void (*emit)(void *arg, const struct event *event);
    void *arg;
    uint32_t stack_id; /* of its births and deaths */
};

struct mapping *mapping_open(void)
{
    struct mapping *m = xcalloc(1, sizeof *m);
    m->ranges = range_map_open();
    return m;
}

void mapping_close(struct mapping *m)
{
    if (!m)
        return;
    range_map_close(m->ranges);
    free(m->attached);
    free(m);
}

uint64_t mapping_block_at(struct mapping *m, uint64_t address)
{
    const struct range *r = range_map_find(m->ranges, address);
    return r && r->start <= address && r->type == RANGE_BLOCK ? r->start : 0;
}

/* What an allocator maps for itself is reserved for the blocks that it hands out; those of Python's arenas nobody sees.
 */
static const uint8_t kind_of[] = {
    [RANGE_BLOCK] = KIND_map, [RANGE_RESERVE] = KIND_map, [RANGE_SEGMENT] = KIND_heap, [RANGE_ARENA] = KIND_arena};

static int is_segment(unsigned type)
{
    return type == RANGE_SEGMENT || type == RANGE_ARENA;
}

static void emit(const struct change *c, unsigned op, unsigned type, uint64_t start, uint64_t end, uint32_t stack_id)
{
    struct event event = {
        .op = (uint8_t)op, .address = start, .size_bytes = end - start, .stack_id = stack_id, .kind = kind_of[type]};
    c->emit(c->arg, &event);
}

static void add(const struct change *c, unsigned type, uint64_t start, uint64_t end, uint32_t stack_id)
{
    struct range r = {.start = start, .end = end, .stack_id = stack_id, .type = (uint8_t)type};
    range_map_insert(c->ranges, &r);
}

/* A new range of this call, with its event. */
static void birth(const struct change *c, unsigned type, uint64_t start, uint64_t end, unsigned block_op)
{
    add(c, type, start, end, c->stack_id);
    if (type == RANGE_BLOCK)
        emit(c, block_op, type, start, end, c->stack_id);
    else if (is_segment(type))
        emit(c, EVENT_SEGMENT_ALLOC, type, start, end, c->stack_id);
}

/* A block that loses a part is one block still: what remains of it is marked (flag), as the last part ends it. */
static void cut_block(const struct change *c, const struct range *r, uint64_t from, uint64_t to)
{
    if (from > r->start)
        emit(c, EVENT_SPLIT, r->type, r->start, from, 0);
    if (to < r->end)
        emit(c, EVENT_SPLIT, r->type, from, to, 0);
    emit(c, EVENT_PART_FREE, r->type, from, to, c->stack_id);
}

/* Takes [start, end) out of one range; what remains stays with its own stack. is_realloc: the caller allocates anew. */
static void cut(const struct change *c, struct range *found, uint64_t start, uint64_t end, int is_realloc)
{
    struct range r = *found;
    uint64_t from = r.start > start ? r.start : start, to = r.end < end ? r.end : end;
    int whole = from == r.start && to == r.end && !r.flag;
    range_map_remove(c->ranges, found);
    if (r.type == RANGE_BLOCK && whole)
        emit(c, is_realloc ? EVENT_REALLOC_FREE : EVENT_FREE, r.type, r.start, r.end, c->stack_id);
    else if (r.type == RANGE_BLOCK)
        cut_block(c, &r, from, to);
    else if (is_segment(r.type))
        emit(c, EVENT_SEGMENT_FREE, r.type, from, to, 0);
    const uint64_t pieces[2][2] = {{r.start, from}, {to, r.end}};
    for (unsigned i = 0; i < 2; i++) {
        struct range piece = r;
        piece.start = pieces[i][0];
        piece.end = pieces[i][1];
        piece.flag = r.type == RANGE_BLOCK;
        if (piece.start < piece.end)
            range_map_insert(c->ranges, &piece);
    }
}

static void clear(const struct change *c, uint64_t start, uint64_t end)
{
    struct range *r;
    while (start < end && (r = range_map_find(c->ranges, start)) && r->start < end)
        cut(c, r, start, end, 0);
}

static unsigned type_of(uint32_t flags)
{
    return flags & WIRE_MAP_RESERVE   ? RANGE_RESERVE
           : flags & WIRE_MAP_SEGMENT ? RANGE_SEGMENT
           : flags & WIRE_MAP_ARENA   ? RANGE_ARENA
                                      : RANGE_BLOCK;
}

/* The flags say what [start, end) is now. */
static void protect(const struct change *c, uint64_t start, uint64_t end, uint32_t flags)
{
    unsigned type = type_of(flags);
    struct range *r;
    for (uint64_t at = start; at < end && (r = range_map_find(c->ranges, at)) && r->start < end;) {
        uint64_t from = r->start > start ? r->start : start, to = r->end < end ? r->end : end;
        at = to;
        if ((r->type == RANGE_RESERVE) == (type == RANGE_RESERVE))
            continue;
        cut(c, r, from, to, 0);
        birth(c, type, from, to, EVENT_ALLOC);
    }
}

/* What lies in [start, end) counts as at its new place; -1: nothing is known there. */
static int strongest(const struct change *c, uint64_t start, uint64_t end)
{
    int type = -1;
    struct range *r;
    for (uint64_t at = start; at < end && (r = range_map_find(c->ranges, at)) && r->start < end; at = r->end) {
        if (r->type == RANGE_BLOCK)
            return RANGE_BLOCK;
        if (type < 0 || !is_segment((unsigned)type))
            type = r->type;
    }
    return type;
}

static void move(const struct change *c, uint64_t start, uint64_t end, uint64_t new_start, uint64_t new_end,
                 uint32_t flags)
{
    int type = strongest(c, start, end), keeps_old = flags & WIRE_MAP_KEEP_OLD ? 1 : 0, had_block = 0;
    struct range *r;
    while (!keeps_old && start < end && (r = range_map_find(c->ranges, start)) && r->start < end) {
        had_block |= r->type == RANGE_BLOCK;
        cut(c, r, start, end, 1);
    }
    clear(c, new_start, new_end);
    if (type >= 0 && new_start < new_end)
        birth(c, (unsigned)type, new_start, new_end, had_block ? EVENT_REALLOC_ALLOC : EVENT_ALLOC);
}

/* [address, address + length) in whole pages; -EINVAL outside user space. */
static int pages(uint64_t address, uint64_t length, uint64_t *start, uint64_t *end)
{
    *start = address & ~(PAGE - 1);
    if (address >= ADDRESS_END || length > ADDRESS_END - address)
        return -EINVAL;
    *end = (address + length + PAGE - 1) & ~(PAGE - 1);
    return 0;
}

static void move_break(const struct change *c, uint64_t old, uint64_t new, uint32_t flags)
{
    if (new < old) {
        clear(c, new, old);
    } else if (new > old) {
        clear(c, old, new);
        birth(c, type_of(flags), old, new, EVENT_ALLOC);
    }
}

/* Segments that are gone as a whole are no longer attached. */
static void forget_attached(struct mapping *m, uint64_t start, uint64_t end)
{
    for (uint32_t i = m->attached_count; i-- > 0;)
        if (m->attached[i].start >= start && m->attached[i].end <= end)
            m->attached[i] = m->attached[--m->attached_count];
}

/* The end of the segment that was attached there; start: none was. */
static uint64_t attached_end(const struct mapping *m, uint64_t start)
{
    for (uint32_t i = 0; i < m->attached_count; i++)
        if (m->attached[i].start == start)
            return m->attached[i].end;
    return start;
}

static void map(const struct change *c, struct mapping *m, uint64_t start, uint64_t end, uint32_t flags)
{
    clear(c, start, end);
    forget_attached(m, start, end);
    if (!(flags & WIRE_MAP_FILE))
        birth(c, type_of(flags), start, end, EVENT_ALLOC);
    if (flags & WIRE_MAP_ATTACH)
        *ARRAY_ADD(m->attached, m->attached_count, m->attached_capacity) = (struct attached){start, end};
}

int mapping_apply(struct mapping *m, const struct mapping_op *op, void (*emit)(void *arg, const struct event *event),
                  void *arg)
{
    const struct change c = {m->ranges, emit, arg, op->stack_id};
    uint64_t start, end, new_start, new_end;
    if (op->op == WIRE_BREAK) {
        if (op->address >= ADDRESS_END || op->length >= ADDRESS_END)
            return -EINVAL;
        move_break(&c, op->length, op->address, op->flags);
        return 0;
    }
    if (pages(op->address, op->length, &start, &end) != 0)
        return -EINVAL;
    if (op->op == WIRE_UNMAP && op->flags & WIRE_MAP_ATTACH)
        end = attached_end(m, start = op->address);
    if (start == end && op->op != WIRE_REMAP) /* mremap from nothing makes a second map of shared memory */
        return 0;
    switch (op->op) {
    case WIRE_MAP:
        map(&c, m, start, end, op->flags);
        return 0;
    case WIRE_UNMAP:
        clear(&c, start, end);
        forget_attached(m, start, end);
        return 0;
    case WIRE_PROTECT:
        protect(&c, start, end, op->flags);
        return 0;
    case WIRE_REMAP:
        if (pages(op->new_address, op->new_length, &new_start, &new_end) != 0)
            return -EINVAL;
        move(&c, start, end, new_start, new_end, op->flags);
        return 0;
    default:
        return -EINVAL;
    }
}
