#include "thin.h"

#include "sampler.h"
#include "session.h"
#include "thread.h"

struct thin thin;

int thin_start(const struct wire_control *control)
{
    if (!control->sample_bytes && !control->least_bytes)
        return 1;
    void *memory = sys_map(CHOSEN_BYTES);
    if (!memory)
        return 0;
    chosen_init(&thin.chosen, memory);
    uint64_t always = wire_sample_always(control->sample_bytes);
    thin.least_bytes = control->least_bytes;
    thin.span_bytes = always > thin.least_bytes ? always - thin.least_bytes : 0;
    thin.mean_bytes = control->sample_bytes;
    thin.is_on = 1;
    return 1;
}

/* By its ring's thread only; a signal handler's may come between any two instructions, but not into one. */
static void add(uint64_t *word, uint64_t n)
{
    __asm__ volatile("addq %1, %0" : "+m"(*word) : "r"(n) : "cc");
}

static void left_out(const struct thread *t, uint64_t size_bytes)
{
    struct wire_left *left = session_left(t->ring);
    unsigned class = size_bytes ? 64 - (unsigned)__builtin_clzll(size_bytes) : 0;
    if (class >= WIRE_LEFT_CLASSES)
        class = WIRE_LEFT_CLASSES - 1;
    add(&left->count[class], 1);
    add(&left->bytes[class], size_bytes);
}

/* All threads of all processes draw from streams of their own: the number of each is the recording's. */
static void begin(struct thread *t)
{
    uint64_t number = __atomic_fetch_add(&process.control->sample_threads, 1, __ATOMIC_RELAXED);
    t->thin_state = process.control->sample_seed;
    t->thin_state = sampler_random(&t->thin_state) + number * 0xd1342543de82ef95ull;
    t->thin_state = sampler_random(&t->thin_state);
    t->thin_is_ready = 1;
    t->thin_left = sampler_gap(&t->thin_state, thin.mean_bytes);
}

int thin_chooses(struct thread *t, uint64_t size_bytes)
{
    if (size_bytes < thin.least_bytes) {
        left_out(t, size_bytes);
        return 0;
    }
    if (size_bytes - thin.least_bytes >= thin.span_bytes)
        return 1;
    if (!t->thin_is_ready)
        begin(t);
    if (size_bytes < t->thin_left) {
        t->thin_left -= size_bytes;
        return 0;
    }
    t->thin_left = sampler_gap(&t->thin_state, thin.mean_bytes);
    return 1;
}

void thin_lives(const void *p)
{
    chosen_add(&thin.chosen, p);
}

int thin_dies(const void *p)
{
    return chosen_take(&thin.chosen, p);
}
