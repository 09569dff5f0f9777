/* The hash table against a list that is searched from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../common/array.h"
#include "../../common/map.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

struct pair {
    uint64_t a, b, value;
};

struct list {
    struct pair *pairs;
    uint32_t count, capacity;
};

static struct pair *list_find(const struct list *l, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->pairs[i].a == a && l->pairs[i].b == b)
            return &l->pairs[i];
    return NULL;
}

/* All of one are in the other. */
static void compare(const struct map *m, const struct list *l)
{
    uint32_t seen = 0;
    for (const struct map_entry *e = NULL; (e = map_next(m, e)); seen++) {
        const struct pair *p = list_find(l, e->a, e->b);
        assert_non_null(p);
        assert_int_equal(e->value, p->value);
    }
    assert_int_equal(seen, l->count);
    assert_int_equal(m->count, l->count);
    for (uint32_t i = 0; i < l->count; i++)
        assert_int_equal(map_get(m, l->pairs[i].a, l->pairs[i].b), l->pairs[i].value);
}

/* Does with both what `op` says; few keys, so that most of them are met again. */
static void step(struct map *m, struct list *l, unsigned op, uint64_t a, uint64_t b)
{
    struct pair *p = list_find(l, a, b);
    uint64_t before = p ? p->value : 0;
    if (op == 0) {
        assert_int_equal(map_get(m, a, b), before);
    } else if (op == 1) {
        assert_int_equal(map_take(m, a, b), before);
        if (p)
            *p = l->pairs[--l->count];
    } else {
        uint64_t *slot = map_slot(m, a, b);
        assert_int_equal(*slot, before);
        *slot = rnd(UINT64_MAX - 1) + 1;
        if (p)
            p->value = *slot;
        else
            *ARRAY_ADD(l->pairs, l->count, l->capacity) = (struct pair){a, b, *slot};
    }
}

static void test_random(void **state)
{
    (void)state;
    struct map m = {0};
    struct list l = {0};
    assert_null(map_next(&m, NULL));
    assert_int_equal(map_get(&m, 0, 0), 0);
    assert_int_equal(map_take(&m, 0, 0), 0);
    for (unsigned i = 0; i < 30000; i++) {
        unsigned grows = i / 5000 % 2 == 0; /* waxes and wanes */
        step(&m, &l, (unsigned)rnd(grows ? 5 : 2), rnd(40) << rnd(3) * 29, rnd(20));
        if (i % 1000 == 0)
            compare(&m, &l);
    }
    compare(&m, &l);
    map_close(&m);
    assert_int_equal(map_get(&m, 0, 0), 0);
    free(l.pairs);
}

/* Keys that all belong in the last two places of a table of 16 to 64: chains that lead over its end, and holes in
 * them. */
static void test_collisions(void **state)
{
    (void)state;
    enum { KEYS = 24 };
    uint64_t keys[KEYS];
    unsigned count = 0;
    const struct map of_64 = {.mask = 63};
    for (uint64_t key = 0; count < KEYS; key++)
        if (map_home(&of_64, key, 7) >= 62)
            keys[count++] = key;
    struct map m = {0};
    struct list l = {0};
    for (unsigned i = 0; i < 20000; i++) {
        step(&m, &l, (unsigned)rnd(3), keys[rnd(KEYS)], 7);
        compare(&m, &l);
    }
    map_close(&m);
    free(l.pairs);
}

static void test_growth(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    struct map m = {0};
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(map_number_or(&m, i << 40, ~i, (uint32_t)i), i);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(map_number_or(&m, i << 40, ~i, 7), i);
    assert_int_equal(m.count, COUNT);
    assert_true(m.mask + 1 <= 4 * (size_t)COUNT);
    for (uint64_t i = 0; i < COUNT; i += 2)
        assert_int_equal(map_take(&m, i << 40, ~i), i + 1);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(map_number(&m, i << 40, ~i), i % 2 ? i : MAP_NONE);
    assert_int_equal(m.count, COUNT / 2);
    map_close(&m);
}

static unsigned ended;

static void end(void *value)
{
    ended += *(unsigned *)value;
}

static void test_values(void **state)
{
    (void)state;
    unsigned one = 1, two = 2;
    struct map m = {0};
    assert_null(map_pointer(&m, 5));
    map_set_pointer(&m, 5, &one);
    map_set_pointer(&m, UINT64_MAX, &one);
    map_set_pointer(&m, UINT64_MAX, &two);
    assert_ptr_equal(map_pointer(&m, 5), &one);
    assert_ptr_equal(map_pointer(&m, UINT64_MAX), &two);
    map_set_pointer(&m, 0, &two);
    assert_ptr_equal(map_take_pointer(&m, 0), &two);
    assert_null(map_take_pointer(&m, 0));
    map_close_pointers(&m, end);
    assert_int_equal(ended, 3);
    assert_null(m.entries);

    assert_int_equal(map_number(&m, 1, 2), MAP_NONE);
    map_set_number(&m, 1, 2, 0); /* not the same as none */
    map_set_number(&m, 2, 1, MAP_NONE - 1);
    assert_int_equal(map_number(&m, 1, 2), 0);
    assert_int_equal(map_number(&m, 2, 1), MAP_NONE - 1);
    assert_int_equal(map_take(&m, 1, 2), 1);
    assert_int_equal(map_number(&m, 1, 2), MAP_NONE);
    map_close(&m);
}

/* Strings that an enemy would choose: of bytes that a hash passes over, with NULs, alike but at one end, long. */
static size_t hostile(char *key, unsigned i)
{
    size_t length = i % 7 == 0 ? i % 4096 : 4 + i % 60;
    memset(key, 0, length);
    if (length >= sizeof i)
        memcpy(i % 2 ? key : key + length - sizeof i, &i, sizeof i);
    return length;
}

static void test_texts(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    char *key = malloc(4096);
    struct {
        char *key;
        size_t length;
        uint32_t *slot;
    } *known = calloc(COUNT, sizeof *known);
    struct text_map m = {0};
    unsigned count = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        size_t length = hostile(key, i);
        const uint32_t *found = text_map_find(&m, key, length);
        uint32_t *slot = text_map_slot(&m, key, length);
        assert_ptr_equal(found, *slot ? slot : NULL);
        if (*slot) { /* as short as to be one that was there */
            assert_int_equal(known[*slot - 1].length, length);
            assert_memory_equal(known[*slot - 1].key, key, length);
            continue;
        }
        known[count].key = malloc(length + 1);
        memcpy(known[count].key, key, length);
        known[count].length = length;
        known[count].slot = slot;
        *slot = ++count;
        assert_int_equal(text_map_count(&m), count);
    }
    assert_true(count > COUNT / 2);
    for (unsigned i = 0; i < count; i++) {
        uint32_t *slot = text_map_slot(&m, known[i].key, known[i].length);
        assert_ptr_equal(slot, known[i].slot); /* it stays where it was */
        assert_int_equal(*slot, i + 1);
        assert_memory_equal(text_map_key(slot), known[i].key, known[i].length);
        assert_int_equal(((const char *)text_map_key(slot))[known[i].length], 0);
        assert_int_equal((uintptr_t)text_map_key(slot) % sizeof(uint32_t), 0);
        free(known[i].key);
    }
    assert_int_equal(text_map_count(&m), count);
    text_map_close(&m);
    assert_int_equal(text_map_count(&m), 0);
    text_map_close(&m);
    free(known);
    free(key);
}

/* Others with the same hash and length, which the map has to tell apart by their bytes: made by writing over the keys
 * that the map keeps, as no one can do from outside. */
static void test_texts_of_one_hash(void **state)
{
    (void)state;
    struct text_map m = {0};
    uint32_t *first = text_map_slot(&m, "abcd", 4);
    *first = 1;
    memcpy((char *)(first + 1), "wxyz", 4); /* now "wxyz" stands under the hash of "abcd" */
    uint32_t *second = text_map_slot(&m, "abcd", 4);
    assert_ptr_not_equal(first, second);
    assert_int_equal(*second, 0);
    *second = 2;
    assert_ptr_equal(text_map_slot(&m, "abcd", 4), second);
    assert_int_equal(text_map_count(&m), 2);
    text_map_close(&m);
}

/* A string that is hashed with another seed in each map has another place. */
static void test_seeds(void **state)
{
    (void)state;
    struct text_map m[2] = {{{0}, 0, NULL, NULL, 0}, {{0}, 0, NULL, NULL, 0}};
    for (unsigned i = 0; i < 2; i++)
        *text_map_slot(&m[i], "name", 4) = 1;
    assert_true(map_next(&m[0].map, NULL)->a != map_next(&m[1].map, NULL)->a);
    text_map_close(&m[0]);
    text_map_close(&m[1]);
}

static void test_arrays(void **state)
{
    (void)state;
    struct pair *pairs = NULL;
    uint8_t count = 0, capacity = 0; /* of any type */
    for (unsigned i = 0; i < 180; i++) {
        struct pair *p = ARRAY_ADD(pairs, count, capacity);
        assert_ptr_equal(p, &pairs[i]);
        assert_int_equal(p->a | p->b | p->value, 0);
        *p = (struct pair){i, i, i};
        assert_true(capacity >= count && capacity <= 2 * count + 16);
    }
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pairs[i].a, i);
    free(pairs);

    uint64_t *words = NULL, room = 0;
    ARRAY_ROOM(words, 1000, room);
    assert_int_equal(room, 1000);
    ARRAY_ROOM(words, 10, room);
    assert_int_equal(room, 1000);
    ARRAY_ROOM(words, 1001, room);
    assert_int_equal(room, 1500);
    free(words);
}

int main(void)
{
    random_seed = 20;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_collisions), cmocka_unit_test(test_growth),
        cmocka_unit_test(test_values), cmocka_unit_test(test_texts),      cmocka_unit_test(test_texts_of_one_hash),
        cmocka_unit_test(test_seeds),  cmocka_unit_test(test_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
