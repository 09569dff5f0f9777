#include "../devices/devices.h"
#include "../devices/mapping.h"
#include "drain_private.h"

#include "../../common/error.h"

#include <stdio.h>
#include <string.h>

#define SEGMENT_WAIT_NS 20000000u /* from a device allocation to what its thread says of it */
#define SEGMENT_AHEAD   16u       /* other events of the thread between the two; also before an UNDO */
#define UNTRACKED_ROWS  64u

enum { CALL_WORDS = 3 }; /* before its arguments */

static unsigned call_of(uint64_t word2)
{
    return (unsigned)(word2 & 0xff);
}

/* What the thread says after the record that is at the ring's position. */
struct ahead {
    uint64_t position, end; /* end 0: the ring is damaged */
    uint64_t others;        /* records that are no calls */
};

static struct ahead ahead_of(const struct drain *d, const struct ring *r, uint64_t words)
{
    uint64_t end = __atomic_load_n(&d->session->rings[r->index].head, __ATOMIC_ACQUIRE);
    return (struct ahead){r->position + words, end - r->position > WIRE_RING_WORDS ? 0 : end, 0};
}

/* The thread's next call: how many words it has, and where in *position; 0 when there is none nearby, -1 is not known
 * yet. */
static int64_t ahead_call(struct ahead *a, const struct ring *r, uint64_t *position)
{
    uint64_t length;
    if (!a->end)
        return 0;
    while (a->position < a->end) {
        length = drain_record_words(r, a->position, a->end);
        if (!length)
            return 0;
        *position = a->position;
        a->position += length;
        unsigned op = WIRE_OP(record_word_at(r, *position, 1));
        if (op == WIRE_CALL && length >= CALL_WORDS)
            return (int64_t)length;
        if (op == WIRE_SYNC) /* it waits for our answer, and says nothing before that */
            return 0;
        if (op != WIRE_STACK && op != WIRE_STACK_NEXT && op != WIRE_MODULE_LOAD && op != WIRE_PAD &&
            ++a->others > SEGMENT_AHEAD)
            return 0;
    }
    return -1;
}

/* What the thread does next with memory that it just allocated: 1 says that a sub-allocator hands out parts of it,
 * 0 something else, -1 is not known yet. */
static int becomes_segment(struct drain *d, const struct ring *r, uint64_t words)
{
    uint64_t address = record_word(r, CALL_WORDS), size = record_word(r, CALL_WORDS + 1), position;
    struct ahead ahead = ahead_of(d, r, words);
    int64_t length;
    while ((length = ahead_call(&ahead, r, &position)) > 0)
        switch (call_of(record_word_at(r, position, 2))) {
        case WIRE_CALL_SUB_SEGMENT:
            return length >= CALL_WORDS + 3 && record_word_at(r, position, CALL_WORDS + 1) - address < size;
        case WIRE_CALL_SUB_ALLOC:
            if (!(record_word_at(r, position, 2) >> 32 & WIRE_CALL_IMPLICIT) || length < CALL_WORDS + 3)
                return 0;
            return record_word_at(r, position, CALL_WORDS + 1) - address < size ||
                   address - record_word_at(r, position, CALL_WORDS + 1) < record_word_at(r, position, CALL_WORDS + 2);
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
        case WIRE_CALL_VIEW:
        case WIRE_CALL_CATEGORY:
            break;
        default:
            return 0;
        }
    return (int)length;
}

/* Whether the driver refused what this record takes away: 1 the thread's next call is an UNDO, 0 it is not, -1 is not
 * known yet. */
static int was_refused(const struct drain *d, const struct ring *r, uint64_t words)
{
    uint64_t position;
    struct ahead ahead = ahead_of(d, r, words);
    int64_t length = ahead_call(&ahead, r, &position);
    return length > 0 ? call_of(record_word_at(r, position, 2)) == WIRE_CALL_UNDO : (int)length;
}

static int may_become_segment(const struct ring *r, uint64_t words)
{
    unsigned call = words > CALL_WORDS + 1 ? call_of(record_word(r, 2)) : WIRE_CALL_COUNT;
    return call == WIRE_CALL_ALLOC || call == WIRE_CALL_POOL_ALLOC || call == WIRE_CALL_VMM_MAP;
}

/* 1: what the thread does next says what this call was. */
static int is_known(struct drain *d, const struct ring *r, uint64_t words)
{
    if (may_become_segment(r, words))
        return becomes_segment(d, r, words) >= 0;
    return words < CALL_WORDS || !devices_takes_away(call_of(record_word(r, 2))) || was_refused(d, r, words) >= 0;
}

int records_may_take(struct drain *d, struct ring *r, uint64_t words)
{
    if (d->is_last || r->process->dead || is_known(d, r, words) || d->pressure >= WIRE_RING_WORDS / 2 ||
        clock_stamp(d->clock) - r->key >= clock_ticks(d->clock, SEGMENT_WAIT_NS))
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
    struct record_target target = {t->d, t->r, t->hook};
    records_emit(&target, event);
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
    records_name(t->d, t->r, address, name);
}

static void add_transfer(void *arg, uint32_t stack_id, unsigned device_id, unsigned direction, uint64_t count,
                         uint64_t bytes)
{
    const struct call_target *t = arg;
    transfers_add(&t->d->transfers, stack_id, device_id, direction, count, bytes);
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
    store_counter(d->store, p->process_id, key, 1, text);
}

/* Calls that the model of devices has nothing to do with. 0: none of them. */
static int tell_other(struct drain *d, const struct ring *r, unsigned call, const uint64_t *arguments, uint64_t count)
{
    if (call == WIRE_CALL_UNTRACKED)
        tell_untracked(d, r->process, arguments, count);
    else if (call == WIRE_CALL_VIEW)
        records_view(d, r, arguments, count);
    else if (call == WIRE_CALL_CATEGORY)
        records_category(d, r, arguments, count);
    else
        return 0;
    return 1;
}

void records_call(struct drain *d, struct ring *r, uint64_t word1, uint64_t words)
{
    uint64_t arguments[WIRE_RECORD_MAX];
    struct process *p = r->process;
    if (words < CALL_WORDS) {
        d->bad_records++;
        return;
    }
    for (uint64_t i = CALL_WORDS; i < words; i++)
        arguments[i - CALL_WORDS] = record_word(r, i);
    uint64_t word2 = record_word(r, 2);
    if (tell_other(d, r, call_of(word2), arguments, words - CALL_WORDS))
        return;
    struct call_target target = {d, r, drain_hook(word1), record_stack(d, r, WIRE_VAR_LOW(word1))};
    struct devices_call what = {
        .call = call_of(word2),
        .device = (unsigned)(word2 >> 8 & 0xff),
        .flags = (unsigned)(word2 >> 32),
        .kind = drain_kinds[target.hook],
        .stack_id = target.stack_id,
        .thread_id = r->thread_id,
        .words = arguments,
        .word_count = words - CALL_WORDS,
        .is_refused = devices_takes_away(call_of(word2)) && was_refused(d, r, words) == 1,
        .is_segment = may_become_segment(r, words) && becomes_segment(d, r, words) == 1,
    };
    struct devices_sink sink = {&target, emit_call, find_device, find_foreign, find_map, name_memory, add_transfer};
    if (!p->devices)
        p->devices = devices_open();
    if (devices_apply(p->devices, &what, &sink))
        d->bad_records++;
}
