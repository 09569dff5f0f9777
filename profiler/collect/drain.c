#include "drain_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MASK          (WIRE_RING_WORDS - 1)
#define SETTLE_NS     50000u /* a store of another core is seen after this at the latest; in truth after less than one */
#define STALL_MAX_NS  20000000u
#define BUSY_MAX_NS   1000000000u /* a thread that is in one record for so long does not run: it was stopped */
#define BUSY_ROUNDS   8u          /* and not this one alone */
#define FUTURE_NS     1000000000u /* a stamp further ahead than this was never read from the clock */
#define PUBLISH_WORDS (WIRE_RING_WORDS / 16)
#define FIXED_MAX     8u /* no record of fixed length has more words */

static inline uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct drain *drain_open(struct session *session, struct store *store, struct clock *clock, struct processes *processes,
                         struct drain_sink sink)
{
    struct drain *d = xcalloc(1, sizeof *d);
    d->session = session;
    d->store = store;
    d->clock = clock;
    d->processes = processes;
    d->sink = sink;
    d->rings = xcalloc(WIRE_RINGS, sizeof *d->rings);
    d->heap = xcalloc(WIRE_RINGS, sizeof *d->heap);
    d->settle = clock_ticks(clock, SETTLE_NS);
    d->lacks_blocks = session->control->sample_bytes || session->control->least_bytes;
    device_rows_open(&d->device_rows, store);
    return d;
}

void drain_close(struct drain *d)
{
    for (uint32_t i = 0; i < d->ring_count; i++) {
        stack_path_close(d->rings[i]->path);
        free(d->rings[i]);
    }
    free(d->rings);
    free(d->heap);
    free(d->spans);
    transfers_close(&d->transfers);
    free(d);
}

struct drain_state drain_state(struct drain *d)
{
    return (struct drain_state){.now_ns = d->now_ns,
                                .merged = d->merged,
                                .pressure = d->pressure,
                                .leaving = d->leaving,
                                .announced = d->announced,
                                .bad_rings = d->bad_rings,
                                .bad_records = d->bad_records,
                                .unknown_stacks = d->unknown_stacks,
                                .unresolved_names = d->unresolved_names,
                                .devices = &d->device_rows,
                                .transfers = &d->transfers};
}

static void ring_is_bad(struct drain *d, struct ring *r)
{
    r->bad = 1;
    r->end = r->position = __atomic_load_n(&d->session->rings[r->index].head, __ATOMIC_ACQUIRE);
    r->second_half = 0;
    d->bad_rings++;
}

/* --- the heap of rings with words --- */

static void sift_down(struct heap_entry *heap, uint32_t count, uint32_t i)
{
    struct heap_entry moving = heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= count)
            break;
        child += child + 1 < count && heap[child + 1].key < heap[child].key;
        if (moving.key <= heap[child].key)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void heap_build(struct drain *d)
{
    for (uint32_t i = d->heap_count / 2; i-- > 0;)
        sift_down(d->heap, d->heap_count, i);
}

static void heap_drop_top(struct drain *d)
{
    d->heap[0] = d->heap[--d->heap_count];
    if (d->heap_count)
        sift_down(d->heap, d->heap_count, 0);
}

/* --- the hot loop --- */

static void publish_tail(struct drain *d, struct ring *r)
{
    if (r->position == r->published)
        return;
    r->published = r->position;
    __atomic_store_n(&d->session->rings[r->index].tail, r->position, __ATOMIC_RELEASE);
}

/* An event whose stack is not defined: 1 with *stack where it was found or never will be, 0 to come back later. */
static __attribute__((noinline)) int find_stack(struct drain *d, struct ring *r, uint32_t id, uint32_t *stack)
{
    *stack = 0;
    if (!id || (*stack = records_find_stack(d, r->process, id)))
        return 1;
    /* The definition may be in the hands of a thread that is writing now. */
    int writing = 0;
    for (uint32_t i = 0; i < d->ring_count; i++)
        writing |= d->rings[i]->process == r->process && d->rings[i]->busy;
    if (writing && !d->stall_ns)
        d->stall_ns = d->now_ns;
    if (writing && d->now_ns - d->stall_ns < STALL_MAX_NS)
        return 0;
    d->unknown_stacks++;
    return 1;
}

/* What all events of a ring have in common, and the clock, out of reach of the stores into the batch. */
struct constants {
    struct event like;
    uint64_t base_stamp;
    int64_t base_ns, rate;
};

static inline __attribute__((always_inline)) struct event *
put(struct drain *d, const struct constants *c, uint64_t stamp, unsigned op, unsigned hook, uint64_t address)
{
    struct event *e = drain_next(d);
    *e = c->like;
    e->time_ns = (uint64_t)(c->base_ns + (int64_t)((__int128)(int64_t)(stamp - c->base_stamp) * c->rate >> 32));
    e->address = address;
    e->op = (uint8_t)op;
    e->hook = (uint8_t)hook;
    e->kind = drain_kinds[hook];
    return e;
}

/* The words of the record at a position, at least FIXED_MAX of them; what lies behind the record is of no meaning. */
static inline __attribute__((always_inline)) const uint64_t *record_at(const uint64_t *words, uint64_t position,
                                                                       uint64_t wrapped[FIXED_MAX])
{
    uint64_t at = position & MASK;
    if (__builtin_expect(at <= WIRE_RING_WORDS - FIXED_MAX, 1)) {
        __builtin_prefetch(words + at + 64);
        return words + at;
    }
    for (unsigned i = 0; i < FIXED_MAX; i++)
        wrapped[i] = load(&words[(at + i) & MASK]);
    return wrapped;
}

static uint8_t unknown_frees(const struct drain *d, const struct process *p)
{
    return (uint8_t)((p->inherited ? EVENT_OF_CHILD : 0) | (p->attached ? EVENT_FROM_BEFORE : 0) |
                     (d->lacks_blocks ? EVENT_MAYBE_UNSEEN : 0));
}

void drain_pause(struct drain *d, int is_paused)
{
    drain_flush(d);
    d->is_paused = is_paused != 0;
    d->lacks_blocks |= d->is_paused;
}

void drain_free_stacks(struct drain *d)
{
    d->free_stacks = 1;
}

/* Gives out the events of one ring while their stamps are not above bound. r->position, key and newest move along.
 * Returns 0 when the whole round must end here. */
static int run(struct drain *d, struct ring *r, uint64_t bound)
{
    const struct process *p = r->process;
    const struct stack_map *stacks = p->stacks;
    struct constants c = {
        .like = {.thread_id = r->thread_id, .process_id = p->process_id, .inherited = unknown_frees(d, p)},
        .base_stamp = d->clock->base_stamp,
        .base_ns = d->clock->base_ns,
        .rate = d->clock->rate,
    };
    const uint64_t *words = r->words, end = r->end;
    uint64_t position = r->position, key = r->key, wrapped[FIXED_MAX];
    int go_on = 1, is_paused = d->is_paused;
    const int free_stacks = d->free_stacks;

    while (key <= bound) {
        const uint64_t *w = record_at(words, position, wrapped);
        uint64_t word1 = load(w + 1), address = WIRE_A(word1), left = end - position, length, size_bytes;
        unsigned hook = drain_hook(word1), op = EVENT_ALLOC;
        uint32_t id, stack;
        switch (WIRE_OP(word1)) {
        case WIRE_FREE:
            length = 2;
            if (left < length)
                goto damaged;
            put(d, &c, key, EVENT_FREE, hook, address);
            goto next;
        case WIRE_FREE_AT:
            length = 3;
            if (left < length)
                goto damaged;
            id = (uint32_t)load(w + 2);
            stack = stack_map_find(stacks, id);
            if (!stack && !find_stack(d, r, id, &stack)) {
                go_on = 0;
                goto out;
            }
            put(d, &c, key, EVENT_FREE, hook, address)->stack_id = free_stacks ? stack : 0;
            goto next;
        case WIRE_ALLOC:
            length = 3;
            size_bytes = load(w + 2) >> 32;
            break;
        case WIRE_ALLOC_BIG:
            length = 4;
            size_bytes = load(w + 3);
            break;
        case WIRE_REALLOC:
            length = 6;
            if (left < length)
                goto damaged;
            size_bytes = load(w + 3);
            if (!r->second_half) {
                uint64_t new_address = load(w + 4);
                id = (uint32_t)load(w + 2);
                stack = free_stacks ? stack_map_find(stacks, id) : 0;
                if (__builtin_expect(free_stacks && !stack, 0) && !find_stack(d, r, id, &stack)) {
                    go_on = 0;
                    goto out;
                }
                if (address)
                    put(d, &c, key, new_address && !is_paused ? EVENT_REALLOC_FREE : EVENT_FREE, hook, address)
                        ->stack_id = stack;
                if (!new_address)
                    goto next;
                /* events of other threads may lie between the two halves */
                key = max_u64(key, load(w + 5));
                r->second_half = is_paused ? SECOND_HALF_LEFT_OUT : 1;
                continue;
            }
            op = address ? EVENT_REALLOC_ALLOC : EVENT_ALLOC;
            address = load(w + 4) & WIRE_A_MASK;
            break;
        default:
            length = drain_record_words(r, position, end);
            if (!length)
                goto damaged;
            d->words += position - r->position;
            r->position = position;
            r->key = key;
            if (WIRE_OP(word1) == WIRE_CALL && !records_may_take(d, r, length)) {
                go_on = 0;
                goto out;
            }
            records_handle(d, r, word1, length);
            if (r->bad)
                return 1;
            bound = min_u64(bound, d->limit);
            is_paused = d->is_paused;
            c.like.inherited = unknown_frees(d, p);
            key = r->key;
            if (r->second_half) /* of a REMAP: it comes at its own time */
                continue;
            goto next;
        }
        if (left < length)
            goto damaged;
        if (__builtin_expect(is_paused | (r->second_half == SECOND_HALF_LEFT_OUT), 0) && r->second_half != 1) {
            r->second_half = 0;
            goto next;
        }
        id = (uint32_t)load(w + 2);
        stack = stack_map_find(stacks, id);
        if (__builtin_expect(!stack, 0) && !find_stack(d, r, id, &stack)) {
            go_on = 0;
            break;
        }
        r->second_half = 0;
        if (__builtin_expect(size_bytes + 1 == r->retry_size, 0)) {
            r->retry_size = 0;
            r->process->alloc_retries++;
        }
        struct event *e = put(d, &c, key, op, hook, address);
        e->size_bytes = size_bytes;
        e->stack_id = stack;
    next:
        position += length;
        r->newest = key;
        if (__builtin_expect(position - r->published >= PUBLISH_WORDS, 0)) {
            /* the program need not wait for the rest of its ring to be read */
            d->words += position - r->position;
            r->position = position;
            publish_tail(d, r);
        }
        if (position == end)
            break;
        key = max_u64(key, load(&words[position & MASK]));
    }
out:
    d->words += position - r->position;
    r->position = position;
    r->key = key;
    return go_on;
damaged:
    ring_is_bad(d, r);
    return 1;
}

/* --- a round --- */

static int is_leaving(const struct drain *d, const struct ring *r)
{
    const struct process *p = r->process;
    return p->leaving_deadline_ns && p->leaving_ring == r->index && !p->dead && d->now_ns < p->leaving_deadline_ns &&
           d->pressure < WIRE_RING_WORDS / 2 && !process_awaits_look(d->processes, p);
}

/* The oldest stamp that the ring may still write, as far as we know. */
static uint64_t barrier_of(const struct drain *d, const struct ring *r)
{
    return is_leaving(d, r) ? r->newest : max_u64(r->newest, r->clear);
}

void drain_emit_rss(struct drain *d, struct process *p, uint64_t peak_bytes, uint64_t now_bytes)
{
    struct event event = {.process_id = p->process_id, .op = EVENT_RSS};
    const int had = p->rss_bytes > 0;
    event.size_bytes = peak_bytes;
    if (peak_bytes > now_bytes)
        drain_emit(d, event);
    event.size_bytes = p->rss_bytes = now_bytes;
    if (now_bytes || had)
        drain_emit(d, event);
}

/* What processes have that began after it was last seen to have memory: its peak was before that, without them. */
static uint64_t rss_of_later(const struct drain *d, const struct process *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < d->processes->slot_end; i++) {
        const struct process *other = d->processes->by_slot[i];
        if (other && other != p && !other->discard && other->adopted_ns > p->sampled_ns)
            bytes += other->rss_bytes;
    }
    return bytes;
}

static void process_over(struct drain *d, struct process *p)
{
    int64_t end_ns = clock_ns(d->clock, d->merged);
    uint64_t peak_bytes = process_peak_rss(d->processes, p), later_bytes = rss_of_later(d, p);
    if (!p->discard && peak_bytes > p->peak_rss_bytes && peak_bytes > p->rss_bytes + later_bytes)
        drain_emit_rss(d, p, peak_bytes - later_bytes, p->rss_bytes);
    if (!p->discard)
        drain_emit(d, (struct event){.process_id = p->process_id, .op = EVENT_PROCESS_END, .inherited = p->inherited});
    drain_flush(d); /* who takes it may ask for the process */
    for (uint32_t i = 0; i < d->ring_count;)
        if (d->rings[i]->process == p)
            threads_close(d, d->rings[i], end_ns);
        else
            i++;
    processes_end(d->processes, p, end_ns);
}

/* Whether the last record of the process tells its end, so that its blocks leave right there. */
static int end_is_known(const struct process *p)
{
    return p->has_exit || p->replaced;
}

/* Whether the process is gone and everything that it wrote was read. */
static int is_read(const struct drain *d, const struct process *p)
{
    return p->dead && !p->unread && (p->rings_known || session_pops(d->session) == d->adopted);
}

/* Whether the thread has been in one record for too long. Where it was stopped by a signal, a debugger or a freezer,
 * all others would wait for it with full rings. Its record may come late: a block that it frees is really freed after
 * that, one that it got is in nobody else's hands. Stopped just inside a realloc that moved its block, though, another
 * thread may have got the old place meanwhile: that one's block is ended instead, and counted as replaced. */
static int is_stuck(const struct drain *d, struct ring *r, int busy, uint64_t head)
{
    if (!busy || head != r->busy_head || !r->busy_rounds) {
        r->busy_head = head;
        r->busy_ns = d->now_ns;
        r->busy_rounds = (uint32_t)busy;
        return 0;
    }
    return ++r->busy_rounds > BUSY_ROUNDS && d->now_ns - r->busy_ns > BUSY_MAX_NS;
}

/* One ring as it stands now. Returns whether it has something to give. */
static int look(struct drain *d, struct ring *r)
{
    struct wire_ring *wire = &d->session->rings[r->index];
    /* busy before head: a thread that is not busy now has published what it began before */
    int busy = !r->process->dead && __atomic_load_n(&wire->busy, __ATOMIC_ACQUIRE);
    uint64_t head = __atomic_load_n(&wire->head, __ATOMIC_ACQUIRE);
    if (r->passed_over)
        r->newest = max_u64(r->newest, d->merged); /* the record is late: its place is where it came */
    r->passed_over = (uint8_t)(is_stuck(d, r, busy, head) || (busy && d->is_last));
    r->busy = busy && !r->passed_over;
    if (!r->busy && d->limit > r->clear)
        r->clear = d->limit;
    if (r->bad || r->process->discard) {
        d->discarded_words += head - r->position;
        r->busy = 0;
        r->position = r->end = head;
        publish_tail(d, r);
        return 0;
    }
    if (head - r->position > WIRE_RING_WORDS) {
        ring_is_bad(d, r);
        return 0;
    }
    r->end = head;
    if (head == r->position)
        return 0;
    uint64_t used = head & ~(uint64_t)MASK ? WIRE_RING_WORDS : head;
    if (used > r->used_words)
        r->used_words = used;
    r->active_ns = d->now_ns;
    if (head - r->position > d->pressure)
        d->pressure = (uint32_t)(head - r->position);
    if (!r->second_half)
        r->key = max_u64(r->newest, load(&r->words[r->position & MASK]));
    return 1;
}

static void look_at_all(struct drain *d)
{
    const uint64_t ahead = clock_ticks(d->clock, FUTURE_NS);
    uint64_t future = clock_stamp(d->clock) + ahead;
    uint64_t limit = d->limit;
    d->heap_count = 0;
    d->pressure = 0;
    d->leaving = 0;
    for (uint32_t i = 0; i < WIRE_PROCS && i < d->processes->slot_end; i++)
        if (d->processes->by_slot[i])
            d->processes->by_slot[i]->unread = 0;
    for (uint32_t i = 0; i < d->ring_count; i++) {
        struct ring *r = d->rings[i];
        if (!look(d, r))
            continue;
        /* asked anew: this thread may not have run for long since it asked */
        if (r->key > future && r->key > (future = clock_stamp(d->clock) + ahead)) {
            ring_is_bad(d, r);
            continue;
        }
        r->process->unread++;
        d->heap[d->heap_count++] = (struct heap_entry){r->key, r};
    }
    /* after all were looked at: the pressure is known */
    for (uint32_t i = 0; i < d->ring_count; i++) {
        struct ring *r = d->rings[i];
        if (r->end != r->position)
            continue;
        if (is_leaving(d, r))
            d->leaving++;
        else if (!r->busy)
            continue;
        limit = min_u64(limit, barrier_of(d, r));
    }
    d->limit = limit;
}

/* Processes that are gone: those whose last record said so and was read end here; for others the order stops at the
 * instant when they were seen to be gone. */
static void look_at_the_dead(struct drain *d)
{
    for (uint32_t i = 0; i < d->processes->slot_end; i++) {
        struct process *p = d->processes->by_slot[i];
        if (!p || !p->dead)
            continue;
        if (end_is_known(p)) {
            if (is_read(d, p))
                process_over(d, p);
        } else if (!p->overdue) {
            d->limit = min_u64(d->limit, max_u64(p->dead_stamp, d->merged));
        }
    }
}

static void bury_the_dead(struct drain *d)
{
    for (uint32_t i = 0; i < d->processes->slot_end; i++) {
        struct process *p = d->processes->by_slot[i];
        if (!p || !p->dead || d->merged < p->dead_stamp)
            continue;
        if (p->unread)
            p->overdue = 1; /* words stamped after its end: take them all the same */
        else if (is_read(d, p))
            process_over(d, p);
    }
}

static void merge(struct drain *d)
{
    heap_build(d);
    while (d->heap_count && d->heap[0].key <= d->limit) {
        struct ring *r = d->heap[0].ring;
        uint64_t bound = d->limit;
        if (d->heap_count > 1)
            bound = min_u64(bound, d->heap[1].key);
        if (d->heap_count > 2)
            bound = min_u64(bound, d->heap[2].key);
        int go_on = run(d, r, bound);
        if (!go_on) {
            d->limit = min_u64(d->limit, r->key);
            break;
        }
        if (r->position != r->end) {
            d->heap[0].key = r->key;
            sift_down(d->heap, d->heap_count, 0);
            continue;
        }
        heap_drop_top(d);
        if (r->busy || is_leaving(d, r))
            d->limit = min_u64(d->limit, barrier_of(d, r));
        struct process *p = r->process;
        p->unread--;
        if (is_read(d, p) && end_is_known(p)) {
            d->merged = max_u64(d->merged, r->newest);
            process_over(d, p);
        }
    }
}

uint64_t drain_round(struct drain *d)
{
    return drain_round_until(d, UINT64_MAX);
}

uint64_t drain_round_until(struct drain *d, uint64_t stamp)
{
    uint64_t words = d->words;
    d->rounds++;
    d->now_ns = clock_monotonic_ns();
    /* Whoever took a stamp up to this one had said so (busy) before, and both have arrived here by now. */
    d->limit = max_u64(min_u64(clock_stamp(d->clock) - d->settle, stamp), d->merged);
    processes_scan(d->processes);
    processes_scan_execs(d->processes, d->now_ns);
    processes_scan_claims(d->processes, d->now_ns);
    processes_scan_spawns(d->processes, d->now_ns);
    processes_scan_missing(d->processes, d->now_ns);
    threads_adopt(d);
    look_at_all(d);
    look_at_the_dead(d);
    merge(d);
    if (d->words != words)
        d->stall_ns = 0;
    /* what is still in the heap is stamped later than the limit, and so is what comes */
    d->merged = max_u64(d->merged, d->limit);
    for (uint32_t i = 0; i < d->ring_count; i++)
        publish_tail(d, d->rings[i]);
    bury_the_dead(d);
    threads_check(d);
    drain_flush(d);
    return d->words - words;
}

int drain_is_in(const struct drain *d, const struct process *p, uint64_t stamp)
{
    for (uint32_t i = 0; i < d->ring_count; i++) {
        const struct ring *r = d->rings[i];
        if (r->process == p && (r->position == r->end ? r->clear < stamp : r->key <= stamp))
            return 0;
    }
    return 1;
}

int drain_is_read(const struct drain *d, const struct process *p)
{
    if (session_pops(d->session) != d->adopted)
        return 0;
    for (uint32_t i = 0; i < d->ring_count; i++) {
        const struct ring *r = d->rings[i];
        const struct wire_ring *wire = &d->session->rings[r->index];
        /* as in look() */
        if (r->process == p && (__atomic_load_n(&wire->busy, __ATOMIC_ACQUIRE) ||
                                __atomic_load_n(&wire->head, __ATOMIC_ACQUIRE) != r->position))
            return 0;
    }
    return 1;
}

int drain_may_sleep(const struct drain *d)
{
    for (uint32_t i = 0; i < d->ring_count; i++) {
        const struct ring *r = d->rings[i];
        uint64_t head = __atomic_load_n(&d->session->rings[r->index].head, __ATOMIC_RELAXED);
        if (head - r->position > WIRE_RING_WORDS / 8)
            return 0;
    }
    return 1;
}

void drain_finish(struct drain *d)
{
    /* More than once: an end that is read lets others go. Nothing waits for what is not there. */
    d->is_last = 1;
    for (int i = 0; i < 3; i++) {
        nanosleep(&(struct timespec){0, SETTLE_NS + SETTLE_NS / 10}, NULL);
        drain_round(d);
    }
    for (uint32_t i = 0; i < d->processes->slot_end; i++) {
        struct process *p = d->processes->by_slot[i];
        if (!p)
            continue;
        if (!p->discard)
            drain_emit(d,
                       (struct event){.process_id = p->process_id, .op = EVENT_PROCESS_END, .inherited = p->inherited});
        for (uint32_t k = 0; k < d->ring_count;)
            if (d->rings[k]->process == p)
                threads_close(d, d->rings[k], -1);
            else
                k++;
        processes_abandon(d->processes, p);
    }
    processes_finish_missing(d->processes);
    drain_flush(d);
}
