#include "desk.h"

#include "record_ring.h"
#include "session.h"

#define WAIT_NS  1000000000u /* for an answer, the room for the question included */
#define SLICE_NS 5000000u    /* between two looks whether the collector lives */
#define ROOM_NS  50000u      /* between two looks whether there is room */
#define READS    100u
enum { SYNC_WORDS = 4 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int is_served(void)
{
    return __atomic_load_n(&process.control->state, __ATOMIC_RELAXED) == WIRE_STATE_ON &&
           wire_collector_lives(process.control);
}

int desk_name(const char *device, char name[WIRE_NAME_BYTES])
{
    unsigned length = 0;
    while (device && length < WIRE_NAME_BYTES && device[length]) {
        name[length] = device[length];
        length++;
    }
    for (unsigned i = length; i < WIRE_NAME_BYTES; i++)
        name[i] = 0;
    return length < WIRE_NAME_BYTES;
}

static int is_same(const char *a, const char *b)
{
    unsigned i = 0;
    while (i < WIRE_NAME_BYTES && a[i] == b[i])
        i++;
    return i == WIRE_NAME_BYTES;
}

static void copy(struct wire_figures *to, const struct wire_figures *from)
{
#define X(name, text) to->name = __atomic_load_n(&from->name, __ATOMIC_RELAXED);
#include "../wire_figures.def"
#undef X
}

/* A row as it was at one moment. 0: it was written anew at each look, which takes the collector a millisecond. */
static int read_row(const struct wire_row *row, struct wire_figures *figures)
{
    for (unsigned i = 0; i < READS; i++) {
        uint32_t version = __atomic_load_n(&row->version, __ATOMIC_ACQUIRE);
        copy(figures, &row->figures[version & 1]);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&row->version, __ATOMIC_RELAXED) == version)
            return 1;
    }
    return 0;
}

enum desk_status desk_read(const char name[WIRE_NAME_BYTES], struct wire_figures *figures)
{
    const struct wire_desk *desk = session_desk();
    if (!is_served())
        return DESK_NOT_RECORDED;
    uint32_t count = __atomic_load_n(&desk->row_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < WIRE_FIGURES; i++)
        if (is_same(desk->rows[i].name, name))
            return read_row(&desk->rows[i], figures) ? DESK_OK : DESK_NO_ANSWER;
    return count ? DESK_NO_DEVICE : DESK_NO_ANSWER;
}

/* The hooks' way to room waits for as long as the collector is stopped. */
static enum desk_status wait_for_room(const struct thread *t, uint64_t begin_ns)
{
    while (!record_has_room(t, SYNC_WORDS)) {
        if (!is_served() || !thread_owns_ring(t))
            return DESK_NOT_RECORDED;
        if (now_ns() - begin_ns > WAIT_NS)
            return DESK_NO_ANSWER;
        record_wake_collector();
        sys_sleep_ns(ROOM_NS);
    }
    return DESK_OK;
}

static enum desk_status wait_for_answer(struct wire_answer *a, uint32_t number, uint64_t begin_ns)
{
    uint32_t answered;
    while ((answered = __atomic_load_n(&a->answered, __ATOMIC_ACQUIRE)) != number) {
        if (!is_served())
            return DESK_NOT_RECORDED;
        if (now_ns() - begin_ns > WAIT_NS)
            return DESK_NO_ANSWER;
        sys_futex_wait(&a->answered, answered, SLICE_NS);
    }
    return DESK_OK;
}

/* The question, and the collector woken from whichever nap. 0: it could not be written. */
static int write_question(struct thread *t, const char name[WIRE_NAME_BYTES], unsigned flags, uint32_t number)
{
    uint32_t *asked = &session_desk()->asked;
    uint64_t words[SYNC_WORDS - 1] = {WIRE_WORD1(WIRE_SYNC, 0, (uint64_t)flags << 32 | number)}, head = t->head;
    for (unsigned i = 0; i < WIRE_NAME_BYTES; i++)
        words[1 + i / 8] |= (uint64_t)(unsigned char)name[i] << i % 8 * 8;
    if (!record_room(t, SYNC_WORDS)) /* before anybody waits: threads that make room give way to the collector then */
        return 0;
    __atomic_fetch_add(asked, 1, __ATOMIC_SEQ_CST);
    record_words(t, words, SYNC_WORDS);
    sys_futex_wake(asked);
    record_wake_collector();
    return t->head != head;
}

enum desk_status desk_ask(struct thread *t, const char name[WIRE_NAME_BYTES], unsigned flags,
                          struct wire_figures *figures)
{
    const uint64_t begin_ns = now_ns();
    if (!is_served() || !thread_owns_ring(t))
        return DESK_NOT_RECORDED;
    struct wire_answer *a = session_answer(t->ring);
    /* who gave up once waits no more, until the collector has come that far; the ring may have been another thread's */
    if (a->tid == t->tid && a->asked != __atomic_load_n(&a->answered, __ATOMIC_ACQUIRE))
        return DESK_NO_ANSWER;
    enum desk_status status = wait_for_room(t, begin_ns);
    if (status != DESK_OK)
        return status;
    uint32_t number = a->asked + 1;
    a->tid = t->tid;
    a->asked = number;
    if (!write_question(t, name, flags, number)) {
        a->asked = number - 1;
        return DESK_NO_ANSWER;
    }
    status = wait_for_answer(a, number, begin_ns);
    if (status != DESK_OK)
        return status;
    copy(figures, &a->figures);
    return a->is_known ? DESK_OK : DESK_NO_DEVICE;
}
