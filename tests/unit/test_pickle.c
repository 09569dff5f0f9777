/* The reader of pickles: values and containers as Python's pickler writes them, what is refused, and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../common/buf.h"
#include "../../formats/pickle/pickle.h"
#include "../../formats/pickle/pickle_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source {
    const char *data;
    size_t length, at;
    size_t step;     /* bytes a call gives at most; 0: all */
    int fail;        /* at the end: this -errno */
    struct buf seen; /* what was shown, in order */
    int replace;     /* lists become values of the user's, numbered as they come */
    uint32_t lists;
};

static long read_bytes(void *context, void *data, size_t size)
{
    struct source *s = context;
    size_t left = s->length - s->at;
    size = s->step && size > s->step ? s->step : size;
    size = size < left ? size : left;
    memcpy(data, s->data + s->at, size);
    s->at += size;
    return size || !s->fail ? (long)size : s->fail;
}

static void print(const struct pickle *p, struct buf *out, struct pickle_value v)
{
    size_t count, length;
    const struct pickle_value *items;
    const char *text;
    switch ((int)pickle_type(v)) {
    case PICKLE_NONE:
        buf_puts(out, "None");
        break;
    case PICKLE_BOOL:
        buf_puts(out, pickle_index(v) ? "True" : "False");
        break;
    case PICKLE_INT:
        buf_printf(out, "%lld", (long long)pickle_int(v));
        break;
    case PICKLE_FLOAT:
        buf_printf(out, "%g", pickle_float(v));
        break;
    case PICKLE_TEXT:
        text = pickle_text(p, v, &length);
        buf_printf(out, "'%s'", text);
        assert_int_equal(strlen(text), length);
        break;
    case PICKLE_OPAQUE:
        buf_puts(out, "?");
        break;
    case PICKLE_LIST:
    case PICKLE_DICT:
    case PICKLE_TUPLE:
        items = pickle_items(p, v, &count);
        buf_putc(out, "[{("[pickle_type(v) - PICKLE_LIST]);
        for (size_t i = 0; i < count; i++) {
            print(p, out, items[i]);
            if (pickle_type(v) == PICKLE_DICT && i % 2 == 0)
                buf_putc(out, ':');
            else if (i + 1 < count)
                buf_putc(out, ' ');
        }
        buf_putc(out, "]})"[pickle_type(v) - PICKLE_LIST]);
        break;
    default:
        buf_printf(out, "<%u>", pickle_index(v));
    }
}

static int complete(void *context, struct pickle *p, enum pickle_type type, const struct pickle_value *items,
                    size_t count, struct pickle_value *result, struct error *err)
{
    struct source *s = context;
    (void)err, (void)items, (void)count;
    print(p, &s->seen, *result);
    buf_putc(&s->seen, ';');
    if (s->replace && type == PICKLE_LIST)
        *result = pickle_make(PICKLE_USER, s->lists++);
    return 0;
}

/* The value as text, or the error's. */
static char *read_all(struct source *s)
{
    struct pickle_user user = {s, read_bytes, complete};
    struct pickle *p = pickle_open(&user);
    struct pickle_value v;
    struct error err = {""};
    struct buf out = BUF(1 << 20);
    s->seen = (struct buf)BUF(1 << 20);
    int rc = pickle_read(p, &v, &err);
    if (rc == 0)
        print(p, &out, v);
    else
        buf_printf(&out, "%d %s", rc, err.text);
    if (rc == 0)
        assert_int_equal(pickle_offset(p), s->length);
    pickle_close(p);
    return out.data;
}

#define BYTES(literal) (literal), sizeof(literal) - 1

static void check(const char *data, size_t length, const char *expected)
{
    for (size_t step = 0; step < 4; step++) { /* whole, and a few bytes at a time */
        struct source s = {.data = data, .length = length, .step = step};
        char *got = read_all(&s);
        assert_string_equal(got, expected);
        free(got);
        buf_free(&s.seen);
    }
}

/* As CPython writes them. */
static void test_values(void **state)
{
    (void)state;
    check(BYTES("\x80\x04N."), "None");
    check(BYTES("\x80\x02\x88."), "True");
    check(BYTES("\x80\x03\x89."), "False");
    check(BYTES("\x80\x04K\xff."), "255");
    check(BYTES("\x80\x04M\xff\xff."), "65535");
    check(BYTES("\x80\x04J\xff\xff\xff\xff."), "-1");
    check(BYTES("\x80\x04\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x08."), "?"); /* 2^59 */
    check(BYTES("\x80\x04\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x07."), "576460752303423487");
    check(BYTES("\x80\x04\x8a\x08\x00\x00\x00\x00\x00\x00\x00\xf8."), "-576460752303423488");
    check(BYTES("\x80\x04\x8a\x05\x00\x00\x00\x80\x00."), "2147483648");
    check(BYTES("\x80\x04\x8a\x05\xff\xff\xff\x7f\xff."), "-2147483649");
    check(BYTES("\x80\x04\x8a\x00."), "0");
    check(BYTES("\x80\x04\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00."), "?");
    check(BYTES("\x80\x04\x8a\x0a\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00."), "5");
    check(BYTES("\x80\x04G?\xe0\x00\x00\x00\x00\x00\x00."), "0.5");
    check(BYTES("\x80\x04\x8c\x03\xe4\x68\x6f\x94."), "'\xe4ho'");
    check(BYTES("\x80\x02X\x02\x00\x00\x00hiq\x00."), "'hi'");
    check(BYTES("\x80\x04\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi\x94."), "'hi'");
    check(BYTES("\x80\x04"
                "C\x03"
                "abc\x94."),
          "?");
    check(BYTES("\x80\x05\x95\x0e\x00\x00\x00\x00\x00\x00\x00\x96\x03\x00\x00\x00\x00\x00\x00\x00"
                "abc\x94."),
          "?");
    check(BYTES("\x80\x04\x8f\x94(K\x01K\x02\x90."), "?");
    check(BYTES("\x80\x04(K\x01K\x02\x91\x94."), "?");
}

static void test_containers(void **state)
{
    (void)state;
    check(BYTES("\x80\x04]\x94."), "[]");
    check(BYTES("\x80\x04}\x94."), "{}");
    check(BYTES("\x80\x04)."), "()");
    check(BYTES("\x80\x04K\x01K\x02\x86\x94."), "(1 2)");
    check(BYTES("\x80\x04(K\x01K\x02K\x03K\x04t\x94."), "(1 2 3 4)");
    check(BYTES("\x80\x04]\x94(K\x01K\x02"
                "e."),
          "[1 2]");
    check(BYTES("\x80\x04]\x94K\x01"
                "a."),
          "[1]");
    check(BYTES("\x80\x04}\x94\x8c\x01"
                "a\x94K\x01s."),
          "{'a':1}");
    check(BYTES("\x80\x04}\x94(\x8c\x01"
                "a\x94]\x94(K\x01K\x02"
                "e\x8c\x01"
                "b\x94h\x02u."),
          "{'a':[1 2] 'b':[1 2]}");
    /* batches: a group, then a single item */
    check(BYTES("\x80\x04]\x94(K\x01K\x02"
                "eK\x03"
                "a."),
          "[1 2 3]");
    check(BYTES("\x80\x04}\x94(\x8c\x01"
                "a\x94K\x01u\x8c\x01"
                "b\x94K\x02s."),
          "{'a':1 'b':2}");
    /* dicts that follow each other in a list, in a group of two and one more */
    check(BYTES("\x80\x04]\x94(}\x94\x8c\x01"
                "a\x94K\x01s}\x94h\x02K\x02s"
                "e}\x94"
                "a."),
          "[{'a':1} {'a':2} {}]");
    /* the C++ pickler: remembered when complete, empty groups */
    check(BYTES("\x80\x02}(X\x01\x00\x00\x00"
                "aq\x00](eq\x01X\x01\x00\x00\x00"
                "bq\x02h\x01uq\x03."),
          "{'a':[] 'b':[]}");
    /* an unhashable key is no matter of ours */
    check(BYTES("\x80\x04}\x94K\x01K\x02s."), "{1:2}");
}

/* A container is shown when it is complete, and what replaces it is found through the memo too. */
static void test_streaming(void **state)
{
    (void)state;
    struct source s = {BYTES("\x80\x04]\x94(}\x94\x8c\x01"
                             "a\x94]\x94K\x07"
                             "as}\x94h\x02h\x03s}\x94h\x02h\x01se."),
                       .replace = 1};
    char *got = read_all(&s);
    assert_string_equal(got, "<1>");
    assert_string_equal(s.seen.data, "[7];{'a':<0>};{'a':<0>};{'a':{'a':<0>}};[{'a':<0>} {'a':<0>} {'a':{'a':<0>}}];");
    free(got);
    buf_free(&s.seen);
}

static void refused(const char *data, size_t length, int code, const char *text)
{
    for (size_t step = 0; step < 3; step++) {
        struct source s = {.data = data, .length = length, .step = step};
        char *got = read_all(&s), want[512];
        snprintf(want, sizeof want, "%d %s", -code, text);
        assert_string_equal(got, want);
        free(got);
        buf_free(&s.seen);
    }
}

static void test_refused(void **state)
{
    (void)state;
    refused(BYTES("\x80\x02"
                  "cposix\nsystem\n(X\x02\x00\x00\x00idtR."),
            EBADMSG, "byte 2: GLOBAL would run or fetch code; a memory snapshot is data only: refused");
    refused(BYTES("\x80\x04N)R."), EBADMSG,
            "byte 4: REDUCE would run or fetch code; a memory snapshot is data only: refused");
    refused(BYTES("\x80\x04\xff."), EBADMSG, "byte 2: 0xff is not an opcode: this is no pickle, or it is damaged");
    refused(BYTES("\x80\x02I1\n."), EBADMSG,
            "byte 2: INT is not of protocol 2 to 5, or of no use in a memory snapshot");
    refused(BYTES("{}"), EBADMSG, "not a pickle of protocol 2 to 5: it begins with 0x7b 0x7d");
    refused(BYTES("\x80\x06N."), EBADMSG, "a pickle of protocol 6; protocols 2 to 5 are read");
    refused(BYTES("\x80\x01N."), EBADMSG, "a pickle of protocol 1; protocols 2 to 5 are read");
    refused(BYTES(""), EBADMSG, "empty, or nearly so: not a pickle");
    refused(BYTES("\x80\x04]\x94"), EBADMSG, "ends at byte 4, before the pickle does: it was cut");
    refused(BYTES("\x80\x04X\xff\xff\x00\x00"
                  "abc"),
            EBADMSG, "ends at byte 10, before the pickle does: it was cut");
    refused(BYTES("\x80\x04X\xff\xff\xff\xff"
                  "abc"),
            E2BIG, "byte 2: a text of more than 16 MiB");
    refused(BYTES("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                  "abc"),
            E2BIG, "byte 2: a text of more than 16 MiB");
    refused(BYTES("\x80\x04\x8b\xff\xff\xff\x7f"
                  "abc"),
            E2BIG, "byte 2: a number of more than 255 bytes");
    refused(BYTES("\x80\x04."), EBADMSG, "byte 2: stops with more or less than one value");
    refused(BYTES("\x80\x04NN."), EBADMSG, "byte 4: stops with more or less than one value");
    refused(BYTES("\x80\x04(."), EBADMSG, "byte 3: stops with more or less than one value");
    refused(BYTES("\x80\x04"
                  "e."),
            EBADMSG, "byte 2: ends a group that was not begun");
    refused(BYTES("\x80\x04(e."), EBADMSG, "byte 3: items are added to nothing");
    refused(BYTES("\x80\x04N(e."), EBADMSG, "byte 4: items are added to what is no list, or was complete");
    refused(BYTES("\x80\x04](K\x01u."), EBADMSG, "byte 6: items are set in what is no dict, or was complete");
    refused(BYTES("\x80\x04}(K\x01u."), EBADMSG, "byte 6: a key without a value");
    refused(BYTES("\x80\x04"
                  "a."),
            EBADMSG, "byte 2: takes more values than there are");
    refused(BYTES("\x80\x04\x87."), EBADMSG, "byte 2: takes more values than there are");
    refused(BYTES("\x80\x04](K\x01\x87."), EBADMSG, "byte 6: takes more values than there are");
    refused(BYTES("\x80\x04\x94."), EBADMSG, "byte 2: remembers a value that is not there");
    refused(BYTES("\x80\x04h\x00."), EBADMSG, "byte 2: asks for a value that was not remembered");
    refused(BYTES("\x80\x04Nq\x00h\x01."), EBADMSG, "byte 5: asks for a value that was not remembered");
    refused(BYTES("\x80\x04j\xff\xff\xff\xff."), EBADMSG, "byte 2: asks for a value that was not remembered");
    refused(BYTES("\x80\x04Nr\xff\xff\xff\xff."), EBADMSG,
            "byte 3: remembers a value under a number that no pickler uses");
    refused(BYTES("\x80\x04]\x94\x94."), EBADMSG, "byte 4: remembers a list or dict twice");
    /* a list in itself, a dict in itself */
    refused(BYTES("\x80\x04]\x94h\x00"
                  "a."),
            EBADMSG, "byte 6: items are added to what is no list, or was complete");
    refused(BYTES("\x80\x04}\x94(\x8c\x01"
                  "a\x94h\x00u."),
            EBADMSG, "byte 11: items are set in what is no dict, or was complete");
    /* what was complete grows no more */
    refused(BYTES("\x80\x04]\x94(]\x94"
                  "eh\x01K\x01"
                  "a."),
            EBADMSG, "byte 12: items are added to what is no list, or was complete");
}

/* Every opcode of Python's that is not read is refused with its name, wherever it stands. */
static void test_every_opcode(void **state)
{
    (void)state;
    unsigned calls = 0;
    for (unsigned op = 0; op < 256; op++) {
        char data[] = {'\x80', 4, 'N', (char)op, '.'};
        struct source s = {.data = data, .length = sizeof data};
        if (pickle_ops[op].sort == PICKLE_READ)
            continue;
        char *got = read_all(&s);
        assert_non_null(strstr(got, "byte 3: "));
        if (pickle_ops[op].name)
            assert_non_null(strstr(got, pickle_ops[op].name));
        if (pickle_ops[op].sort == PICKLE_CALLS) {
            assert_non_null(strstr(got, "refused"));
            calls++;
        }
        free(got);
        buf_free(&s.seen);
    }
    assert_int_equal(calls, 15);
}

static void test_limits(void **state)
{
    (void)state;
    struct buf deep = BUF(1 << 24);
    buf_add(&deep, "\x80\x04", 2);
    for (unsigned i = 0; i <= PICKLE_DEPTH_MAX; i++)
        buf_add(&deep, "](", 2);
    struct source s = {.data = deep.data, .length = deep.length};
    char *got = read_all(&s);
    assert_non_null(strstr(got, "nested deeper than a memory snapshot is"));
    free(got);
    buf_free(&s.seen);
    buf_reset(&deep);
    buf_add(&deep, "\x80\x04(", 3);
    for (unsigned i = 0; i <= PICKLE_KEPT_MAX; i++)
        buf_putc(&deep, ']');
    s = (struct source){.data = deep.data, .length = deep.length};
    got = read_all(&s);
    assert_non_null(strstr(got, "more lists and dicts at once than a memory snapshot has"));
    free(got);
    buf_free(&s.seen);
    buf_free(&deep);
}

static void test_read_error(void **state)
{
    (void)state;
    struct source s = {BYTES("\x80\x04]"), .fail = -EIO};
    char *got = read_all(&s);
    assert_string_equal(got, "-5 reading: Input/output error");
    free(got);
    buf_free(&s.seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_containers),   cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_every_opcode), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_read_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
