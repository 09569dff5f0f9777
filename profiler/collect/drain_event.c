#include "drain_private.h"

#include "../../common/kind.h"

/* --- a record --- */

static const uint8_t op_words[WIRE_OP_COUNT] = {
#define X(name, words, text) words,
#include "../wire_ops.def"
#undef X
};

enum { KIND_none = KIND_heap };
const uint8_t drain_kinds[WIRE_HOOK_COUNT] = {
#define X(name, kind) KIND_##kind,
#include "../wire_hooks.def"
#undef X
};

uint64_t drain_record_words(const struct ring *r, uint64_t position, uint64_t end)
{
    if (end - position < 2)
        return 0;
    uint64_t word1 = record_word_at(r, position, 1);
    unsigned op = WIRE_OP(word1);
    if (op >= WIRE_OP_COUNT)
        return 0;
    uint64_t words = op_words[op] ? op_words[op] : WIRE_VAR_WORDS(word1);
    return words >= 2 && words <= WIRE_RECORD_MAX && words <= end - position ? words : 0;
}

/* --- the events --- */

void drain_flush(struct drain *d)
{
    if (d->batch_count) {
        d->last_ns = (int64_t)d->batch[d->batch_count - 1].time_ns;
        d->sink.events(d->sink.arg, d->batch, d->batch_count);
    }
    d->batch_count = 0;
}

void drain_emit(struct drain *d, struct event event)
{
    int64_t time_ns = clock_ns(d->clock, d->merged);
    int64_t last_ns = d->batch_count ? (int64_t)d->batch[d->batch_count - 1].time_ns : d->last_ns;
    event.time_ns = (uint64_t)(time_ns > last_ns ? time_ns : last_ns);
    *drain_next(d) = event;
}

void records_emit(void *arg, const struct event *event)
{
    const struct record_target *t = arg;
    struct event *e = drain_next(t->d);
    *e = *event;
    e->time_ns = (uint64_t)record_ns(t->d, t->r);
    e->thread_id = t->r->thread_id;
    e->process_id = t->r->process->process_id;
    e->inherited = t->r->process->inherited;
    if (!t->d->free_stacks && event_is_death(e->op))
        e->stack_id = 0;
    e->hook = (uint8_t)t->hook;
}
