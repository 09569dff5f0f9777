/* The shared memory of a session: its list of free rings, and what it costs where few are used. */
#include "random.h"
#include "ring_writer.h"

#include "../../profiler/collect/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct session open_with(uint32_t ring_count)
{
    struct session s;
    struct error err = {""};
    struct session_options options = {.library = "/lib.so", .depth = 512, .ring_count = ring_count};
    assert_int_equal(session_open(&s, &options, &err), 0);
    return s;
}

/* The ring that the next thread takes; -1: none is free. */
static int take(const struct session *s)
{
    struct writer w;
    return writer_open(&w, s->control, 0, 1, 1) ? -1 : (int)(w.ring - s->rings);
}

static void test_rings_in_turn(void **state)
{
    (void)state;
    struct session s = open_with(3);
    assert_int_equal(take(&s), 0);
    assert_int_equal(take(&s), 1);
    session_free_ring(&s, 0, 0);
    assert_int_equal(take(&s), 0); /* last given back, first taken */
    assert_int_equal(take(&s), 2); /* what nobody had is still behind it */
    assert_int_equal(take(&s), -1);
    session_free_ring(&s, 1, 0); /* into an empty list */
    session_free_ring(&s, 2, 0);
    assert_int_equal(take(&s), 2);
    assert_int_equal(take(&s), 1);
    assert_int_equal(take(&s), -1);
    assert_int_equal(session_pops(&s), 6);
    session_close(&s);
}

static void test_all_rings(void **state)
{
    (void)state;
    struct session s = open_with(0);
    for (uint32_t i = 0; i < WIRE_RINGS; i++)
        assert_int_equal(take(&s), i);
    assert_int_equal(take(&s), -1);
    session_close(&s);
}

/* Rings are taken and given back in any order between two looks: the end is behind the last one that was ever taken. */
static void test_end_of_rings(void **state)
{
    (void)state;
    struct session s = open_with(200);
    uint32_t held[200], count = 0, end = 0;
    random_seed = 7;
    assert_int_equal(session_ring_end(&s), 0);
    for (int i = 0; i < 20000; i++) {
        if (rnd(count + 1) < 40 && count < 200) {
            int ring = take(&s);
            end = ring >= (int)end ? (uint32_t)ring + 1 : end;
            held[count++] = (uint32_t)ring;
        } else {
            uint32_t which = (uint32_t)rnd(count);
            session_free_ring(&s, held[which], 0);
            held[which] = held[--count];
        }
        if (rnd(50) == 0)
            assert_int_equal(session_ring_end(&s), end);
    }
    assert_in_range(end, 50, 199);
    while (take(&s) >= 0)
        ;
    assert_int_equal(session_ring_end(&s), 200);
    session_close(&s);
}

/* A page for a ring taken, but none for the headers of 8192 that nobody takes: they are 1.5 MB. */
static void test_little_memory(void **state)
{
    (void)state;
    struct session s = open_with(0);
    struct stat st;
    assert_int_equal(take(&s), 0);
    assert_int_equal(fstat(s.fd, &st), 0);
    assert_in_range(st.st_blocks * 512, 1, 16 * WIRE_PAGE);
    session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings_in_turn),
        cmocka_unit_test(test_all_rings),
        cmocka_unit_test(test_end_of_rings),
        cmocka_unit_test(test_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
