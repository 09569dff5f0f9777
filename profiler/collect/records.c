#include "devices.h"
#include "drain.h"
#include "mapping.h"
#include "python.h"

#include "../../common/error.h"
#include "../../common/kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MASK            (WIRE_RING_WORDS - 1)
#define EXIT_WAIT_NS    50000000u /* how long the order waits for an end that was announced */
#define EXEC_WAIT_NS    20000000u
#define SEGMENT_WAIT_NS 20000000u /* from a device allocation to what its thread says of it */
#define NAME_ROWS       65536u    /* names in the file; the first ones */
#define UNTRACKED_ROWS  64u
#define SEGMENT_AHEAD   16u /* other events of the thread between the two */

static uint64_t word(const struct ring *r, uint64_t index)
{
    return __atomic_load_n(&r->words[(r->position + index) & MASK], __ATOMIC_RELAXED);
}

static uint64_t word_at(const struct ring *r, uint64_t position, uint64_t index)
{
    return __atomic_load_n(&r->words[(position + index) & MASK], __ATOMIC_RELAXED);
}

static int64_t key_ns(const struct drain *d, const struct ring *r)
{
    return clock_ns(d->clock, r->key);
}

/* --- definitions: in order, or ahead of it for an event that needs them --- */

static void define_stack(const struct ring *r, uint64_t position, uint64_t words)
{
    uint64_t addresses[WIRE_RECORD_MAX];
    uint64_t word1 = word_at(r, position, 1);
    for (uint64_t i = 2; i < words; i++)
        addresses[i - 2] = word_at(r, position, i);
    stack_map_define(r->process->stacks, WIRE_VAR_LOW(word1), WIRE_HOOK(word1), addresses, words - 2);
}

static void define_code(struct drain *d, const struct ring *r, uint64_t position, uint64_t words)
{
    uint64_t part[WIRE_RECORD_MAX];
    if (words < 4) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = 3; i < words; i++)
        part[i - 3] = word_at(r, position, i);
    uint64_t where = word_at(r, position, 2);
    if (python_define(r->process->python, WIRE_VAR_LOW(word_at(r, position, 1)), (uint32_t)(where >> 32),
                      (uint32_t)where, part, words - 3))
        d->bad_records++;
}

static void load_module(struct drain *d, const struct ring *r, uint64_t position, uint64_t words, int64_t time_ns)
{
    uint64_t text[WIRE_RECORD_MAX + 1];
    if (words < 6)
        return;
    uint64_t lengths = word_at(r, position, 5);
    uint64_t id_bytes = lengths >> 32, path_bytes = (uint32_t)lengths;
    uint64_t id_words = (id_bytes + 7) / 8, path_words = (path_bytes + 7) / 8;
    if (6 + id_words + path_words > words || id_bytes > 64) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = 6; i < words; i++)
        text[i - 6] = word_at(r, position, i);
    char *path = (char *)(text + id_words);
    path[path_bytes] = 0; /* there is one word more than a record can hold */
    struct stack_module module = {
        .number = WIRE_VAR_LOW(word_at(r, position, 1)),
        .start = word_at(r, position, 2),
        .end = word_at(r, position, 3),
        .bias = word_at(r, position, 4),
        .path = *path ? path : r->process->exe, /* the program itself has no name in the loader's list */
        .build_id = (const uint8_t *)text,
        .build_id_bytes = id_bytes,
    };
    stack_map_load(r->process->stacks, &module, time_ns);
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
            if (WIRE_OP(word_at(r, at, 1)) == WIRE_CODE)
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
            unsigned op = WIRE_OP(word_at(r, position, 1));
            if (op == WIRE_STACK)
                define_stack(r, position, words);
            else if (op == WIRE_MODULE_LOAD)
                load_module(d, r, position, words, clock_ns(d->clock, word_at(r, position, 0)));
        }
        r->scanned = position;
    }
    return stack_map_find(p->stacks, id);
}

/* --- mappings --- */

struct mapping_target {
    struct drain *d;
    const struct ring *r;
    unsigned hook;
};

static void emit_mapping(void *arg, const struct event *event)
{
    const struct mapping_target *t = arg;
    struct event *e = drain_next(t->d);
    *e = *event;
    e->time_ns = (uint64_t)key_ns(t->d, t->r);
    e->thread_id = t->r->thread_id;
    e->process_id = t->r->process->process_id;
    e->inherited = t->r->process->inherited;
    e->hook = (uint8_t)t->hook;
}

static uint32_t stack_of(struct drain *d, const struct ring *r, uint32_t id)
{
    uint32_t stack = stack_map_find(r->process->stacks, id);
    return stack || !id ? stack : records_find_stack(d, r->process, id);
}

static void apply_mapping(struct drain *d, struct ring *r, uint64_t word1)
{
    struct mapping_target target = {d, r, WIRE_HOOK(word1) < WIRE_HOOK_COUNT ? WIRE_HOOK(word1) : 0};
    unsigned op = WIRE_OP(word1);
    uint64_t word2 = word(r, 2);
    struct mapping_op what = {
        .op = op,
        .flags = (uint32_t)(word2 >> 32),
        .stack_id = stack_of(d, r, (uint32_t)word2),
        .address = WIRE_A(word1),
        .length = word(r, 3),
    };
    if (op == WIRE_REMAP) {
        if (!r->second_half && word(r, 6) > r->key) { /* what it did is seen when it was done */
            r->second_half = 1;
            r->key = word(r, 6);
            return;
        }
        r->second_half = 0;
        what.new_address = word(r, 4) & WIRE_A_MASK;
        what.new_length = word(r, 5);
    }
    if (mapping_apply(r->process->mapping, &what, emit_mapping, &target))
        d->bad_records++;
}

/* --- devices and sub-allocators --- */

enum { CALL_WORDS = 3 }; /* before its arguments */

static unsigned call_of(uint64_t word2)
{
    return (unsigned)(word2 & 0xff);
}

/* What the thread does next with memory that it just allocated: 1 says that a sub-allocator hands out parts of it,
 * 0 something else, -1 is not known yet. */
static int becomes_segment(struct drain *d, const struct ring *r, uint64_t words)
{
    uint64_t address = word(r, CALL_WORDS), size = word(r, CALL_WORDS + 1), length;
    uint64_t position = r->position + words, others = 0;
    uint64_t end = __atomic_load_n(&d->session->rings[r->index].head, __ATOMIC_ACQUIRE);
    if (end - r->position > WIRE_RING_WORDS)
        return 0;
    for (; position < end; position += length) {
        length = drain_record_words(r, position, end);
        if (!length)
            return 0;
        unsigned op = WIRE_OP(word_at(r, position, 1));
        if (op == WIRE_STACK || op == WIRE_MODULE_LOAD || op == WIRE_PAD)
            continue;
        if (op != WIRE_CALL && ++others > SEGMENT_AHEAD)
            return 0;
        if (op != WIRE_CALL || length < CALL_WORDS)
            continue;
        switch (call_of(word_at(r, position, 2))) {
        case WIRE_CALL_SUB_SEGMENT:
            return length >= CALL_WORDS + 3 && word_at(r, position, CALL_WORDS + 1) - address < size;
        case WIRE_CALL_SUB_ALLOC:
            if (!(word_at(r, position, 2) >> 32 & WIRE_CALL_IMPLICIT) || length < CALL_WORDS + 3)
                return 0;
            return word_at(r, position, CALL_WORDS + 1) - address < size ||
                   address - word_at(r, position, CALL_WORDS + 1) < word_at(r, position, CALL_WORDS + 2);
        case WIRE_CALL_VMM_CREATE: /* may come between the two; a large block grows its segment by several */
        case WIRE_CALL_VMM_MAP:
        case WIRE_CALL_VMM_RELEASE:
        case WIRE_CALL_VMM_RESERVE:
        case WIRE_CALL_SUB_POOL:
        case WIRE_CALL_DEVICE:
        case WIRE_CALL_POOL:
        case WIRE_CALL_POOL_STATE:
        case WIRE_CALL_MEMORY_INFO:
        case WIRE_CALL_NAME:
            break;
        default:
            return 0;
        }
    }
    return -1;
}

static int may_become_segment(const struct ring *r, uint64_t words)
{
    unsigned call = words > CALL_WORDS + 1 ? call_of(word(r, 2)) : WIRE_CALL_COUNT;
    return call == WIRE_CALL_ALLOC || call == WIRE_CALL_POOL_ALLOC || call == WIRE_CALL_VMM_MAP;
}

int records_may_take(struct drain *d, struct ring *r, uint64_t words)
{
    if (!may_become_segment(r, words) || d->is_last || r->process->dead || d->pressure >= WIRE_RING_WORDS / 2 ||
        clock_stamp(d->clock) - r->key >= clock_ticks(d->clock, SEGMENT_WAIT_NS) || becomes_segment(d, r, words) >= 0)
        return 1;
    if (d->limit > r->key)
        d->limit = r->key;
    return 0;
}

struct call_target {
    struct drain *d;
    struct ring *r;
    unsigned hook;
    uint32_t stack_id;
};

static void emit_call(void *arg, const struct event *event)
{
    const struct call_target *t = arg;
    struct mapping_target target = {t->d, t->r, t->hook};
    emit_mapping(&target, event);
}

static unsigned find_device(void *arg, unsigned ordinal, const uint64_t *uuid, uint64_t total_bytes, const char *model)
{
    const struct call_target *t = arg;
    return device_rows_find(&t->d->device_rows, "cuda", ordinal, uuid, total_bytes, model);
}

static unsigned find_foreign(void *arg, unsigned device_id)
{
    const struct call_target *t = arg;
    const struct device_row *row = &t->d->device_rows.rows[device_id % DEVICE_ROWS];
    return device_rows_find(&t->d->device_rows, "foreign", row->ordinal, row->uuid, 0, NULL);
}

static uint64_t find_map(void *arg, uint64_t address)
{
    const struct call_target *t = arg;
    return mapping_block_at(t->r->process->mapping, address);
}

static void name_memory(void *arg, uint64_t address, const char *name)
{
    const struct call_target *t = arg;
    if (t->d->name_rows >= NAME_ROWS)
        return;
    sqlite3_stmt *q = store_statement(
        t->d->store, "INSERT INTO memory_name(name_id, process_id, address, time_ns, name) VALUES(?, ?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, (int64_t)++t->d->name_rows);
    sqlite3_bind_int64(q, 2, t->r->process->process_id);
    sqlite3_bind_int64(q, 3, (int64_t)address);
    sqlite3_bind_int64(q, 4, key_ns(t->d, t->r));
    sqlite3_bind_text(q, 5, name, -1, SQLITE_TRANSIENT);
    store_step(t->d->store, q);
}

static void add_transfer(void *arg, unsigned device_id, unsigned direction, uint64_t bytes)
{
    const struct call_target *t = arg;
    transfers_add(&t->d->transfers, t->stack_id, device_id, direction, bytes);
}

/* arguments: version, bytes of the name, the name. */
static void tell_untracked(struct drain *d, const struct process *p, const uint64_t *arguments, uint64_t count)
{
    char text[160], key[96], name[64] = "";
    uint64_t bytes = count > 2 ? arguments[1] : 0;
    if (bytes >= sizeof name)
        bytes = sizeof name - 1;
    if (bytes > (count - 2) * 8)
        bytes = (count - 2) * 8;
    memcpy(name, arguments + 2, count > 2 ? bytes : 0);
    if (!*name || d->untracked_rows++ >= UNTRACKED_ROWS)
        return;
    snprintf(key, sizeof key, "cuda_untracked:%s", name);
    snprintf(text, sizeof text, "%s of CUDA %u.%u has no hook, and its calls are not seen", name,
             (unsigned)arguments[0] / 1000, (unsigned)arguments[0] % 1000 / 10);
    sqlite3_stmt *q = store_statement(d->store, "INSERT INTO counter VALUES(?, ?, 1, ?)");
    sqlite3_bind_int64(q, 1, p->process_id);
    sqlite3_bind_text(q, 2, key, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 3, text, -1, SQLITE_TRANSIENT);
    store_step(d->store, q);
}

static void call(struct drain *d, struct ring *r, uint64_t word1, uint64_t words)
{
    uint64_t arguments[WIRE_RECORD_MAX];
    struct process *p = r->process;
    if (words < CALL_WORDS) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = CALL_WORDS; i < words; i++)
        arguments[i - CALL_WORDS] = word(r, i);
    uint64_t word2 = word(r, 2);
    if (call_of(word2) == WIRE_CALL_UNTRACKED) {
        tell_untracked(d, p, arguments, words - CALL_WORDS);
        return;
    }
    struct call_target target = {d, r, WIRE_HOOK(word1) < WIRE_HOOK_COUNT ? WIRE_HOOK(word1) : 0,
                                 stack_of(d, r, WIRE_VAR_LOW(word1))};
    struct devices_call what = {
        .call = call_of(word2),
        .device = (unsigned)(word2 >> 8 & 0xff),
        .flags = (unsigned)(word2 >> 32),
        .kind = drain_kind(target.hook),
        .stack_id = target.stack_id,
        .thread_id = r->thread_id,
        .words = arguments,
        .word_count = words - CALL_WORDS,
        .is_segment = may_become_segment(r, words) && becomes_segment(d, r, words) == 1,
    };
    struct devices_sink sink = {&target, emit_call, find_device, find_foreign, find_map, name_memory, add_transfer};
    if (!p->devices)
        p->devices = devices_open();
    if (devices_apply(p->devices, &what, &sink))
        d->bad_records++;
}

/* --- ends --- */

static void leave(struct drain *d, struct ring *r, uint64_t wait_ns)
{
    struct process *p = r->process;
    p->leaving_ring = r->index;
    p->leaving_deadline_ns = d->now_ns + wait_ns;
    d->leaving++;
    /* What follows in other processes may come after this one's blocks are gone; the next rounds will know. */
    if (d->limit > r->key)
        d->limit = r->key;
}

static void reaped(struct drain *d, struct ring *r, int pid, int status)
{
    struct process *child = processes_reaped(d->processes, pid, status, r->key);
    if (child && child != r->process && d->limit > r->key)
        d->limit = r->key; /* its own last words first */
}

/* --- names and marks --- */

static void name_thread(struct drain *d, struct ring *r)
{
    uint64_t text[2] = {word(r, 2), word(r, 3)};
    (void)d;
    memcpy(r->name, text, sizeof r->name);
    r->name[sizeof r->name - 1] = 0;
    r->named = 1;
}

/* The fields of a mark's text, in place: each ends with a NUL. Missing ones are "". */
struct mark_text {
    char *domain, *category, *name;
};

static struct mark_text split_mark(char *text)
{
    char *first = strchr(text, WIRE_MARK_SEPARATOR), *second = first ? strchr(first + 1, WIRE_MARK_SEPARATOR) : NULL;
    if (!second)
        return (struct mark_text){text + strlen(text), text + strlen(text), text};
    *first = *second = 0;
    return (struct mark_text){text, first + 1, second + 1};
}

static uint32_t text_hash(const char *text)
{
    uint32_t hash = 2166136261u;
    while (*text)
        hash = (hash ^ (unsigned char)*text++) * 16777619u;
    return hash;
}

static void end_mark(struct drain *d, const struct ring *r, int64_t mark_id)
{
    sqlite3_stmt *q = store_statement(d->store, "UPDATE mark SET end_ns = ? WHERE mark_id = ?");
    sqlite3_bind_int64(q, 1, key_ns(d, r));
    sqlite3_bind_int64(q, 2, mark_id);
    store_step(d->store, q);
}

/* The innermost open range of this thread and domain. */
static void end_range(struct drain *d, struct ring *r, uint32_t domain)
{
    if (r->range_depth > DRAIN_RANGES) { /* deeper than what is remembered: of whatever domain */
        r->range_depth--;
        return;
    }
    for (unsigned i = r->range_depth; i-- > 0;)
        if (r->ranges[i].domain == domain) {
            end_mark(d, r, r->ranges[i].mark_id);
            memmove(&r->ranges[i], &r->ranges[i + 1], (r->range_depth - i - 1u) * sizeof *r->ranges);
            r->range_depth--;
            return;
        }
}

static int64_t mark_row(struct drain *d, const struct ring *r, const struct mark_text *t, int is_range)
{
    int64_t mark_id = (int64_t)++d->mark_rows;
    sqlite3_stmt *q = store_statement(d->store, "INSERT INTO mark(mark_id, process_id, thread_id, device_id, name, "
                                                "start_ns, is_range, domain, category) "
                                                "VALUES(?1, ?2, ?3, NULL, ?4, ?5, ?6, nullif(?7, ''), nullif(?8, ''))");
    sqlite3_bind_int64(q, 1, mark_id);
    sqlite3_bind_int64(q, 2, r->process->process_id);
    sqlite3_bind_int64(q, 3, r->thread_id);
    sqlite3_bind_text(q, 4, t->name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 5, key_ns(d, r));
    sqlite3_bind_int(q, 6, is_range);
    sqlite3_bind_text(q, 7, t->domain, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 8, t->category, -1, SQLITE_TRANSIENT);
    store_step(d->store, q);
    return mark_id;
}

/* Ranges by id: the ones that are open, of all processes; one that is never closed stays. */
static void start_span(struct drain *d, const struct ring *r, uint64_t id, int64_t mark_id)
{
    if (d->span_count == d->span_room) {
        if (d->span_room >= DRAIN_SPANS)
            return;
        d->span_room = d->span_room ? d->span_room * 2 : 64;
        d->spans = xrealloc(d->spans, d->span_room * sizeof *d->spans);
    }
    d->spans[d->span_count++] = (struct span){id, mark_id, r->process->process_id};
}

static void end_span(struct drain *d, const struct ring *r, uint64_t id)
{
    for (size_t i = d->span_count; i-- > 0;)
        if (d->spans[i].id == id && d->spans[i].process_id == r->process->process_id) {
            end_mark(d, r, d->spans[i].mark_id);
            d->spans[i] = d->spans[--d->span_count];
            return;
        }
}

static void mark(struct drain *d, struct ring *r, uint64_t word1, uint64_t words)
{
    uint64_t text[WIRE_RECORD_MAX + 1];
    unsigned kind = WIRE_HOOK(word1);
    int has_id = kind == WIRE_MARK_START || kind == WIRE_MARK_END;
    uint64_t bytes = WIRE_VAR_LOW(word1), first = 2u + (unsigned)has_id, id = has_id && words > 2 ? word(r, 2) : 0;
    if (words < first || kind > WIRE_MARK_END) {
        d->bad_records++;
        return;
    }
    if (bytes > (words - first) * 8)
        bytes = (words - first) * 8;
    for (uint64_t i = first; i < words; i++)
        text[i - first] = word(r, i);
    ((char *)text)[bytes] = 0; /* there is one word more than a record can hold */
    if (kind == WIRE_MARK_POP) {
        end_range(d, r, text_hash((char *)text));
        return;
    }
    if (kind == WIRE_MARK_END) {
        end_span(d, r, id);
        return;
    }
    struct mark_text t = split_mark((char *)text);
    int64_t mark_id = mark_row(d, r, &t, kind != WIRE_MARK_INSTANT);
    if (kind == WIRE_MARK_START)
        start_span(d, r, id, mark_id);
    if (kind == WIRE_MARK_PUSH) {
        if (r->range_depth < DRAIN_RANGES)
            r->ranges[r->range_depth] = (struct open_range){mark_id, text_hash(t.domain)};
        r->range_depth += r->range_depth < UINT8_MAX;
    }
}

static void sample(struct drain *d, const struct ring *r, uint8_t op, uint64_t size_bytes, uint64_t address,
                   unsigned hook, uint32_t stack_id)
{
    *drain_next(d) = (struct event){
        .time_ns = (uint64_t)key_ns(d, r),
        .address = address,
        .size_bytes = size_bytes,
        .stack_id = stack_id,
        .thread_id = r->thread_id,
        .process_id = r->process->process_id,
        .op = op,
        .hook = (uint8_t)(hook < WIRE_HOOK_COUNT ? hook : 0),
        .kind = (uint8_t)drain_kind(hook),
        .inherited = r->process->inherited,
    };
}

void records_handle(struct drain *d, struct ring *r, uint64_t word1, uint64_t words)
{
    struct process *p = r->process;
    unsigned op = WIRE_OP(word1);
    if (p->has_exec && p->leaving_ring == r->index && op != WIRE_EXEC) { /* that exec failed */
        p->has_exec = 0;
        p->leaving_deadline_ns = 0;
    }
    switch (op) {
    case WIRE_OOM:
        r->retry_size = word(r, 3) + 1;
        sample(d, r, EVENT_OOM, word(r, 3), WIRE_A(word1), WIRE_HOOK(word1), stack_of(d, r, (uint32_t)word(r, 2)));
        break;
    case WIRE_HEAP_SAMPLE:
        sample(d, r, EVENT_RESERVED, word(r, 2) + word(r, 3), 0, 0, 0);
        break;
    case WIRE_MAP:
    case WIRE_UNMAP:
    case WIRE_REMAP:
    case WIRE_PROTECT:
    case WIRE_BREAK:
        apply_mapping(d, r, word1);
        break;
    case WIRE_STACK:
        if (r->scanned <= r->position)
            define_stack(r, r->position, words);
        break;
    case WIRE_CODE:
        if (r->scanned <= r->position)
            define_code(d, r, r->position, words);
        break;
    case WIRE_MODULE_LOAD:
        if (r->scanned <= r->position)
            load_module(d, r, r->position, words, key_ns(d, r));
        break;
    case WIRE_MODULE_UNLOAD:
        stack_map_unload(p->stacks, (uint32_t)WIRE_A(word1), key_ns(d, r));
        break;
    case WIRE_THREAD_NAME:
        name_thread(d, r);
        break;
    case WIRE_EXIT:
        p->has_exit = 1;
        p->exit_value = (int)WIRE_A(word1);
        leave(d, r, EXIT_WAIT_NS);
        break;
    case WIRE_EXEC:
        p->has_exec = 1;
        p->exec_stamp = r->key;
        leave(d, r, EXEC_WAIT_NS);
        break;
    case WIRE_REAP:
        reaped(d, r, (int)WIRE_A(word1), (int)word(r, 2));
        break;
    case WIRE_MARK:
        mark(d, r, word1, words);
        break;
    case WIRE_CALL:
        call(d, r, word1, words);
        break;
    default: /* PAD */
        break;
    }
}
