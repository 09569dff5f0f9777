#include "../devices/mapping.h"
#include "drain_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_WAIT_NS 50000000u /* how long the order waits for an end that was announced */
#define EXEC_WAIT_NS 20000000u

/* --- mappings --- */

static void apply_mapping(struct drain *d, struct ring *r, uint64_t word1)
{
    struct record_target target = {d, r, drain_hook(word1)};
    unsigned op = WIRE_OP(word1);
    uint64_t word2 = record_word(r, 2);
    struct mapping_op what = {
        .op = op,
        .flags = (uint32_t)(word2 >> 32),
        .stack_id = record_stack(d, r, (uint32_t)word2),
        .address = WIRE_A(word1),
        .length = record_word(r, 3),
    };
    if (op == WIRE_REMAP) {
        if (!r->second_half && record_word(r, 6) > r->key) { /* what it did is seen when it was done */
            r->second_half = 1;
            r->key = record_word(r, 6);
            return;
        }
        r->second_half = 0;
        what.new_address = record_word(r, 4) & WIRE_A_MASK;
        what.new_length = record_word(r, 5);
    }
    if (mapping_apply(r->process->mapping, &what, records_emit, &target))
        d->bad_records++;
}

/* --- ends --- */

static void leave(struct drain *d, struct ring *r, uint64_t wait_ns)
{
    struct process *p = r->process;
    p->leaving_ring = r->index;
    p->leaving_deadline_ns = d->now_ns + wait_ns;
    d->leaving++;
    d->announced++;
    /* What follows in other processes may come after this one's blocks are gone; the next rounds will know. */
    if (d->limit > r->key)
        d->limit = r->key;
}

static void reaped(struct drain *d, struct ring *r, int pid, int status)
{
    struct process *child = processes_reaped(d->processes, r->process, pid, status, r->key);
    if (child && child != r->process && d->limit > r->key)
        d->limit = r->key; /* its own last words first */
}

#define TARGET_WORDS 4u /* of EXEC and SPAWN, before the path */

/* The path at the end of the record; NULL: none. */
static char *target_path(const struct ring *r, uint64_t words)
{
    char path[WIRE_TARGET_MAX + 8] = "";
    uint64_t count = words > TARGET_WORDS ? words - TARGET_WORDS : 0;
    for (uint64_t i = 0; i < count && i < WIRE_TARGET_MAX / 8; i++) {
        uint64_t word = record_word(r, (unsigned)(TARGET_WORDS + i));
        memcpy(path + 8 * i, &word, sizeof word);
    }
    return *path ? xstrdup(path) : NULL;
}

/* --- all --- */

static void name_thread(struct drain *d, struct ring *r)
{
    uint64_t text[2] = {record_word(r, 2), record_word(r, 3)};
    (void)d;
    struct process *p = r->process;
    memcpy(r->name, text, sizeof r->name);
    r->name[sizeof r->name - 1] = 0;
    r->named = 1;
    if (r->tid == p->pid)
        snprintf(p->comm, sizeof p->comm, "%s", r->name);
}

static void sample(struct drain *d, const struct ring *r, uint8_t op, uint64_t size_bytes, uint64_t address,
                   unsigned hook, uint32_t stack_id)
{
    *drain_next(d) = (struct event){
        .time_ns = (uint64_t)record_ns(d, r),
        .address = address,
        .size_bytes = size_bytes,
        .stack_id = stack_id,
        .thread_id = r->thread_id,
        .process_id = r->process->process_id,
        .op = op,
        .hook = (uint8_t)hook,
        .kind = drain_kinds[hook],
        .inherited = r->process->inherited,
    };
}

/* What it may have in all decides later whether what it asked for was more than there is. */
static void address_limit(struct drain *d, const struct ring *r, uint64_t limit, uint64_t own_bytes)
{
    struct process *p = r->process;
    sqlite3_stmt *q;
    if (limit == p->address_limit || p->address_limits == UINT8_MAX ||
        !(q = store_statement(d->store, "INSERT OR REPLACE INTO address_limit(process_id, time_ns, limit_bytes, "
                                        "own_bytes) VALUES(?, ?, ?, ?)")))
        return;
    p->address_limit = limit;
    p->address_limits++;
    sqlite3_bind_int64(q, 1, p->process_id);
    sqlite3_bind_int64(q, 2, record_ns(d, r));
    sqlite3_bind_int64(q, 3, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    sqlite3_bind_int64(q, 4, own_bytes < INT64_MAX ? (int64_t)own_bytes : INT64_MAX);
    store_step(d->store, q);
}

static void heap_sample(struct drain *d, const struct ring *r, uint64_t word1)
{
    sample(d, r, EVENT_RESERVED, record_word(r, 2) + record_word(r, 3), record_word(r, 3), 0,
           WIRE_A(word1) ? heap_asked(WIRE_A(word1) - 1) : 0);
}

static void heap_range(struct drain *d, const struct ring *r, uint64_t word1)
{
    uint64_t size_bytes = record_word(r, 2);
    if (WIRE_A(word1))
        sample(d, r, EVENT_HEAP_AT, record_word(r, 3) & WIRE_A_MASK, WIRE_A(word1), 0, 0);
    sqlite3_stmt *q = store_statement(d->store, "INSERT INTO heap_range(process_id, time_ns, address, size_bytes, "
                                                "arena) VALUES(?, ?, ?, ?, ?)");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, r->process->process_id);
    sqlite3_bind_int64(q, 2, record_ns(d, r));
    sqlite3_bind_int64(q, 3, (int64_t)WIRE_A(word1));
    sqlite3_bind_int64(q, 4, (int64_t)(size_bytes & WIRE_A_MASK));
    sqlite3_bind_int64(q, 5, (int64_t)(record_word(r, 3) & WIRE_A_MASK));
    store_step(d->store, q);
}

static void sync_asked(struct drain *d, const struct ring *r, uint64_t word1)
{
    const uint64_t name[] = {record_word(r, 2), record_word(r, 3)};
    struct drain_sync sync = {.ring = r->index,
                              .number = WIRE_SYNC_NUMBER(WIRE_A(word1)),
                              .flags = WIRE_SYNC_FLAGS(WIRE_A(word1)),
                              .thread_id = r->thread_id,
                              .is_refused = r->policy_refused,
                              .time_ns = record_ns(d, r)};
    _Static_assert(sizeof name == WIRE_NAME_BYTES, "two words");
    memcpy(sync.name, name, sizeof name);
    drain_flush(d);
    if (d->sink.sync)
        d->sink.sync(d->sink.arg, &sync);
}

static void policy_said(struct drain *d, struct ring *r, uint64_t word1, uint64_t words)
{
    uint64_t text[WIRE_POLICY_MAX / 8 + 1];
    const uint64_t bytes = WIRE_VAR_LOW(word1);
    if (bytes > WIRE_POLICY_MAX || bytes > (words - 2) * 8) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = 0; i < (bytes + 7) / 8; i++)
        text[i] = record_word(r, 2 + i);
    drain_flush(d);
    r->policy_refused =
        !d->sink.policy || !d->sink.policy(d->sink.arg, r->process->process_id, (const char *)text, bytes);
}

/* Each is told of as often as it is closed. */
static void module_unhooked(struct drain *d, const struct ring *r, uint64_t word1, uint64_t words)
{
    uint64_t text[WIRE_PATH_MAX / 8];
    const uint64_t bytes = WIRE_VAR_LOW(word1);
    if (!bytes || bytes > WIRE_PATH_MAX || bytes > (words - 2) * 8) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = 0; i < (bytes + 7) / 8; i++)
        text[i] = record_word(r, 2 + i);
    sqlite3_stmt *q = store_statement(d->store, "INSERT OR IGNORE INTO unhooked_module(process_id, path) VALUES(?, ?)");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, r->process->process_id);
    sqlite3_bind_text(q, 2, (const char *)text, (int)strnlen((const char *)text, bytes), SQLITE_TRANSIENT);
    store_step(d->store, q);
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
        r->retry_size = record_word(r, 3) + 1;
        sample(d, r, EVENT_OOM, record_word(r, 3), WIRE_A(word1), drain_hook(word1),
               record_stack(d, r, (uint32_t)record_word(r, 2)));
        address_limit(d, r, record_word(r, 4), record_word(r, 5));
        break;
    case WIRE_HEAP_SAMPLE:
        heap_sample(d, r, word1);
        break;
    case WIRE_HEAP_ASK:
        sample(d, r, EVENT_HEAP_ASKS, 0, 0, 0, 0);
        break;
    case WIRE_HEAP_RANGE:
        heap_range(d, r, word1);
        break;
    case WIRE_MAP:
    case WIRE_UNMAP:
    case WIRE_REMAP:
    case WIRE_PROTECT:
    case WIRE_BREAK:
        apply_mapping(d, r, word1);
        break;
    case WIRE_STACK:
    case WIRE_STACK_NEXT:
    case WIRE_CODE:
    case WIRE_MODULE_LOAD:
        records_define(d, r, op, words);
        break;
    case WIRE_SOURCE:
        records_source(d, r, words);
        break;
    case WIRE_MODULE_UNLOAD:
        stack_map_unload(p->stacks, (uint32_t)WIRE_A(word1), record_ns(d, r));
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
        free(p->target);
        p->target = target_path(r, words);
        p->target_reach = WIRE_HOOK(word1);
        leave(d, r, EXEC_WAIT_NS);
        break;
    case WIRE_REAP:
        reaped(d, r, (int)WIRE_A(word1), (int)record_word(r, 2));
        break;
    case WIRE_SPAWN:
        if (p->pid_namespace == d->processes->pid_namespace && words >= TARGET_WORDS) {
            char *path = target_path(r, words);
            processes_expect(d->processes, (int)record_word(r, 2), p->process_id, record_word(r, 3), d->now_ns, path,
                             WIRE_HOOK(word1));
            free(path);
        }
        break;
    case WIRE_MARK:
        records_mark(d, r, word1, words);
        break;
    case WIRE_SYNC:
        sync_asked(d, r, word1);
        break;
    case WIRE_POLICY:
        policy_said(d, r, word1, words);
        break;
    case WIRE_UNHOOKED:
        module_unhooked(d, r, word1, words);
        break;
    case WIRE_TEARDOWN:
        sample(d, r, EVENT_TEARDOWN, 0, 0, 0, 0);
        break;
    case WIRE_CALL:
        records_call(d, r, word1, words);
        break;
    default: /* PAD */
        break;
    }
}
