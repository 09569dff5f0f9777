#include "drain_private.h"

#include "../store/python.h"
#include "../store/sources.h"

#include <string.h>

static void define_stack(struct drain *d, struct ring *r, uint64_t position, uint64_t words)
{
    uint64_t addresses[WIRE_RECORD_MAX];
    uint64_t word1 = record_word_at(r, position, 1), first = WIRE_OP(word1) == WIRE_STACK ? 2 : 3;
    struct stack_path *path = NULL;
    if (first == 3) {
        r->path = r->path ? r->path : stack_path_open();
        path = r->path;
    }
    if (words < first) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = first; i < words; i++)
        addresses[i - first] = record_word_at(r, position, i);
    uint64_t shared = path ? record_word_at(r, position, 2) : 0;
    if (shared > WIRE_STACK_MAX || stack_map_define(r->process->stacks, path, WIRE_VAR_LOW(word1), WIRE_HOOK(word1),
                                                    (uint32_t)shared, addresses, words - first))
        d->bad_records++;
}

static void define_code(struct drain *d, const struct ring *r, uint64_t position, uint64_t words)
{
    uint64_t part[WIRE_RECORD_MAX];
    if (words < 4) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = 3; i < words; i++)
        part[i - 3] = record_word_at(r, position, i);
    uint64_t where = record_word_at(r, position, 2);
    if (python_define(r->process->python, WIRE_VAR_LOW(record_word_at(r, position, 1)), (uint32_t)(where >> 32),
                      (uint32_t)where, part, words - 3))
        d->bad_records++;
}

void records_source(struct drain *d, const struct ring *r, uint64_t words)
{
    uint64_t part[WIRE_RECORD_MAX];
    struct process *p = r->process;
    for (uint64_t i = 3; i < words; i++)
        part[i - 3] = record_word(r, i);
    if (!p->sources)
        p->sources = sources_open(d->processes->named);
    uint64_t where = words > 3 ? record_word(r, 2) : 0;
    if (words < 4 || sources_add(p->sources, WIRE_VAR_LOW(record_word(r, 1)), (uint32_t)(where >> 32), (uint32_t)where,
                                 part, words - 3))
        d->bad_records++;
}

static void load_module(struct drain *d, const struct ring *r, uint64_t position, uint64_t words, int64_t time_ns)
{
    uint64_t text[WIRE_RECORD_MAX + 1];
    if (words < 6)
        return;
    uint64_t lengths = record_word_at(r, position, 5);
    uint64_t id_bytes = lengths >> 32, path_bytes = (uint32_t)lengths;
    uint64_t id_words = (id_bytes + 7) / 8, path_words = (path_bytes + 7) / 8;
    if (6 + id_words + path_words > words || id_bytes > 64) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = 6; i < words; i++)
        text[i - 6] = record_word_at(r, position, i);
    char *path = (char *)(text + id_words);
    path[path_bytes] = 0; /* there is one word more than a record can hold */
    const struct process *p = r->process;
    int is_program = !*path || (p->linked && strcmp(path, p->linked) == 0);
    struct stack_module module = {
        .number = WIRE_VAR_LOW(record_word_at(r, position, 1)),
        .start = record_word_at(r, position, 2),
        .end = record_word_at(r, position, 3),
        .bias = record_word_at(r, position, 4),
        .path = is_program ? p->exe : path, /* the program itself has no name in the loader's list */
        .build_id = (const uint8_t *)text,
        .build_id_bytes = id_bytes,
    };
    stack_map_load(r->process->stacks, &module, time_ns);
}

static void define_at(struct drain *d, struct ring *r, uint64_t position, unsigned op, uint64_t words)
{
    if (op == WIRE_STACK || op == WIRE_STACK_NEXT)
        define_stack(d, r, position, words);
    else if (op == WIRE_MODULE_LOAD)
        load_module(d, r, position, words, clock_ns(d->clock, record_word_at(r, position, 0)));
}

void records_define(struct drain *d, struct ring *r, unsigned op, uint64_t words)
{
    if (r->scanned > r->position)
        return;
    if (op == WIRE_CODE)
        define_code(d, r, r->position, words);
    define_at(d, r, r->position, op, words);
    r->scanned = r->position + words;
}

/* Records ahead of the order in the rings of a process, up to where each ring was written when this began. */
struct ahead {
    struct drain *d;
    struct process *p;
};

static int is_ahead(const struct ahead *a, const struct ring *r)
{
    return r->process == a->p && !r->bad &&
           __atomic_load_n(&a->d->session->rings[r->index].head, __ATOMIC_ACQUIRE) - r->position <= WIRE_RING_WORDS;
}

static uint64_t first_ahead(const struct ring *r)
{
    return r->scanned > r->position ? r->scanned : r->position;
}

/* A thread defines code before another one's stack can name it, so code is looked for after the ends of the stacks are
 * known, in all rings. */
static void define_codes_ahead(const struct ahead *a)
{
    for (uint32_t i = 0; i < a->d->ring_count; i++) {
        const struct ring *r = a->d->rings[i];
        if (!is_ahead(a, r))
            continue;
        uint64_t end = __atomic_load_n(&a->d->session->rings[r->index].head, __ATOMIC_ACQUIRE), words;
        for (uint64_t at = first_ahead(r); at < end && (words = drain_record_words(r, at, end)); at += words)
            if (WIRE_OP(record_word_at(r, at, 1)) == WIRE_CODE)
                define_code(a->d, r, at, words);
    }
}

uint32_t records_find_stack(struct drain *d, struct process *p, uint32_t id)
{
    struct ahead a = {d, p};
    for (uint32_t i = 0; i < d->ring_count; i++)
        if (is_ahead(&a, d->rings[i]))
            d->rings[i]->ahead_end = __atomic_load_n(&d->session->rings[d->rings[i]->index].head, __ATOMIC_ACQUIRE);
    define_codes_ahead(&a);
    for (uint32_t i = 0; i < d->ring_count; i++) {
        struct ring *r = d->rings[i];
        if (!is_ahead(&a, r))
            continue;
        uint64_t position = first_ahead(r), words;
        for (; position < r->ahead_end && (words = drain_record_words(r, position, r->ahead_end)); position += words) {
            define_at(d, r, position, WIRE_OP(record_word_at(r, position, 1)), words);
        }
        r->scanned = position;
    }
    return stack_map_find(p->stacks, id);
}

uint32_t record_stack(struct drain *d, const struct ring *r, uint32_t id)
{
    uint32_t stack = stack_map_find(r->process->stacks, id);
    return stack || !id ? stack : records_find_stack(d, r->process, id);
}
