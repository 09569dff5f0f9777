/* The ordering stage against threads and processes that write to rings as the library does. */
#include "drain_setup.h"
#include "ring_writer.h"
#include "scratch.h"

#include "../../common/db.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>

#include <cmocka.h>

/* --- one thread --- */

static void test_one_thread(void **state)
{
    (void)state;
    for (int tsc = 0; tsc < 2; tsc++) {
        struct setup *s = setup_begin(tsc);
        struct writer w;
        uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
        const uint64_t addresses[] = {0x1100, 0x1200, 0x1300};
        assert_int_equal(writer_open(&w, s->session.control, slot, getpid(), getpid()), 0);
        writer_module(&w, 1, 0x1000, 0x2000, 0x1000, "\1\2\3", 3, "/lib/one.so");
        writer_stack(&w, 7, WIRE_STACK_CUT, addresses, 3);
        writer_alloc(&w, 0xa000, 100, 7);
        writer_free(&w, 0xa000);
        uint64_t moved[6] = {0, WIRE_WORD1(WIRE_REALLOC, WIRE_HOOK_realloc, 0xb000), 7, 1ull << 33, 0xc000, 0};
        writer_busy(&w);
        moved[0] = writer_stamp(s->session.control);
        moved[5] = writer_stamp(s->session.control);
        writer_publish(&w, moved, 6);
        setup_rounds(s, 3);
        assert_int_equal(s->count, 4);
        assert_int_equal(s->disorder, 0);
        assert_int_equal(s->events[0].op, EVENT_ALLOC);
        assert_int_equal(s->events[0].address, 0xa000);
        assert_int_equal(s->events[0].size_bytes, 100);
        assert_int_not_equal(s->events[0].stack_id, 0);
        assert_int_equal(s->events[1].op, EVENT_FREE);
        assert_int_equal(s->events[2].op, EVENT_REALLOC_FREE);
        assert_int_equal(s->events[2].address, 0xb000);
        assert_int_equal(s->events[3].op, EVENT_REALLOC_ALLOC);
        assert_int_equal(s->events[3].address, 0xc000);
        assert_int_equal(s->events[3].size_bytes, 1ull << 33);
        stacks_write(s->stacks);
        sqlite3 *db = store_db(s->store);
        assert_int_equal(db_int(db, "SELECT count(*) FROM stack", -1), 3);
        assert_int_equal(
            db_int(db, "SELECT count(*) FROM stack WHERE parent_id IS NULL AND flags = 1 AND depth = 1", -1), 1);
        assert_int_equal(db_int(db,
                                "SELECT count(*) FROM address JOIN module USING(module_id) WHERE build_id = '010203' "
                                "AND offset IN (0x100, 0x200, 0x300)",
                                -1),
                         3);
        /* the leaf of the event's stack is the innermost frame */
        sqlite3_stmt *q;
        assert_int_equal(
            sqlite3_prepare_v2(db, "SELECT offset FROM stack JOIN address USING(address_id) WHERE stack_id = ?", -1, &q,
                               NULL),
            0);
        sqlite3_bind_int64(q, 1, s->events[0].stack_id);
        assert_int_equal(sqlite3_step(q), SQLITE_ROW);
        assert_int_equal(sqlite3_column_int64(q, 0), 0x100);
        sqlite3_finalize(q);
        assert_int_equal(db_int(db, "SELECT count(*) FROM process WHERE command_line = 'test ''two words'''", -1), 1);
        setup_end(s);
    }
}

/* A busy ring holds the order at its newest stamp, whatever the others have. */
static void test_busy_holds(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer a, b;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    writer_open(&b, s->session.control, slot, getpid(), getpid());
    writer_free(&a, 1);
    setup_rounds(s, 2);
    assert_int_equal(s->count, 1);
    writer_busy(&a);
    uint64_t stamp = writer_stamp(s->session.control);
    usleep(1000);
    writer_free(&b, 3);
    setup_rounds(s, 5);
    assert_int_equal(s->count, 1);
    uint64_t late[2] = {stamp, WIRE_WORD1(WIRE_FREE, WIRE_HOOK_free, 2)};
    writer_publish(&a, late, 2);
    setup_rounds(s, 3);
    assert_int_equal(s->count, 3);
    assert_int_equal(s->events[1].address, 2);
    assert_int_equal(s->events[2].address, 3);
    assert_int_equal(s->disorder, 0);
    /* the halves of a realloc stand apart where another thread acted between them */
    uint64_t moved[6] = {0, WIRE_WORD1(WIRE_REALLOC, WIRE_HOOK_realloc, 4), 0, 8, 6, 0};
    writer_busy(&a);
    moved[0] = writer_stamp(s->session.control);
    usleep(10);
    writer_free(&b, 5);
    usleep(10);
    moved[5] = writer_stamp(s->session.control);
    writer_publish(&a, moved, 6);
    setup_rounds(s, 3);
    assert_int_equal(s->count, 6);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s->events[3 + i].address, 4 + i);
    setup_end(s);
}

/* A thread that was stopped in the middle of a record holds the others for a while, not for ever; what it writes when
 * it goes on comes late and is there. */
static void test_stopped_while_busy(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer a, b;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    writer_open(&b, s->session.control, slot, getpid(), getpid());
    setup_rounds(s, 2);
    writer_busy(&a);
    uint64_t stamp = writer_stamp(s->session.control);
    writer_free(&b, 1);
    setup_rounds(s, 5);
    assert_int_equal(s->count, 0);
    usleep(1200000); /* the collector did not run either: nobody is late yet */
    setup_rounds(s, 2);
    assert_int_equal(s->count, 0);
    setup_rounds(s, 20);
    assert_int_equal(s->count, 1);
    for (uint64_t i = 0; i < WIRE_RING_WORDS; i++) {
        writer_free(&b, 2);
        if (i % 1000 == 0)
            setup_rounds(s, 1);
    }
    setup_rounds(s, 3);
    assert_int_equal(s->count, 1 + WIRE_RING_WORDS);
    uint64_t late[2] = {stamp, WIRE_WORD1(WIRE_FREE, WIRE_HOOK_free, 3)};
    writer_publish(&a, late, 2);
    writer_free(&b, 4);
    setup_rounds(s, 3);
    assert_int_equal(s->count, 3 + WIRE_RING_WORDS);
    assert_int_equal(s->events[s->count - 2].address, 3);
    assert_int_equal(s->disorder, 0);
    /* it holds the order again, but for the end of the recording */
    writer_busy(&a);
    writer_free(&b, 5);
    setup_rounds(s, 5);
    assert_int_equal(s->count, 3 + WIRE_RING_WORDS);
    drain_finish(s->drain);
    assert_non_null(setup_find_event(s, EVENT_PROCESS_END, 1, NULL));
    assert_int_equal(s->events[3 + WIRE_RING_WORDS].address, 5);
    setup_end(s);
}

/* --- several processes at full speed --- */

#define WRITERS  4
#define HANDOFFS 200000

static uint64_t random_of(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

struct writer_args {
    struct setup *s;
    uint32_t slot;
    int number;
    uint64_t *words; /* "addresses" that all threads take and give back: 0 free, 1 taken */
    int *ended;      /* so many threads have closed their rings */
};

/* Takes and frees addresses shared with the other threads: an allocation is stamped after it was taken, a free before
 * it is given back, so in a right order each address alternates. */
static void *hammer(void *arg)
{
    struct writer_args *args = arg;
    struct writer w;
    uint64_t seed = 88172645463325252ull + (uint64_t)args->number;
    int tid = (int)syscall(SYS_gettid);
    writer_open(&w, args->s->session.control, args->slot, getpid(), tid);
    uint64_t stack[3] = {0x5000 + (uint64_t)args->number, 0x6000, 0x7000};
    writer_stack(&w, (uint32_t)args->number + 1, 0, stack, 3);
    uint64_t mine[16], held = 0;
    for (int i = 0; i < HANDOFFS || held; i++) {
        uint64_t at = random_of(&seed) & 63;
        if (i < HANDOFFS && held < 16 && !__atomic_load_n(&args->words[at], __ATOMIC_RELAXED)) {
            uint64_t none = 0;
            writer_room(&w, 3);
            if (__atomic_compare_exchange_n(&args->words[at], &none, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
                _mm_lfence();
                writer_alloc(&w, 0x10000 + at, 8, (uint32_t)args->number + 1);
                mine[held++] = at;
            }
        } else if (held) {
            at = mine[--held];
            writer_free(&w, 0x10000 + at);
            __atomic_store_n(&args->words[at], 0, __ATOMIC_SEQ_CST);
        }
    }
    __atomic_store_n(&w.ring->state, WIRE_RING_CLOSING, __ATOMIC_RELEASE);
    __atomic_fetch_add(args->ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

static int64_t depth_of(sqlite3 *db, uint32_t stack_id)
{
    return db_int_of(db, "SELECT depth FROM stack WHERE stack_id = ?", &(int64_t){stack_id}, 1, -1);
}

static void test_threads(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    pthread_t threads[WRITERS];
    struct writer_args args[WRITERS];
    uint64_t words[64] = {0};
    int ended = 0;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    for (int i = 0; i < WRITERS; i++) {
        args[i] = (struct writer_args){s, slot, i, words, &ended};
        pthread_create(&threads[i], NULL, hammer, &args[i]);
    }
    /* each takes one of the first rings; one that ends early leaves its ring to others */
    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < WRITERS)
        drain_round(s->drain);
    for (int i = 0; i < WRITERS; i++)
        while (s->session.rings[i].tail != s->session.rings[i].head)
            drain_round(s->drain);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    setup_rounds(s, 3);
    uint8_t taken[64] = {0};
    uint64_t allocs = 0, wrong = 0, unknown = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct event *e = &s->events[i];
        if (e->op != EVENT_ALLOC && e->op != EVENT_FREE)
            continue;
        uint64_t at = e->address - 0x10000;
        allocs += e->op == EVENT_ALLOC;
        unknown += e->op == EVENT_ALLOC && !e->stack_id;
        wrong += taken[at] != (e->op == EVENT_FREE);
        taken[at] = e->op == EVENT_ALLOC;
    }
    assert_true(allocs > WRITERS * HANDOFFS / 4);
    assert_int_equal(wrong, 0);
    assert_int_equal(unknown, 0);
    assert_int_equal(s->disorder, 0);
    /* their rings come back */
    for (int i = 0; i < 1000 && s->drain->ring_count; i++) {
        usleep(1000);
        drain_round(s->drain);
    }
    assert_int_equal(s->drain->ring_count, 0);
    assert_int_equal(db_int(store_db(s->store), "SELECT count(*) FROM thread WHERE end_ns IS NOT NULL", -1), WRITERS);
    setup_end(s);
}

/* A stack that another thread defined, later in the order than the event that names it. */
static void test_stack_of_another_thread(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer a, b;
    const uint64_t addresses[] = {0x1100};
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    writer_open(&b, s->session.control, slot, getpid(), getpid());
    uint64_t early = writer_stamp(s->session.control);
    usleep(100);
    writer_stack(&a, 1, 0, addresses, 1);
    uint64_t words[3] = {early, WIRE_WORD1(WIRE_ALLOC, WIRE_HOOK_malloc, 1), 5ull << 32 | 1};
    writer_publish(&b, words, 3);
    setup_rounds(s, 3);
    assert_int_equal(s->count, 1);
    assert_int_not_equal(s->events[0].stack_id, 0);
    /* one that never comes costs its stack, not the event */
    writer_alloc(&b, 2, 5, 99);
    setup_rounds(s, 3);
    assert_int_equal(s->count, 2);
    assert_int_equal(s->events[1].stack_id, 0);
    assert_int_equal(s->drain->unknown_stacks, 1);
    setup_end(s);
}

/* Stacks told by what is new in them, looked for ahead of the order: each is followed once, in the ring's order. */
static void test_next_stacks_ahead(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer a, b;
    static const uint64_t first[] = {0x1300, 0x1200, 0x1100}, second[] = {0x1400}, deep[1024];
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    writer_open(&b, s->session.control, slot, getpid(), getpid());
    uint64_t early = writer_stamp(s->session.control);
    usleep(100);
    writer_stack_next(&a, 1, 0, first, 3);
    writer_stack(&a, 4, 0, second, 1); /* a nested one, which is no part of the way */
    writer_stack_next(&a, 2, 2, second, 1);
    uint64_t words[3] = {early, WIRE_WORD1(WIRE_ALLOC, WIRE_HOOK_malloc, 1), 5ull << 32 | 2};
    writer_publish(&b, words, 3);
    setup_rounds(s, 3);
    writer_stack_next(&a, 3, 3, second, 1);
    writer_alloc(&a, 2, 5, 3);
    setup_rounds(s, 3);
    assert_int_equal(s->count, 2);
    stacks_write(s->stacks);
    sqlite3 *db = store_db(s->store);
    assert_int_equal(depth_of(db, s->events[0].stack_id), 3);
    assert_int_equal(depth_of(db, s->events[1].stack_id), 4);
    assert_int_equal(db_int(db, "SELECT count(*) FROM stack", -1), 3 + 1 + 1 + 1);
    assert_int_equal(s->drain->bad_records, 0);
    writer_stack_next(&a, 5, 5, second, 1); /* shares more than there is */
    writer_stack_next(&a, 6, 4, deep, 1024);
    writer_alloc(&a, 3, 5, 5);
    setup_rounds(s, 3);
    assert_int_equal(s->drain->bad_records, 2);
    assert_int_equal(s->events[2].stack_id, 0);
    setup_end(s);
}

/* --- damage --- */

static void test_damaged(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer a, b, c, e;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    writer_open(&b, s->session.control, slot, getpid(), getpid());
    writer_open(&c, s->session.control, slot, getpid(), getpid());
    writer_open(&e, s->session.control, slot, getpid(), getpid());
    uint64_t bad_op[2] = {0, (uint64_t)WIRE_OP_COUNT << 56};
    uint64_t bad_length[2] = {0, (uint64_t)WIRE_STACK << 56 | (uint64_t)0xffff << 32 | 1};
    uint64_t future[2] = {UINT64_MAX - 5, WIRE_WORD1(WIRE_FREE, WIRE_HOOK_free, 9)};
    writer_free(&a, 1);
    writer_put(&a, bad_op, 2);
    writer_free(&a, 2);
    writer_put(&b, bad_length, 2);
    writer_publish(&c, future, 2);
    s->session.rings[3].head = 5ull * WIRE_RING_WORDS;
    setup_rounds(s, 4);
    assert_int_equal(s->drain->bad_rings, 4);
    assert_int_equal(s->count, 1);
    /* a damaged ring is emptied, so that its thread does not wait */
    writer_free(&a, 3);
    setup_rounds(s, 2);
    assert_int_equal(s->session.rings[0].tail, s->session.rings[0].head);
    assert_int_equal(s->count, 1);
    setup_end(s);
}

/* Thousands of short threads: rings are used again, memory does not grow. */
static void *short_thread(void *arg)
{
    struct writer_args *args = arg;
    struct writer w;
    int tid = (int)syscall(SYS_gettid);
    if (writer_open(&w, args->s->session.control, args->slot, getpid(), tid))
        return NULL;
    for (int i = 0; i < 100; i++)
        writer_free(&w, (uint64_t)tid);
    __atomic_store_n(&w.ring->state, WIRE_RING_CLOSING, __ATOMIC_RELEASE);
    return NULL;
}

static int drain_enough;

static void *drain_thread(void *arg)
{
    struct setup *s = arg;
    while (!__atomic_load_n(&s->disorder, __ATOMIC_RELAXED) && s->drain->rounds < 1000000 &&
           !__atomic_load_n(&drain_enough, __ATOMIC_RELAXED)) {
        drain_round(s->drain);
        usleep(200);
    }
    return NULL;
}

static void test_thread_churn(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    struct writer_args args = {s, slot, 0, NULL, NULL};
    pthread_t collector;
    pthread_attr_t small; /* a sanitizer clears what it keeps of each stack */
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    pthread_create(&collector, NULL, drain_thread, s);
    for (int i = 0; i < 2000; i++) {
        pthread_t threads[4];
        for (int k = 0; k < 4; k++)
            pthread_create(&threads[k], &small, short_thread, &args);
        for (int k = 0; k < 4; k++)
            pthread_join(threads[k], NULL);
    }
    pthread_attr_destroy(&small);
    usleep(50000);
    __atomic_store_n(&drain_enough, 1, __ATOMIC_RELAXED);
    pthread_join(collector, NULL);
    for (int i = 0; i < 100 && s->drain->ring_count; i++) {
        usleep(2000);
        drain_round(s->drain);
    }
    assert_int_equal(s->drain->ring_count, 0);
    assert_int_equal(s->count, 8000 * 100);
    assert_int_equal(s->disorder, 0);
    /* of 8000 threads; how many depends on the load of the machine */
    assert_true(session_ring_end(&s->session) < 6000);
    assert_int_equal(s->session.control->rings_refused, 0);
    assert_int_equal(db_int(store_db(s->store), "SELECT count(*) FROM thread", -1), 8000);
    setup_end(s);
}

/* --- marks --- */

/* A mark's text; an id where the kind has one. When it happened. */
static int64_t put_mark(struct setup *s, struct writer *w, unsigned kind, uint64_t id, const char *text)
{
    uint64_t words[32] = {0}, bytes = strlen(text), first = kind >= WIRE_MARK_START ? 3 : 2;
    uint64_t count = first + (bytes + 7) / 8;
    words[1] = (uint64_t)WIRE_MARK << 56 | (uint64_t)kind << 48 | count << 32 | bytes;
    words[2] = id;
    memcpy(words + first, text, bytes);
    return clock_ns(&s->clock, writer_put(w, words, count));
}

static void expect_mark(struct setup *s, const char *name, const char *domain, int64_t start_ns, int64_t end_ns)
{
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_prepare_v2(store_db(s->store),
                                        "SELECT start_ns, coalesce(end_ns, -1), is_range FROM mark WHERE name = ? AND "
                                        "coalesce(domain, '') = ?",
                                        -1, &q, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, domain, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(q, 0), start_ns);
    assert_int_equal(sqlite3_column_int64(q, 1), end_ns);
    assert_int_equal(sqlite3_column_int(q, 2), strcmp(name, "here") != 0);
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    sqlite3_finalize(q);
}

/* Ranges nest by thread and domain; those with ids end in any order and on any thread. */
static void test_marks(void **state)
{
    (void)state;
    struct setup *s = setup_begin(0);
    struct writer a, b;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    writer_open(&b, s->session.control, slot, getpid(), getpid() + 1);
    int64_t here = put_mark(s, &a, WIRE_MARK_INSTANT, 0, "here");
    int64_t outer = put_mark(s, &a, WIRE_MARK_PUSH, 0, "outer");
    int64_t other = put_mark(s, &a, WIRE_MARK_PUSH, 0, "one\x1f\x1fother");
    int64_t inner = put_mark(s, &a, WIRE_MARK_PUSH, 0, "inner");
    int64_t first = put_mark(s, &a, WIRE_MARK_START, 7, "first"),
            second = put_mark(s, &b, WIRE_MARK_START, 8, "second");
    int64_t inner_end = put_mark(s, &a, WIRE_MARK_POP, 0, "");
    int64_t outer_end = put_mark(s, &a, WIRE_MARK_POP, 0, "");
    put_mark(s, &a, WIRE_MARK_POP, 0, "two"); /* nothing of that domain is open */
    put_mark(s, &a, WIRE_MARK_POP, 0, "");
    int64_t other_end = put_mark(s, &a, WIRE_MARK_POP, 0, "one");
    int64_t first_end = put_mark(s, &b, WIRE_MARK_END, 7, "");
    put_mark(s, &b, WIRE_MARK_END, 9, "");
    setup_rounds(s, 3);
    expect_mark(s, "here", "", here, -1);
    expect_mark(s, "outer", "", outer, outer_end);
    expect_mark(s, "other", "one", other, other_end);
    expect_mark(s, "inner", "", inner, inner_end);
    expect_mark(s, "first", "", first, first_end);
    expect_mark(s, "second", "", second, -1);
    assert_int_equal(db_int(store_db(s->store), "SELECT count(*) FROM mark", -1), 6);
    assert_int_equal(s->drain->bad_records, 0);
    setup_end(s);
}

static void put_range(struct writer *w, uint64_t address, uint64_t size_bytes, uint64_t arena)
{
    uint64_t words[4] = {0, WIRE_WORD1(WIRE_HEAP_RANGE, 0, address), size_bytes, arena};
    writer_put(w, words, 4);
}

static void test_heap_ranges(void **state)
{
    (void)state;
    struct setup *s = setup_begin(0);
    struct writer a;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    put_range(&a, 0x10000, 135168, 0);
    put_range(&a, 0x7f0000000000, 4096, 0x7f0000000000);
    put_range(&a, 0x10000, 200704, 0);
    put_range(&a, 0x7f0000000000, 0, 0x7f0000000000);
    setup_rounds(s, 3);
    sqlite3 *db = store_db(s->store);
    assert_int_equal(db_int(db, "SELECT count(*) FROM heap_range", -1), 4);
    assert_int_equal(db_int(db,
                            "SELECT size_bytes FROM heap_range WHERE address = 65536 AND arena = 0 ORDER BY "
                            "time_ns DESC LIMIT 1",
                            -1),
                     200704);
    assert_int_equal(db_int(db, "SELECT count(*) FROM heap_range WHERE arena = address AND process_id = 1", -1), 2);
    assert_int_equal(db_int(db, "SELECT size_bytes FROM heap_range ORDER BY time_ns DESC LIMIT 1", -1), 0);
    assert_int_equal(s->drain->bad_records, 0);
    setup_end(s);
}

static void put_unhooked(struct writer *w, const char *path, uint64_t bytes)
{
    uint64_t words[4] = {0, (uint64_t)WIRE_UNHOOKED << 56 | 4ull << 32 | bytes};
    memcpy(words + 2, path, strlen(path));
    writer_put(w, words, 4);
}

/* One row a path, however often it is told of. A length beyond the record is no record. */
static void test_unhooked(void **state)
{
    (void)state;
    struct setup *s = setup_begin(0);
    struct writer a;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&a, s->session.control, slot, getpid(), getpid());
    put_unhooked(&a, "/lib/phar.so", 12);
    put_unhooked(&a, "/lib/phar.so", 12);
    put_unhooked(&a, "/lib/pdo.so", 11);
    put_unhooked(&a, "/lib/long.so", 17);
    put_unhooked(&a, "/lib/none.so", 0);
    setup_rounds(s, 3);
    sqlite3 *db = store_db(s->store);
    assert_int_equal(db_int(db, "SELECT count(*) FROM unhooked_module WHERE process_id = 1", -1), 2);
    assert_int_equal(
        db_int(db, "SELECT count(*) FROM unhooked_module WHERE path IN ('/lib/phar.so', '/lib/pdo.so')", -1), 2);
    assert_int_equal(s->drain->bad_records, 2);
    setup_end(s);
}

/* Blocks that come while glibc is asked are between the two, whoever's they are. */
static void test_heap_is_asked(void **state)
{
    (void)state;
    struct setup *s = setup_begin(0);
    struct writer asks, other;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    size_t began, born, answered;
    writer_open(&asks, s->session.control, slot, getpid(), getpid());
    writer_open(&other, s->session.control, slot, getpid(), getpid() + 1);
    writer_put(&asks, (uint64_t[]){0, WIRE_WORD1(WIRE_HEAP_ASK, 0, 0)}, 2);
    writer_stack(&other, 7, 0, (uint64_t[]){0x1234}, 1);
    writer_alloc(&other, 0x1000, 32, 7);
    writer_put(&asks, (uint64_t[]){0, WIRE_WORD1(WIRE_HEAP_SAMPLE, 0, 1 + 8192), 135168, 0}, 4);
    setup_rounds(s, 3);
    const struct event *e = setup_find_event(s, EVENT_HEAP_ASKS, 1, &began);
    assert_non_null(e);
    assert_non_null(setup_find_event(s, EVENT_ALLOC, 1, &born));
    const struct event *answer = setup_find_event(s, EVENT_RESERVED, 1, &answered);
    assert_non_null(answer);
    assert_true(began < born && born < answered);
    assert_int_equal(e->thread_id, answer->thread_id);
    assert_int_equal(answer->stack_id, heap_asked(8192));
    assert_int_equal(s->drain->bad_records, 0);
    setup_end(s);
}

/* The memory is taken away for a moment while news come in for the watching thread, which writes to it. */
static void test_shared_while_watched(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    for (int i = 0; i < 3000; i++) {
        int fd = eventfd(1, EFD_CLOEXEC); /* readable at once, as the pidfd of a process that has ended */
        assert_int_equal(watch_process(s->watch, 1, fd), 0);
        watch_hold(s->watch);
        assert_int_equal(session_is_shared(&s->session), 0);
        watch_release(s->watch);
        close(fd);
    }
    /* on a busy machine the watching thread may not have run yet */
    int fd = eventfd(1, EFD_CLOEXEC), is_told = 0;
    assert_int_equal(watch_process(s->watch, 1, fd), 0);
    for (int i = 0; i < 1000 && !(is_told = watch_news(s->watch) > 0); i++)
        usleep(10000);
    close(fd);
    assert_true(is_told);
    setup_end(s);
}

/* A free with a stack: found as an allocation's is, with or without who asked for it; of a realloc the same one. */
static void test_free_at(void **state)
{
    (void)state;
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        struct setup *s = setup_begin(1);
        struct writer w;
        uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
        if (is_asked)
            drain_free_stacks(s->drain);
        writer_open(&w, s->session.control, slot, getpid(), getpid());
        writer_stack(&w, 7, 0, (uint64_t[]){0x1234}, 1);
        writer_alloc(&w, 0x1000, 32, 7);
        uint64_t at = writer_stamp(s->session.control);
        writer_publish(&w, (uint64_t[]){at, WIRE_WORD1(WIRE_FREE_AT, WIRE_HOOK_free, 0x1000), 7}, 3);
        at = writer_stamp(s->session.control);
        writer_publish(&w, (uint64_t[]){at, WIRE_WORD1(WIRE_FREE_AT, WIRE_HOOK_free, 0x2000), 99}, 3);
        setup_rounds(s, 100);
        drain_finish(s->drain);
        const struct event *born = setup_find_event(s, EVENT_ALLOC, 1, NULL);
        const struct event *freed = setup_find_event(s, EVENT_FREE, 1, NULL);
        assert_non_null(born);
        assert_non_null(freed);
        assert_int_not_equal(born->stack_id, 0);
        assert_int_equal(freed->address, 0x1000);
        assert_int_equal(freed->stack_id, is_asked ? born->stack_id : 0);
        assert_int_equal(drain_state(s->drain).unknown_stacks, 1); /* nobody defined the second one's */
        setup_end(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread),
        cmocka_unit_test(test_busy_holds),
        cmocka_unit_test(test_stopped_while_busy),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_stack_of_another_thread),
        cmocka_unit_test(test_next_stacks_ahead),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_thread_churn),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_heap_ranges),
        cmocka_unit_test(test_unhooked),
        cmocka_unit_test(test_heap_is_asked),
        cmocka_unit_test(test_shared_while_watched),
        cmocka_unit_test(test_free_at),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
