/* Pauses and requests from outside: what is given out around them, and who asks: many at once, killed ones, hostile
 * ones. This test is the collector; the program is ring_writer.h. */
#include "drain_setup.h"
#include "ring_writer.h"
#include "scratch.h"

#include "../../common/db.h"

#include "../../profiler/collect/control.h"
#include "../../profiler/outside/request.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { STACK = 7, MOST_ASKERS = 40 };

struct bench {
    struct setup *s;
    struct account *account;
    struct control *control;
    struct writer w;
    struct wire_desk *wire;
    struct wire_control *shared;
};

static struct control *syncing;

static void take_sync(void *arg, const struct drain_sync *sync)
{
    (void)arg;
    control_sync(syncing, sync->flags, sync->time_ns);
}

static void bench_begin(struct bench *b, int is_paused)
{
    const uint64_t addresses[] = {0x1100};
    b->s = setup_begin(1);
    b->s->drain->sink.sync = take_sync;
    b->account = account_open(b->s->store, &(struct account_options){0});
    b->control = control_open(&b->s->session, b->s->drain, b->account, &b->s->processes, &b->s->clock, is_paused);
    syncing = b->control;
    b->shared = b->s->session.control;
    uint32_t slot = writer_claim_slot(b->shared, getpid(), getppid(), WIRE_START_EXEC, 0);
    assert_int_equal(writer_open(&b->w, b->shared, slot, getpid(), getpid()), 0);
    writer_stack(&b->w, STACK, 0, addresses, 1);
    b->wire = (struct wire_desk *)((char *)b->shared + WIRE_DESK_OFFSET);
}

static void bench_end(struct bench *b)
{
    control_close(b->control);
    account_close(b->account);
    setup_end(b->s);
}

static unsigned rounds(struct bench *b, int count)
{
    unsigned answered = 0;
    while (count--) {
        nanosleep(&(struct timespec){0, 60000}, NULL); /* what was written is old enough to be given out */
        drain_round_until(b->s->drain, control_bound(b->control));
        answered += control_look(b->control);
    }
    return answered;
}

/* Until so many more requests are answered. */
static void answer(struct bench *b, unsigned count)
{
    for (long i = 0; count; i++) {
        count -= rounds(b, 1);
        assert_true(i < 100000);
    }
}

static void wish(struct bench *b, unsigned slot, unsigned what, const char *text)
{
    struct wire_request *r = &b->wire->requests[slot];
    r->what = (uint8_t)what;
    r->text_bytes = (uint16_t)strlen(text);
    memcpy(r->text, text, strlen(text));
    r->asked++;
}

static void sync_with(struct bench *b, unsigned flags)
{
    uint64_t words[4] = {0, WIRE_WORD1(WIRE_SYNC, 0, (uint64_t)flags << 32 | 1), 0, 0};
    writer_put(&b->w, words, 4);
}

/* The event of such an address, from the one that is given on; NULL: none. */
static const struct event *find(const struct setup *s, uint64_t address, enum event_op op)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->events[i].address == address && s->events[i].op == op)
            return &s->events[i];
    return NULL;
}

static int64_t count(struct bench *b, const char *sql)
{
    return db_int(store_db(b->s->store), sql, -1);
}

/* In one round: the order of events alone says what the pause has. */
static void test_by_sync(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, 0);
    writer_alloc(&b.w, 0xa000, 10, STACK);
    sync_with(&b, WIRE_SYNC_PAUSE);
    writer_alloc(&b.w, 0xb000, 20, STACK);
    writer_free(&b.w, 0xa000);
    writer_alloc(&b.w, 0xa000, 30, STACK); /* its address again */
    writer_free(&b.w, 0xb000);
    sync_with(&b, WIRE_SYNC_PAUSE);
    sync_with(&b, WIRE_SYNC_RESUME);
    writer_free(&b.w, 0xa000);
    writer_alloc(&b.w, 0xc000, 40, STACK);
    rounds(&b, 3);
    assert_int_equal(find(b.s, 0xa000, EVENT_ALLOC)->size_bytes, 10);
    assert_null(find(b.s, 0xb000, EVENT_ALLOC));
    assert_int_equal(find(b.s, 0xa000, EVENT_FREE)->inherited, EVENT_MAYBE_UNSEEN);
    assert_int_equal(find(b.s, 0xc000, EVENT_ALLOC)->size_bytes, 40);
    size_t at = 0, births = 0;
    for (; at < b.s->count; at++)
        births += b.s->events[at].op == EVENT_ALLOC;
    assert_int_equal(births, 2);
    assert_int_equal(b.shared->pauses, 2);
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'pause' AND end_ns > start_ns"), 1);
    bench_end(&b);
}

static void put_realloc(struct bench *b, uint64_t old, uint64_t address, uint64_t before, uint64_t after)
{
    uint64_t words[6] = {before, WIRE_WORD1(WIRE_REALLOC, 0, old), STACK, 50, address, after};
    writer_busy(&b->w);
    writer_publish(&b->w, words, 6);
}

/* Both halves, or the first alone as a plain death. */
static void test_resized(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, 0);
    writer_alloc(&b.w, 0xa000, 10, STACK);
    uint64_t now = writer_stamp(b.shared);
    put_realloc(&b, 0xa000, 0xb000, now, now + 1);
    sync_with(&b, WIRE_SYNC_PAUSE);
    now = writer_stamp(b.shared);
    put_realloc(&b, 0xb000, 0xc000, now, now + 1);
    sync_with(&b, WIRE_SYNC_RESUME);
    now = writer_stamp(b.shared);
    put_realloc(&b, 0xc000, 0xd000, now, now + 1);
    rounds(&b, 3);
    assert_non_null(find(b.s, 0xa000, EVENT_REALLOC_FREE));
    assert_non_null(find(b.s, 0xb000, EVENT_REALLOC_ALLOC));
    assert_non_null(find(b.s, 0xb000, EVENT_FREE));
    assert_null(find(b.s, 0xb000, EVENT_REALLOC_FREE));
    assert_null(find(b.s, 0xc000, EVENT_REALLOC_ALLOC));
    assert_non_null(find(b.s, 0xd000, EVENT_REALLOC_ALLOC));
    bench_end(&b);
}

/* What was done before it is kept, though it is read later. */
static void test_from_outside(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, 0);
    rounds(&b, 1);
    writer_alloc(&b.w, 0xa000, 10, STACK);
    wish(&b, 3, WIRE_WISH_PAUSE, "");
    wish(&b, 5, WIRE_WISH_MARK, "one");
    answer(&b, 2);
    assert_int_equal(b.shared->pauses, 1);
    assert_int_equal(b.wire->requests[3].answered, 1);
    assert_int_equal(b.wire->requests[3].reply, WIRE_REPLY_DONE);
    assert_non_null(find(b.s, 0xa000, EVENT_ALLOC));
    writer_alloc(&b.w, 0xb000, 20, STACK);
    wish(&b, 0, WIRE_WISH_PAUSE, "");
    answer(&b, 1);
    assert_int_equal(b.wire->requests[0].reply, WIRE_REPLY_ALREADY);
    wish(&b, 1, WIRE_WISH_RESUME, "");
    wish(&b, 2, WIRE_WISH_PAUSE, ""); /* one after the other */
    answer(&b, 2);
    assert_int_equal(b.shared->pauses, 3);
    wish(&b, 15, WIRE_WISH_RESUME, "");
    answer(&b, 1);
    wish(&b, 4, WIRE_WISH_PAUSE, "");
    control_look(b.control);
    b.wire->requests[4].what = WIRE_WISH_NOTHING; /* its asker gave up, though it was seen */
    answer(&b, 1);
    assert_int_equal(b.shared->pauses, 4);
    writer_alloc(&b.w, 0xc000, 30, STACK);
    rounds(&b, 3);
    assert_null(find(b.s, 0xb000, EVENT_ALLOC));
    assert_non_null(find(b.s, 0xc000, EVENT_ALLOC));
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'pause' AND end_ns >= start_ns"), 2);
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'outside' AND name = 'one'"), 1);
    control_end(b.control, b.s->store, 1000000000);
    bench_end(&b);
}

static void test_from_the_beginning(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, 1);
    assert_int_equal(b.shared->pauses & 1, 1);
    writer_alloc(&b.w, 0xa000, 10, STACK);
    rounds(&b, 3);
    assert_null(find(b.s, 0xa000, EVENT_ALLOC));
    control_end(b.control, b.s->store, 12345);
    assert_int_equal(count(&b, "SELECT value FROM meta WHERE key = 'paused_ns'"), 12345);
    assert_int_equal(count(&b, "SELECT end_ns FROM mark WHERE domain = 'pause' AND start_ns = 0"), 12345);
    bench_end(&b);
}

static void test_hostile(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, 0);
    for (unsigned slot = 0; slot < WIRE_REQUESTS; slot++)
        memset(&b.wire->requests[slot], 0x55 + (int)slot, sizeof b.wire->requests[slot]);
    b.wire->requests[0].what = WIRE_WISH_MARK;
    rounds(&b, 3);
    b.wire->requests[0].asked++;
    b.wire->requests[1].what = WIRE_WISH_NOTHING;
    b.wire->requests[1].asked++;
    b.shared->pauses = UINT32_MAX;
    answer(&b, 2);
    wish(&b, 2, WIRE_WISH_PAUSE, "");
    answer(&b, 1);
    assert_int_equal(b.shared->pauses & 1, 1);
    assert_int_equal(count(&b, "SELECT length(name) FROM mark WHERE domain = 'outside'"), WIRE_TEXT_MAX);
    bench_end(&b);
}

static void *ask(void *argument)
{
    struct error err = {""};
    struct outside *o;
    enum wire_reply reply = WIRE_REPLY_ALREADY;
    char pid[32];
    (void)argument;
    snprintf(pid, sizeof pid, "%d", getpid());
    int rc = outside_open(pid, &o, &err);
    rc = rc ? rc : request_ask(o, pid, WIRE_WISH_MARK, getpid(), "asked", &reply, &err);
    outside_close(o);
    return (void *)(intptr_t)(rc ? rc : (int)reply);
}

/* More than there are slots. */
static void test_many(void **state)
{
    struct bench b;
    pthread_t askers[MOST_ASKERS];
    void *result;
    (void)state;
    bench_begin(&b, 0);
    for (unsigned i = 0; i < MOST_ASKERS; i++)
        assert_int_equal(pthread_create(&askers[i], NULL, ask, NULL), 0);
    answer(&b, MOST_ASKERS);
    for (unsigned i = 0; i < MOST_ASKERS; i++) {
        pthread_join(askers[i], &result);
        assert_ptr_equal(result, WIRE_REPLY_DONE);
    }
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE name = 'asked' AND process_id = 1"), MOST_ASKERS);
    bench_end(&b);
}

/* Holds all slots until it is killed. */
static int begin_holder(const char *session)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    int pid = fork();
    if (!pid) {
        int fd = open(session, O_RDWR);
        for (unsigned slot = 0; slot < WIRE_REQUESTS; slot++) {
            struct flock lock = {.l_type = F_WRLCK,
                                 .l_whence = SEEK_SET,
                                 .l_start = (off_t)(WIRE_DESK_OFFSET + offsetof(struct wire_desk, requests) +
                                                    slot * sizeof(struct wire_request)),
                                 .l_len = 1};
            if (fcntl(fd, F_OFD_SETLK, &lock))
                _exit(1);
        }
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void test_killed(void **state)
{
    struct bench b;
    pthread_t asker;
    void *result;
    (void)state;
    bench_begin(&b, 0);
    int holder = begin_holder(b.shared->session_path);
    assert_ptr_equal(ask(NULL), -EBUSY);
    kill(holder, SIGKILL);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    wish(&b, 0, WIRE_WISH_MARK, "whose asker was killed");
    assert_int_equal(pthread_create(&asker, NULL, ask, NULL), 0);
    answer(&b, 2);
    pthread_join(asker, &result);
    assert_ptr_equal(result, WIRE_REPLY_DONE);
    /* a collector that does not answer, and then does not do it either */
    assert_ptr_equal(ask(NULL), -ETIMEDOUT);
    answer(&b, 1);
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE name = 'asked'"), 1);
    bench_end(&b);
}

static void wish_of(struct bench *b, unsigned slot, unsigned what, int pid, const void *text, unsigned bytes)
{
    struct wire_request *r = &b->wire->requests[slot];
    r->what = (uint8_t)what;
    r->pid = pid;
    r->text_bytes = (uint16_t)bytes;
    memcpy(r->text, text, bytes < WIRE_TEXT_MAX ? bytes : WIRE_TEXT_MAX);
    r->asked++;
    answer(b, 1);
}

static void put_call(struct bench *b, unsigned kind, unsigned hook, const uint64_t *arguments, unsigned count)
{
    uint64_t words[16] = {0, (uint64_t)WIRE_CALL << 56 | (uint64_t)hook << 48 | (uint64_t)(count + 3) << 32 | STACK,
                          WIRE_CALL_WORD(kind, 0, 0)};
    memcpy(words + 3, arguments, count * sizeof *arguments);
    writer_put(&b->w, words, count + 3);
}

/* What a process has of GPUs, and that it gave them back. */
static void test_holdings(void **state)
{
    static char many[WIRE_TEXT_MAX];
    const struct wire_given given = {{7, 8}, 5000};
    struct bench b;
    (void)state;
    bench_begin(&b, 0);
    struct wire_request *r = &b.wire->requests[0];
    wish_of(&b, 0, WIRE_WISH_HOLDINGS, getpid(), "", 0);
    assert_int_equal(r->reply, WIRE_REPLY_DONE);
    assert_int_equal(r->holding_count, 0);
    put_call(&b, WIRE_CALL_DEVICE, 0, (uint64_t[]){1 << 20, 7, 8, 0}, 4);
    put_call(&b, WIRE_CALL_ALLOC, WIRE_HOOK_cuMemAlloc, (uint64_t[]){0x700000, 300, 1}, 3);
    put_call(&b, WIRE_CALL_ALLOC, WIRE_HOOK_cuMemAllocManaged, (uint64_t[]){0x800000, 20, 1}, 3);
    wish_of(&b, 0, WIRE_WISH_HOLDINGS, getpid(), "", 0); /* with all that was written before */
    assert_int_equal(r->holding_count, 1);
    const struct wire_holding *h = &r->holdings[0];
    assert_string_equal(h->name, "cuda:0");
    assert_int_equal(h->uuid[0], 7);
    assert_int_equal(h->reserved_bytes, 300);
    assert_int_equal(h->managed_bytes, 20);
    assert_int_equal(h->context_count, 1);
    assert_int_equal(h->given_bytes, 0);
    wish_of(&b, 1, WIRE_WISH_RESTORED, getpid(), "", 0);
    assert_int_equal(b.wire->requests[1].reply, WIRE_REPLY_ALREADY);
    wish_of(&b, 1, WIRE_WISH_YIELDED, getpid(), &given, sizeof given);
    assert_int_equal(b.wire->requests[1].reply, WIRE_REPLY_DONE);
    wish_of(&b, 1, WIRE_WISH_YIELDED, getpid(), many, 65535);
    assert_int_equal(b.wire->requests[1].reply, WIRE_REPLY_ALREADY);
    wish_of(&b, 0, WIRE_WISH_HOLDINGS, getpid(), "", 0);
    assert_int_equal(h->given_bytes, 5000);
    wish_of(&b, 1, WIRE_WISH_RESTORED, getpid(), "", 0);
    assert_int_equal(b.wire->requests[1].reply, WIRE_REPLY_DONE);
    wish_of(&b, 1, WIRE_WISH_YIELDED, getpid(), many, 65535);
    for (unsigned what = WIRE_WISH_HOLDINGS; what <= WIRE_WISH_RESTORED; what++) {
        wish_of(&b, 2, what, getpid() + 1, many, 65535);
        assert_int_equal(b.wire->requests[2].reply, WIRE_REPLY_NO_PROCESS);
    }
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'memprof' AND name = 'yielded'"), 2);
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'memprof' AND end_ns >= start_ns"), 1);
    control_end(b.control, b.s->store, 1000000000000);
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'memprof' AND end_ns >= start_ns"), 2);
    bench_end(&b);
}

/* Its asker waits no more, and the slot's next wish is another one. */
static void test_withdrawn(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, 0);
    struct wire_request *r = &b.wire->requests[0];
    writer_busy(&b.w); /* nothing after this is given out */
    wish(&b, 0, WIRE_WISH_HOLDINGS, "");
    rounds(&b, 1);
    assert_int_equal(control_waits(b.control), 1);
    r->what = WIRE_WISH_NOTHING;
    answer(&b, 1);
    assert_int_equal(control_waits(b.control), 0);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_sync),      cmocka_unit_test(test_resized),
        cmocka_unit_test(test_from_outside), cmocka_unit_test(test_from_the_beginning),
        cmocka_unit_test(test_hostile),      cmocka_unit_test(test_many),
        cmocka_unit_test(test_killed),       cmocka_unit_test(test_holdings),
        cmocka_unit_test(test_withdrawn),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
