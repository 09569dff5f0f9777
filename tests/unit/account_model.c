#include "account_model.h"

#include "random.h"

#include <stdlib.h>

static const unsigned spaces[KIND_COUNT] = {0, 1, 5, 6, 6, 3, 6, 4, 2}; /* kinds that may share an address */

static struct stats *targets(struct model *m, unsigned device, unsigned kind, unsigned stack, unsigned thread,
                             struct stats *t[3])
{
    t[0] = &m->sites[device][kind][stack];
    t[1] = &m->threads[device][kind][thread];
    t[2] = &m->threads[device][KIND_COUNT][thread];
    return t[0];
}

static void note_change(struct model *m, unsigned device)
{
    if (device == 0)
        m->changes[m->change_count++] = (struct change){m->now_ns, m->peaks[0][KIND_COUNT].active};
}

static void note_event(struct model *m)
{
    m->events++;
    if (m->snapshot_count < MODEL_SNAPSHOTS && rnd(5000) == 0) {
        struct snapshot *s = &m->snapshots[m->snapshot_count++];
        s->event_count = m->events;
        for (unsigned d = 0; d < MODEL_DEVICES; d++)
            for (unsigned k = 0; k < KIND_COUNT; k++)
                for (unsigned i = 0; i < MODEL_STACKS; i++) {
                    s->bytes[d][k][i] = m->sites[d][k][i].live_bytes;
                    s->count[d][k][i] = m->sites[d][k][i].live_count;
                }
    }
}

static void reserved_change(struct model *m, unsigned device, unsigned kind, int64_t bytes)
{
    const unsigned kinds[2] = {kind, KIND_COUNT};
    for (unsigned i = 0; i < 2; i++) {
        uint64_t *r = &m->reserved[device][kinds[i]], *p = &m->reserved_peak[device][kinds[i]];
        *r += (uint64_t)bytes;
        *p = *r > *p ? *r : *p;
    }
}

static int has_other_parts(const struct model *m, const struct block *b)
{
    for (size_t i = 0; b->is_part && i < m->block_count; i++)
        if (m->blocks[i].thread == b->thread && m->blocks[i].number == b->number)
            return 1;
    return 0;
}

/* Of a block that was split, a part leaves; the block with the last one. One that is resized is no temporary. */
static void model_death(struct model *m, size_t index, int ends, int is_resized)
{
    struct block b = m->blocks[index];
    struct stats *t[3];
    m->blocks[index] = m->blocks[--m->block_count];
    unsigned count = !has_other_parts(m, &b);
    targets(m, b.device, b.kind, b.stack, b.thread, t);
    for (unsigned i = 0; i < 3; i++) {
        t[i]->live_bytes -= b.size;
        t[i]->live_count -= count;
        if (ends) {
            t[i]->end_bytes += b.size;
            t[i]->end_count += count;
            continue;
        }
        t[i]->free_count += count;
        t[i]->free_bytes += b.size;
        t[i]->lifetime_ns += count * (m->now_ns - b.time_ns);
        if (count && !is_resized && m->thread_allocs[b.thread] == b.number && b.address == b.birth_address) {
            t[i]->temporary_count++;
            t[i]->temporary_bytes += b.size;
        }
    }
    for (unsigned k = b.kind;; k = KIND_COUNT) {
        m->peaks[b.device][k].active -= b.size;
        m->peaks[b.device][k].blocks -= count;
        if (k == KIND_COUNT)
            break;
    }
    if (b.kind == KIND_map && b.device == 0)
        reserved_change(m, 0, KIND_map, -(int64_t)b.size);
    note_change(m, b.device);
    if (!ends)
        note_event(m);
}

static long model_find(const struct model *m, unsigned process, uint64_t address, unsigned space)
{
    for (size_t i = 0; i < m->block_count; i++)
        if (m->blocks[i].process == process && m->blocks[i].address == address && m->blocks[i].space == space)
            return (long)i;
    return -1;
}

static void new_peak(struct model *m, unsigned device, unsigned kind)
{
    struct peak *p = &m->peaks[device][kind];
    p->bytes = p->active;
    p->time_ns = m->now_ns;
    p->count = p->blocks;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        for (unsigned i = 0; i < MODEL_STACKS + MODEL_THREADS; i++) {
            struct stats *s = i < MODEL_STACKS ? &m->sites[device][k][i] : &m->threads[device][k][i - MODEL_STACKS];
            if (kind == KIND_COUNT) {
                s->at_peak_bytes = s->live_bytes;
                s->at_peak_count = s->live_count;
            } else if (k == kind) {
                s->at_kind_peak_bytes = s->live_bytes;
            }
        }
    }
}

static void model_birth(struct model *m, const struct event *e)
{
    unsigned space = spaces[e->kind];
    long there = model_find(m, e->process_id, e->address, space);
    struct stats *t[3];
    if (there >= 0) {
        m->replaced++;
        model_death(m, (size_t)there, 0, 0);
    }
    m->blocks[m->block_count++] =
        (struct block){e->address,    e->size_bytes, m->now_ns,   ++m->thread_allocs[e->thread_id],
                       e->process_id, e->thread_id,  e->stack_id, e->device,
                       e->kind,       space,         0,           e->address};
    m->reallocs += e->op == EVENT_REALLOC_ALLOC;
    targets(m, e->device, e->kind, e->stack_id, e->thread_id, t);
    for (unsigned k = e->kind;; k = KIND_COUNT) {
        m->peaks[e->device][k].active += e->size_bytes;
        m->peaks[e->device][k].blocks++;
        if (k == KIND_COUNT)
            break;
    }
    if (e->kind == KIND_map && e->device == 0)
        reserved_change(m, 0, KIND_map, (int64_t)e->size_bytes);
    uint64_t active = m->peaks[e->device][KIND_COUNT].active, reserved = m->reserved[e->device][KIND_COUNT];
#define RAISE(field, value) t[i]->field = t[i]->field > (value) ? t[i]->field : (value)
    for (unsigned i = 0; i < 3; i++) {
        t[i]->alloc_count++;
        t[i]->alloc_bytes += e->size_bytes;
        t[i]->live_count++;
        t[i]->live_bytes += e->size_bytes;
        RAISE(own_peak_bytes, t[i]->live_bytes);
        RAISE(active_peak_bytes, active);
        RAISE(reserved_peak_bytes, reserved);
        RAISE(largest_bytes, e->size_bytes);
    }
    if (m->peaks[e->device][KIND_COUNT].active > m->peaks[e->device][KIND_COUNT].bytes)
        new_peak(m, e->device, KIND_COUNT);
    if (m->peaks[e->device][e->kind].active > m->peaks[e->device][e->kind].bytes)
        new_peak(m, e->device, e->kind);
    note_change(m, e->device);
    note_event(m);
}

static void model_end(struct model *m, unsigned process)
{
    char ended[MODEL_DEVICES][KIND_COUNT][MODEL_STACKS] = {0};
    for (size_t i = m->block_count; i-- > 0;) {
        struct block b = m->blocks[i];
        if (b.process != process)
            continue;
        ended[b.device][b.kind][b.stack] = 1;
        model_death(m, i, 1, 0);
    }
    for (unsigned i = 0; i < MODEL_SITES; i++) /* one event a site; no snapshots between: the order is not said */
        m->events += (uint64_t)((char *)ended)[i];
    reserved_change(m, 0, KIND_heap, -(int64_t)m->samples[process]);
    m->samples[process] = 0;
    m->has_inherited &= process != m->inheritor;
}

/* A fork's child: without what its first sample has beside its blocks, or the least that it had of it since. */
static void model_sample(struct model *m, const struct event *e)
{
    int64_t size = (int64_t)e->size_bytes, own = 0;
    if (e->inherited) {
        for (size_t i = 0; i < m->block_count; i++)
            if (m->blocks[i].process == e->process_id && spaces[m->blocks[i].kind] == spaces[KIND_heap])
                own += (int64_t)m->blocks[i].size;
        if (!m->has_inherited)
            m->inherited_heap = size > own ? size - own : 0;
        m->has_inherited = 1;
        m->inheritor = e->process_id;
        m->inherited_heap = m->inherited_heap < size ? m->inherited_heap : size;
        int64_t least = size < 4096 ? size : 4096;
        size = size - m->inherited_heap > least ? size - m->inherited_heap : least;
    }
    reserved_change(m, 0, KIND_heap, size - (int64_t)m->samples[e->process_id]);
    m->samples[e->process_id] = (uint64_t)size;
}

/* Kept as an event, of a heap's block. */
static void model_inherited(struct model *m, const struct event *e)
{
    m->inherited++;
    if (e->kind == KIND_heap && e->device == 0)
        note_event(m);
}

static void model_split(struct model *m, const struct event *e)
{
    long i = model_find(m, e->process_id, e->address, spaces[e->kind]);
    if (i < 0 || !e->size_bytes || e->size_bytes >= m->blocks[i].size ||
        model_find(m, e->process_id, e->address + e->size_bytes, spaces[e->kind]) >= 0)
        return;
    struct block *b = &m->blocks[i];
    b->is_part = 1;
    m->blocks[m->block_count] = *b;
    m->blocks[m->block_count].address += e->size_bytes;
    m->blocks[m->block_count++].size -= e->size_bytes;
    b->size = e->size_bytes;
    note_event(m);
}

void model_event(struct model *m, const struct event *e)
{
    m->now_ns = e->time_ns;
    switch (e->op) {
    case EVENT_ALLOC:
    case EVENT_REALLOC_ALLOC:
        model_birth(m, e);
        break;
    case EVENT_SPLIT:
        model_split(m, e);
        break;
    case EVENT_FREE:
    case EVENT_PART_FREE:
    case EVENT_REALLOC_FREE: {
        long i = model_find(m, e->process_id, e->address, spaces[e->kind]);
        size_t change_count = m->change_count;
        if (i >= 0)
            model_death(m, (size_t)i, 0, e->op == EVENT_REALLOC_FREE);
        else if (e->inherited)
            model_inherited(m, e);
        else
            m->unmatched++;
        if (e->op == EVENT_REALLOC_FREE) /* one step with the allocation that follows */
            m->change_count = change_count;
        break;
    }
    case EVENT_RESERVED:
        model_sample(m, e);
        break;
    case EVENT_PROCESS_END:
        model_end(m, e->process_id);
        break;
    }
}

struct model *model_open(size_t events)
{
    struct model *m = calloc(1, sizeof *m);
    m->blocks = calloc(events * 2 + 10, sizeof *m->blocks);
    m->changes = calloc(events * 4 + 10, sizeof *m->changes);
    return m;
}

void model_close(struct model *m)
{
    free(m->blocks);
    free(m->changes);
    free(m);
}
