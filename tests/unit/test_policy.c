/* Policies: what a text says and what it may not, when a band is due, whether an action helps; and the collector's side
 * of orders against a program that answers by hand, late, wrongly, or not at all. */
#include "drain_setup.h"
#include "ring_writer.h"
#include "scratch.h"

#include "../../common/db.h"
#include "../../profiler/collect/policy.h"
#include "../../profiler/collect/policy_engine.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define S   UINT64_C(1000000000)

struct told {
    unsigned count, line;
    char what[256];
};

static void tell(void *arg, unsigned line, const char *what)
{
    struct told *t = arg;
    t->count++;
    t->line = line;
    snprintf(t->what, sizeof t->what, "%s", what);
    assert_null(strchr(what, '\n'));
}

/* --- the text --- */

static void test_text(void **state)
{
    static const char text[] = "# device used when do\n"
                               "cuda:*  0-50    max   >= 50%              pool-trim\n"
                               "\n"
                               "cuda:1  75-101  freed >= 12.5% or 256MiB  pool-trim-sync, callback\r\n"
                               "host\t80-101\tidle >= 512MiB or 3% malloc-trim,mark , callback drop\n"
                               "host 95-101 active >= 0 keyframe, signal SIGUSR1, run kill -9 %p, echo # no";
    struct policy p;
    struct told told = {0};
    (void)state;
    assert_int_equal(policy_parse(&p, text, sizeof text - 1, 1, tell, &told), 0);
    assert_int_equal(told.count, 0);
    assert_int_equal(p.count, 4);
    assert_string_equal(p.bands[0].device, "cuda:*");
    assert_int_equal(p.bands[0].metric, POLICY_MAX);
    assert_true(p.bands[0].percent == 50 && p.bands[0].bytes == 0);
    assert_true(p.bands[1].percent == 12.5 && p.bands[1].bytes == 256 * MIB);
    assert_int_equal(p.bands[1].from, 75);
    assert_int_equal(p.bands[1].to, 101);
    assert_int_equal(p.bands[1].line, 4);
    assert_int_equal(p.bands[1].actions[0].what, POLICY_POOL_TRIM_SYNC);
    assert_string_equal(p.bands[1].actions[1].name, "callback");
    assert_int_equal(p.bands[2].action_count, 3);
    assert_string_equal(p.bands[2].actions[2].name, "drop");
    assert_string_equal(p.bands[2].text, "host 80-101 idle >= 512MiB or 3% malloc-trim,mark , callback drop");
    assert_true(p.bands[2].percent == 3 && p.bands[2].bytes == 512 * MIB);
    assert_int_equal(p.bands[3].actions[1].signal, SIGUSR1);
    assert_string_equal(p.bands[3].actions[2].command, "kill -9 %p, echo # no");
    assert_true(policy_is_of(&p.bands[0], "cuda:7"));
    assert_false(policy_is_of(&p.bands[0], "host"));
    assert_false(policy_is_of(&p.bands[1], "cuda:10"));
    assert_true(policy_has_orders(&p));
    policy_free(&p);
}

static void test_wrong(void **state)
{
    static const struct {
        const char *line, *what;
    } lines[] = {
        {"gpu:0 0-101 active >= 0 mark", "device 'gpu:0'"},
        {"cuda:x 0-101 active >= 0 mark", "device 'cuda:x'"},
        {"cuda:254 0-101 active >= 0 mark", "device 'cuda:254'"},
        {"cuda: 0-101 active >= 0 mark", "device 'cuda:'"},
        {"host", "used ''"},
        {"host 50-20 active >= 0 mark", "used '50-20'"},
        {"host 0-102 active >= 0 mark", "used '0-102'"},
        {"host 0-99999999999999 active >= 0 mark", "used '0-9"},
        {"host 0-50 alive >= 0 mark", "metric 'alive'"},
        {"host 0-50 active > 0 mark", "'>'"},
        {"host 0-50 active >= many mark", "threshold 'many'"},
        {"host 0-50 active >= -5 mark", "threshold '-5'"},
        {"host 0-50 active >= 101% mark", "threshold '101%'"},
        {"host 0-50 active >= 100.5% mark", "threshold '100.5%'"},
        {"host 0-50 active >= 5%% mark", "threshold '5%%'"},
        {"host 0-50 active >= 5% or mark", "threshold 'mark'"},
        {"host 0-50 active >= 0", "action ''"},
        {"host 0-50 active >= 0 mark,", "action ''"},
        {"host 0-50 active >= 0 mark keyframe", "a comma"},
        {"host 0-50 active >= 0 trim", "action 'trim'"},
        {"host 0-50 active >= 0 pool-trim", "a GPU's"},
        {"cuda:0 0-50 active >= 0 malloc-trim", "the host's"},
        {"host 0-50 active >= 0 signal USR3", "signal 'USR3'"},
        {"host 0-50 active >= 0 signal 65", "signal '65'"},
        {"host 0-50 active >= 0 signal 0", "signal '0'"},
        {"host 0-50 active >= 0 run  ", "run: expected"},
        {"host 0-50 active >= 0 callback name-of-16-bytes", "up to 15"},
        {"host 0-50 active >= 0 mark,mark,mark,mark,mark,mark,mark,mark,mark", "more than 8"},
        {"host 0-50 act\x01ive >= 0 mark", "metric 'act?ive'"},
        {"", "no band"},
    };
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct policy p;
        struct told told = {0};
        int n = snprintf(text, sizeof text, "# one\n\n%s\n", lines[i].line);
        assert_int_equal(policy_parse(&p, text, (size_t)n, 1, tell, &told), 1);
        if (!strstr(told.what, lines[i].what) || told.line != 3)
            fail_msg("'%s': %u: %s", lines[i].line, told.line, told.what);
        assert_int_equal(p.count, 0);
    }
}

static void test_untrusted(void **state)
{
    static const char *const texts[] = {"host 0-101 active >= 0 signal USR1", "host 0-101 active >= 0 mark, run true",
                                        "cuda:* 0-101 active >= 0 pool-trim, signal 9"};
    struct policy p;
    struct told told = {0};
    char *many = malloc(64 * 70);
    size_t length = 0;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(policy_parse(&p, texts[i], strlen(texts[i]), 0, tell, &told), 1);
        assert_non_null(strstr(told.what, "only a policy of memprof run --policy"));
        assert_int_equal(policy_parse(&p, texts[i], strlen(texts[i]), 1, tell, &told), 0);
        policy_free(&p);
    }
    for (unsigned i = 0; i < POLICY_BANDS + 2; i++)
        length += (size_t)sprintf(many + length, "host 0-101 active >= %u mark\n", i);
    assert_int_equal(policy_parse(&p, many, length, 0, tell, &told), 2);
    assert_non_null(strstr(told.what, "more than 64 bands"));
    assert_int_equal(policy_parse(&p, "host\0", 5, 0, tell, &told), 1);
    free(many);
}

/* --- when --- */

static struct policy_band band_of(const char *line)
{
    struct policy p;
    struct told told = {0};
    assert_int_equal(policy_parse(&p, line, strlen(line), 1, tell, &told), 0);
    return p.bands[0]; /* its text is the caller's */
}

static void test_due(void **state)
{
    struct policy_band b = band_of("host 50-80 freed >= 10% or 4MiB mark");
    struct policy_state s = {0};
    struct policy_figures f = {.total = 100 * MIB, .used = 50 * MIB, .freed = 10 * MIB};
    (void)state;
    assert_int_equal(policy_threshold(&b, &f), 10 * MIB);
    assert_true(policy_is_due(&b, &s, &f, S));
    f.used = 80 * MIB; /* the band's end is none of it */
    assert_false(policy_is_due(&b, &s, &f, S));
    f.used = 50 * MIB - 1;
    assert_false(policy_is_due(&b, &s, &f, S));
    f.used = 79 * MIB;
    f.freed--;
    assert_false(policy_is_due(&b, &s, &f, S));
    f.freed++;
    policy_acted(&s, &f, S);
    f.freed += 10 * MIB;
    assert_false(policy_is_due(&b, &s, &f, 2 * S - 1)); /* once a second */
    assert_true(policy_is_due(&b, &s, &f, 2 * S));
    f.freed--; /* since it acted */
    assert_false(policy_is_due(&b, &s, &f, 2 * S));
    f.freed++;
    f.total = 0; /* not known */
    assert_false(policy_is_due(&b, &s, &f, 2 * S));
    f.total = 20 * MIB, f.used = 15 * MIB; /* the larger threshold is the 4 MiB */
    assert_int_equal(policy_threshold(&b, &f), 4 * MIB);
    b.percent = 100;
    f.total = UINT64_MAX; /* a device is as large as its program says */
    assert_true(policy_threshold(&b, &f) == UINT64_MAX);
    free(b.text);
}

static void test_metrics(void **state)
{
    struct policy_band b = {.metric = POLICY_ACTIVE};
    struct policy_state s = {.freed_base = 5};
    struct policy_figures f = {.active = 30, .reserved = 100, .resident = 70, .freed = 42};
    (void)state;
    assert_int_equal(policy_value(&b, &s, &f), 30);
    b.metric = POLICY_FREED;
    assert_int_equal(policy_value(&b, &s, &f), 37);
    b.metric = POLICY_MAX;
    assert_int_equal(policy_value(&b, &s, &f), 37);
    f.active = 38;
    assert_int_equal(policy_value(&b, &s, &f), 38);
    b.metric = POLICY_RESERVED;
    assert_int_equal(policy_value(&b, &s, &f), 100);
    b.metric = POLICY_IDLE; /* what is reserved and not there cannot be given back */
    assert_int_equal(policy_value(&b, &s, &f), 32);
    f.resident = 200;
    assert_int_equal(policy_value(&b, &s, &f), 62);
    f.active = 101;
    assert_int_equal(policy_value(&b, &s, &f), 0);
}

static void test_helped(void **state)
{
    struct policy_band b = band_of("cuda:0 0-101 active >= 0 pool-trim, callback");
    struct policy_state s = {0};
    struct policy_figures f = {.total = 10, .active = 1};
    (void)state;
    assert_int_equal(policy_helped(&s, 0, 1000, 990), 0); /* 1 % is nothing, */
    assert_int_equal(policy_helped(&s, 0, 1000, 1000), 0);
    assert_int_equal(policy_helped(&s, 0, 1000, 989), 0); /* more is something */
    assert_int_equal(policy_helped(&s, 0, 1000, 995), 0);
    assert_int_equal(policy_helped(&s, 0, 1000, 2000), 0);
    assert_int_equal(policy_helped(&s, 0, 0, 0), 1);
    assert_int_equal(policy_helped(&s, 0, 0, 0), 0); /* it is off */
    assert_true(policy_is_due(&b, &s, &f, S));       /* the other action is not */
    policy_helped(&s, 1, 5, 5), policy_helped(&s, 1, 5, 5);
    assert_int_equal(policy_helped(&s, 1, 5, 5), 1);
    assert_false(policy_is_due(&b, &s, &f, S));
    free(b.text);
}

/* --- orders --- */

struct bench {
    struct setup *s;
    struct account *account;
    struct policies *policies;
    struct writer w;
    struct wire_proc *slot;
    uint64_t now_ns;
};

static void bench_begin(struct bench *b, const char *text)
{
    *b = (struct bench){.s = setup_begin(1), .now_ns = S};
    b->account = account_open(b->s->store, &(struct account_options){0});
    uint32_t slot = writer_claim_slot(b->s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    b->slot = &b->s->session.procs[slot];
    /* what somebody left there, or wrote there to harm */
    b->slot->ordered = UINT32_MAX - 1;
    memset(b->slot->orders, 0x5a, sizeof b->slot->orders);
    assert_int_equal(writer_open(&b->w, b->s->session.control, slot, getpid(), getpid()), 0);
    b->policies =
        policies_open(&b->s->session, b->s->drain, b->account, &b->s->processes, b->s->store, &b->s->clock, 1);
    assert_int_equal(policies_set(b->policies, text, strlen(text), "file", 0), 1);
    for (int i = 0; i < 10; i++)
        drain_round(b->s->drain);
    assert_non_null(b->s->processes.by_slot[slot]);
}

static void bench_end(struct bench *b)
{
    policies_close(b->policies);
    account_close(b->account);
    setup_end(b->s);
}

static void look(struct bench *b, uint64_t later_ns)
{
    b->now_ns += later_ns;
    policies_look(b->policies, b->now_ns);
}

static int64_t count(const struct bench *b, const char *sql)
{
    return db_int(store_db(b->s->store), sql, -1);
}

static struct wire_order *newest(const struct bench *b)
{
    return &b->slot->orders[b->slot->ordered % WIRE_ORDERS];
}

static void answer(struct bench *b, uint32_t result, uint64_t before, uint64_t after)
{
    struct wire_order *o = newest(b);
    o->result = result;
    o->begin_stamp = 5;
    o->end_stamp = UINT64_MAX;
    o->before_bytes = before;
    o->after_bytes = after;
    o->arena_bytes = o->mapped_bytes = 0;
    __atomic_store_n(&o->answered, o->number, __ATOMIC_RELEASE);
}

static void test_order(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, "host 0-101 active >= 0 malloc-trim");
    assert_int_equal(b.s->session.control->has_orders, 1);
    look(&b, 2000000);
    assert_true(b.slot->ordered == UINT32_MAX); /* the next number, whatever it was */
    assert_int_equal(newest(&b)->what, WIRE_ORDER_MALLOC_TRIM);
    assert_string_equal(newest(&b)->device, "host");
    assert_int_equal(newest(&b)->ordinal, WIRE_DEVICE_HOST);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE status = 'not taken'"), 1);
    for (int i = 0; i < 5; i++)
        look(&b, S); /* who does not answer is asked once */
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action"), 1);
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'policy' AND end_ns IS NULL"), 1);
    answer(&b, WIRE_ORDER_DONE, UINT64_MAX, 1);
    look(&b, 2000000);
    assert_int_equal(count(&b, "SELECT before_bytes - after_bytes FROM policy_action"), (1ll << 48) - 1);
    assert_int_equal(count(&b, "SELECT end_ns >= begin_ns FROM policy_action"), 1);
    assert_int_equal(b.slot->ordered, 0); /* it was due again; numbers go round */
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE reserved_after_bytes IS NULL"), 2);
    look(&b, 100000000);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE reserved_after_bytes = 0"), 1);
    assert_int_equal(count(&b, "SELECT count(*) FROM mark WHERE domain = 'policy' AND end_ns >= start_ns"), 1);
    policies_end(b.policies);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE status = 'not taken'"), 1);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_band WHERE until_ns >= from_ns"), 1);
    bench_end(&b);
}

static void test_off(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b, "host 0-101 active >= 0 malloc-trim, callback no");
    for (int i = 0; i < 10; i++) {
        look(&b, S);
        for (uint32_t k = 0; k < 2; k++) { /* each: not this allocator's heap, no such function */
            struct wire_order *o = &b.slot->orders[(b.slot->ordered - k) % WIRE_ORDERS];
            o->result = WIRE_ORDER_NOT_POSSIBLE;
            o->before_bytes = o->after_bytes = 0;
            __atomic_store_n(&o->answered, o->number, __ATOMIC_RELEASE);
        }
        look(&b, 2000000);
        look(&b, 100000000);
    }
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE action = 'malloc-trim'"), POLICY_FRUITLESS);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_off WHERE action = 'malloc-trim'"), 1);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_off"), 1); /* the function may come yet */
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE action = 'callback no'"), 10);
    bench_end(&b);
}

static void test_replaced(void **state)
{
    static const char untrusted[] = "host 0-101 active >= 0 signal KILL", next[] = "host 0-101 active >= 0 mark";
    struct bench b;
    (void)state;
    bench_begin(&b, "host 0-101 active >= 0 malloc-trim");
    look(&b, 2000000);
    assert_int_equal(policies_set(b.policies, untrusted, sizeof untrusted - 1, NULL, 1), 0);
    assert_int_equal(b.s->session.control->has_orders, 1);
    assert_int_equal(policies_set(b.policies, next, sizeof next - 1, NULL, 1), 1);
    assert_int_equal(b.s->session.control->has_orders, 0);
    answer(&b, WIRE_ORDER_DONE, 10, 10); /* of the one before */
    look(&b, S);
    look(&b, 100000000);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE action = 'mark'"), 1);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_action WHERE status = 'done'"), 2);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_band WHERE until_ns IS NULL"), 1);
    assert_int_equal(count(&b, "SELECT count(*) FROM policy_band WHERE source IS NULL AND process_id = 1"), 1);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),  cmocka_unit_test(test_wrong),   cmocka_unit_test(test_untrusted),
        cmocka_unit_test(test_due),   cmocka_unit_test(test_metrics), cmocka_unit_test(test_helped),
        cmocka_unit_test(test_order), cmocka_unit_test(test_off),     cmocka_unit_test(test_replaced),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
