#include "record_heap.h"

#include "attach.h"
#include "heap_ask.h"
#include "heap_ranges.h"
#include "order.h"
#include "pause.h"
#include "real.h"
#include "record_ring.h"
#include "self_stat.h"

#define INTERVAL_NS       10000000u /* between two samples, as the collector says it in stamps */
#define HEAP_WORDS_WALKED 500000u   /* in one interval: 40 ns a chunk, two words each */

uint64_t record_heap_due;
static uint64_t interval; /* stamps; 0: no samples */

/* The last look at all of glibc's heap; whoever got record_heap_due writes it. */
static struct heap_walk {
    uint64_t started; /* stamp */
    uint64_t sampled; /* stamp of the last sample, walk or not */
    uint64_t end;     /* stamp; 0: none yet */
    uint64_t cost;    /* stamps that the next one takes, as far as is known */
    uint64_t arena_bytes, mapped_bytes;
    uint64_t top; /* the break then */
    const struct thread *thread;
    uint64_t head; /* its words then */
} walk;

void record_heap_start(void)
{
    interval = process.control->sample_interval;
    record_heap_due = interval ? 0 : UINT64_MAX; /* 0: with the first allocation */
    walk = (struct heap_walk){.started = clock_now()};
    heap_ask_forget();
    heap_ranges_start();
}

void record_heap_sample_if_due(struct thread *t, uint64_t stamp)
{
    uint64_t due = __atomic_load_n(&record_heap_due, __ATOMIC_RELAXED);
    /* other threads stay out for a second, not for ever: this one may be left by longjmp */
    uint64_t later = stamp + 100 * interval;
    pause_look();
    order_look(t);
    if (t->depth == 1 && t->writing == 0 && stamp >= due &&
        __atomic_compare_exchange_n(&record_heap_due, &due, later, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (process.joined)
            attach_look();
        record_heap_sample(t);
    }
}

/* What a walk over the heap takes: as long as the last one, and longer where nobody looked for a while, which is when a
 * thread does nothing but free: each block it freed may be a chunk more to visit. */
static uint64_t walk_cost(const struct thread *t, uint64_t now)
{
    struct heap_walk *w = &walk;
    uint64_t known = t == w->thread && t->head >= w->head ? w->head : 0;
    uint64_t guess = (t->head - known) * (interval / HEAP_WORDS_WALKED);
    if (now - w->sampled > 4 * interval && guess > w->cost)
        w->cost = guess;
    return w->cost;
}

/* Asking takes the allocator's locks: not from a signal handler that may have interrupted their holder. */
static int is_possible(const struct thread *t)
{
    return interval && real.malloc_is_libc && !process_is_filtered() && t->depth == 1 && !t->writing;
}

/* mallinfo2 walks every free chunk of every arena, so it is called where at least fifty times what it takes have passed
 * since then: at most 2 % whatever the heap looks like. Else the break says how the first arena grows and shrinks. */
static void sample(struct thread *t, uint64_t since)
{
    struct heap_walk *w = &walk;
    if (!is_possible(t) || process.heap_locks_unsure)
        return;
    uint64_t now = clock_now(), cost = walk_cost(t, now);
    uint64_t used = 0; /* + 1; 0: glibc was not asked now */
    if (!w->end || (now >= since && now - since >= 50 * cost)) {
        struct heap_answer answer;
        uint64_t asks[] = {WIRE_WORD1(WIRE_HEAP_ASK, 0, 0)};
        record_words(t, asks, 2);
        uint64_t asked = clock_now();
        if (heap_ask(&answer, 5 * interval + 2 * cost)) {
            w->arena_bytes = answer.arena_bytes;
            w->mapped_bytes = answer.mapped_bytes;
            w->top = answer.top;
            w->end = answer.end;
            w->cost = answer.cost_ns * (interval / 1000) / (INTERVAL_NS / 1000);
            w->thread = t;
            w->head = t->head;
            if (answer.begin >= asked) /* else it came too late for the sample before */
                used = answer.used_bytes < WIRE_A_MASK ? answer.used_bytes + 1 : WIRE_A_MASK;
        }
    }
    w->sampled = now;
    heap_ranges_tell(t, w->end ? w->mapped_bytes : HEAP_MAPPED_SAME, 100 * interval, 0);
    if (w->end) {
        uint64_t top = real.sbrk ? (uint64_t)real.sbrk(0) : 0;
        uint64_t arena_bytes = top < w->top && w->top - top > w->arena_bytes ? 0 : w->arena_bytes + (top - w->top);
        uint64_t words[] = {WIRE_WORD1(WIRE_HEAP_SAMPLE, 0, used), arena_bytes, w->mapped_bytes};
        record_words(t, words, 4);
        COUNT(heap_sample, 1);
    }
    __atomic_store_n(&record_heap_due, clock_now() + interval, __ATOMIC_RELEASE);
}

void record_heap_sample(struct thread *t)
{
    sample(t, walk.end);
}

/* Of the program's threads, the last. */
static int is_alone(void)
{
    char text[512];
    if (__libc_single_threaded)
        return 1;
    if (process_is_filtered())
        return 0;
    uint64_t count = self_stat(SELF_STAT_THREADS, text, sizeof text);
    return count == 1 || (count == 2 && heap_ask_is_busy());
}

/* Other threads go on with what destructors have left of the program, and each wait makes that longer: they are not to
 * wait for locks now, nor this one for an answer, if there was one before. Where there are none this is the only answer
 * that knows of what they freed at last. */
void record_heap_end(struct thread *t)
{
    int may_ask = is_possible(t) && is_alone();
    if (may_ask)
        heap_ask_settle(5 * interval + 2 * walk.cost);
    sample(t, may_ask ? walk.started : UINT64_MAX);
    record_heap_last(t);
}

void record_heap_last(struct thread *t)
{
    if (is_possible(t))
        heap_ranges_tell(t, HEAP_MAPPED_SAME, 0, 1);
}
