/* Call frame information from hand-made bytes: each instruction, and each class of rule that a row becomes. */
#include "unwind_image.h"

#include <cmocka.h>
#include <string.h>

static struct cfi_work work;

/* --- rows --- */

static void expect_cfa(const struct cfi_image *image, uint64_t offset, unsigned reg, int64_t cfa)
{
    assert_int_equal(cfi_find_row(image, image_code + offset, &work), 0);
    assert_false(work.row.cfa_is_expression);
    assert_int_equal(work.row.cfa_register, reg);
    assert_int_equal(work.row.cfa, cfa);
}

static void test_advance(void **state)
{
    struct spec s = USUAL;
    (void)state;
    PROGRAM(&s, 0x41, 0x0e, 16,               /* +1 */
            0x02, 0x7f, 0x0e, 24,             /* advance_loc1: +127 */
            0x03, 0x00, 0x01, 0x0e, 32,       /* advance_loc2: +256 */
            0x04, 0x00, 0x10, 0, 0, 0x0e, 40, /* advance_loc4: +4096 */
            0x40, 0x0e, 48);                  /* +0: the same place */
    struct cfi_image image = image_make(&s);
    expect_cfa(&image, 0, 7, 8);
    expect_cfa(&image, 1, 7, 16);
    expect_cfa(&image, 127, 7, 16);
    expect_cfa(&image, 128, 7, 24);
    expect_cfa(&image, 383, 7, 24);
    expect_cfa(&image, 384, 7, 32);
    expect_cfa(&image, 384 + 4095, 7, 32);
    expect_cfa(&image, 384 + 4096, 7, 48);
    expect_cfa(&image, IMAGE_CODE_BYTES - 1, 7, 48);
    assert_int_equal(cfi_find_row(&image, image_code + IMAGE_CODE_BYTES, &work), -1);
    assert_int_equal(cfi_find_row(&image, image_code - 1, &work), -1);
    assert_int_equal(cfi_find_row(&image, 0, &work), -1);
    assert_int_equal(cfi_find_row(&image, ~0ull, &work), -1);
}

static void test_set_loc(void **state)
{
    struct spec s = USUAL;
    (void)state;
    PROGRAM(&s, 0x01, 0, 0, 0, 0, 0x0e, 64);
    struct cfi_image image = image_make(&s);
    uint8_t *operand = (uint8_t *)image.end - 6;
    int32_t to = (int32_t)(image_code + 0x500 - (uint64_t)operand);
    memcpy(operand, &to, 4);
    expect_cfa(&image, 0x4ff, 7, 8);
    expect_cfa(&image, 0x500, 7, 64);
    to = (int32_t)(image_code - 1 - (uint64_t)operand); /* backwards */
    memcpy(operand, &to, 4);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
}

static void test_cfa(void **state)
{
    struct spec s = USUAL;
    (void)state;
    PROGRAM(&s, 0x41, 0x0c, 6, 0x80, 0x02, /* def_cfa rbp, 256 */
            0x41, 0x0d, 3,                 /* register rbx */
            0x41, 0x12, 7, 0x7e,           /* def_cfa_sf rsp, -2 * -8 */
            0x41, 0x13, 0x7d,              /* offset_sf -3 * -8 */
            0x41, 0x0f, 1, 0x50,           /* expression */
            0x41, 0x0c, 7, 8);
    struct cfi_image image = image_make(&s);
    expect_cfa(&image, 1, 6, 256);
    expect_cfa(&image, 2, 3, 256);
    expect_cfa(&image, 3, 7, 16);
    expect_cfa(&image, 4, 7, 24);
    assert_int_equal(cfi_find_row(&image, image_code + 5, &work), 0);
    assert_true(work.row.cfa_is_expression);
    expect_cfa(&image, 6, 7, 8);
    PROGRAM(&s, 0x0f, 1, 0x50, 0x0e, 16); /* an offset for what is an expression */
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    PROGRAM(&s, 0x0d, 17); /* no such register */
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
}

static void expect_register(const struct cfi_image *image, uint64_t offset, unsigned reg, unsigned how, int64_t value)
{
    assert_int_equal(cfi_find_row(image, image_code + offset, &work), 0);
    assert_int_equal(work.row.how[reg], how);
    assert_int_equal(work.row.value[reg], value);
}

static void test_registers(void **state)
{
    struct spec s = USUAL;
    (void)state;
    s.initial[5] = 0x83, s.initial[6] = 7, s.initial_bytes = 7; /* rbx at CFA - 56 from the CIE */
    PROGRAM(&s, 0x41, 0x86, 2,                                  /* offset rbp, 2 */
            0x41, 0x05, 12, 3,                                  /* offset_extended r12, 3 */
            0x41, 0x07, 13,                                     /* undefined r13 */
            0x41, 0x08, 12,                                     /* same_value r12 */
            0x41, 0x09, 14, 3,                                  /* register r14 = rbx */
            0x41, 0x11, 15, 0x7f,                               /* offset_extended_sf r15, -1 */
            0x41, 0x14, 15, 2,                                  /* val_offset r15, 2 */
            0x41, 0x15, 15, 0x7e,                               /* val_offset_sf r15, -2 */
            0x41, 0x2f, 15, 2,                                  /* negative_offset_extended r15, 2 */
            0x41, 0x83, 4, 0x41, 0xc3,                          /* offset rbx, 4; restore rbx */
            0x41, 0x83, 4, 0x41, 0x06, 3,                       /* the same with restore_extended */
            0x41, 0xc6,                                         /* restore rbp: the CIE says nothing */
            0x41, 0x2e, 16, 0x05, 17, 1, 0x00);                 /* args_size; an xmm register; nop */
    struct cfi_image image = image_make(&s);
    expect_register(&image, 0, 6, CFI_SAME, 0);
    expect_register(&image, 0, 3, CFI_OFFSET, -56);
    expect_register(&image, 1, 6, CFI_OFFSET, -16);
    expect_register(&image, 2, 12, CFI_OFFSET, -24);
    expect_register(&image, 3, 13, CFI_UNDEFINED, 0);
    expect_register(&image, 4, 12, CFI_SAME, 0);
    expect_register(&image, 5, 14, CFI_REGISTER, 3);
    expect_register(&image, 6, 15, CFI_OFFSET, 8);
    expect_register(&image, 7, 15, CFI_VAL_OFFSET, -16);
    expect_register(&image, 8, 15, CFI_VAL_OFFSET, 16);
    expect_register(&image, 9, 15, CFI_OFFSET, 16);
    expect_register(&image, 10, 3, CFI_OFFSET, -32);
    expect_register(&image, 11, 3, CFI_OFFSET, -56);
    expect_register(&image, 12, 3, CFI_OFFSET, -32);
    expect_register(&image, 13, 3, CFI_OFFSET, -56);
    expect_register(&image, 13, 6, CFI_OFFSET, -16);
    expect_register(&image, 14, 6, CFI_SAME, 0);
    expect_register(&image, 15, 16, CFI_OFFSET, -8);
}

static void test_remember(void **state)
{
    struct spec s = USUAL;
    (void)state;
    PROGRAM(&s, 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0c, 6, 32, 0x0a, 0x41, 0x86, 5, 0x41, 0x0b, 0x41, 0x0b);
    struct cfi_image image = image_make(&s);
    expect_cfa(&image, 2, 6, 32);
    expect_register(&image, 3, 6, CFI_OFFSET, -40);
    expect_register(&image, 4, 6, CFI_OFFSET, -16);
    expect_cfa(&image, 4, 6, 32);
    expect_cfa(&image, 5, 7, 16);
    PROGRAM(&s, 0x0b); /* nothing to restore */
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    PROGRAM(&s, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a);
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), 0);
    PROGRAM(&s, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a);
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
}

static void test_refused(void **state)
{
    static const uint8_t unknown[] = {0x17, 0x1d, 0x2d, 0x30, 0x3f};
    struct spec s = USUAL;
    (void)state;
    for (unsigned i = 0; i < sizeof unknown; i++) {
        s.program[0] = unknown[i], s.program_bytes = 1;
        struct cfi_image image = image_make(&s);
        assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    }
    PROGRAM(&s, 0x0e); /* the operand is missing */
    struct cfi_image image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    PROGRAM(&s, 0x10, 6, 0x7f); /* a block longer than the program */
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    s = (struct spec)USUAL;
    s.initial_bytes = 0; /* no CFA at all */
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    s = (struct spec)USUAL;
    s.ra = 15;
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    s = (struct spec)USUAL;
    s.version = 2;
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
    static const unsigned versions[] = {1, 3, 4};
    for (unsigned i = 0; i < 3; i++) {
        s.version = versions[i];
        image = image_make(&s);
        assert_int_equal(cfi_find_row(&image, image_code, &work), 0);
    }
    s.augmentation = "zRS";
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), 0);
    assert_true(work.row.is_signal);
    s.augmentation = "eh";
    image = image_make(&s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), -1);
}

/* --- rules --- */

static uint64_t rule_at(const struct spec *s, uint64_t offset)
{
    struct cfi_image image = image_make(s);
    assert_int_equal(cfi_find_row(&image, image_code + offset, &work), 0);
    return cfi_rule(&image, &work.row, image_code + offset);
}

static void expect_rule(uint64_t rule, unsigned type, unsigned slot, unsigned offset)
{
    assert_int_equal(RULE_TYPE(rule), type);
    assert_int_equal(RULE_SLOT(rule), slot);
    assert_int_equal(RULE_OFFSET(rule), offset);
    assert_int_equal(rule & RULE_UNUSED, 0);
}

static void test_rules(void **state)
{
    struct spec s = USUAL;
    (void)state;
    expect_rule(rule_at(&s, 0), RULE_RSP, 0, 8);
    PROGRAM(&s, 0x0e, 16, 0x86, 2);
    expect_rule(rule_at(&s, 0), RULE_RSP, 2, 16);
    PROGRAM(&s, 0x0c, 6, 16, 0x86, 2);
    expect_rule(rule_at(&s, 0), RULE_RBP, 2, 16);
    PROGRAM(&s, 0x0e, 0xf8, 0xff, 0x1f); /* 512 KiB - 8 */
    expect_rule(rule_at(&s, 0), RULE_RSP, 0, (1u << 19) - 8);
    PROGRAM(&s, 0x0e, 0x80, 0x80, 0x20); /* 512 KiB */
    expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
    PROGRAM(&s, 0x0e, 0xf8, 0x07, 0x86, 127); /* rbp at the farthest slot */
    expect_rule(rule_at(&s, 0), RULE_RSP, 127, 1016);
    PROGRAM(&s, 0x07, 16);
    expect_rule(rule_at(&s, 0), RULE_END, 0, 0);
    PROGRAM(&s, 0x07, 6); /* rbp undefined: as good as unchanged */
    expect_rule(rule_at(&s, 0), RULE_RSP, 0, 8);

    static const uint8_t rich[][8] = {
        {4, 0x0c, 3, 16, 0},               /* CFA by rbx */
        {2, 0x0e, 12},                     /* not a multiple of 8 */
        {2, 0x0e, 0},                      /* no image_room for a return address */
        {2, 0x90, 2},                      /* return address elsewhere */
        {3, 0x09, 16, 12},                 /* in a register */
        {3, 0x09, 6, 12},                  /* rbp in a register */
        {3, 0x14, 6, 2},                   /* rbp is an offset */
        {2, 0x87, 3},                      /* rsp saved */
        {4, 0x0e, 16, 0x86, 3},            /* rbp saved below rsp */
        {4, 0x0e, 16, 0x86, 1},            /* over the return address */
        {5, 0x0e, 0xf8, 0x0f, 0x86, 0x80}, /* slot 128 (with the byte below) */
        {5, 0x0c, 6, 0x40, 0x86, 7},       /* far below rbp's frame */
        {4, 0x0f, 2, 0x77, 8},             /* an expression that no rule knows */
    };
    for (unsigned i = 0; i < sizeof rich / sizeof rich[0]; i++) {
        memset(s.program, 0, sizeof s.program);
        memcpy(s.program, rich[i] + 1, rich[i][0]);
        s.program_bytes = rich[i][0];
        if (rich[i][0] == 5 && rich[i][5] == 0x80)
            s.program[s.program_bytes++] = 1;
        expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
    }
}

static void test_rule_of_plt(void **state)
{
    struct spec s = USUAL;
    (void)state;
    PROGRAM(&s, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
    for (unsigned i = 0; i < 64; i++)
        expect_rule(rule_at(&s, i), RULE_RSP, 0, i % 16 >= 11 ? 16 : 8);
    s.program[8] = 0x39; /* with endbr64: from 9 on */
    for (unsigned i = 0; i < 64; i++)
        expect_rule(rule_at(&s, i), RULE_RSP, 0, i % 16 >= 9 ? 16 : 8);
    s.program[8] = 0x50;
    expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
}

static void test_rule_of_realigned(void **state)
{
    struct spec s = USUAL;
    (void)state;
    PROGRAM(&s, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0);
    expect_rule(rule_at(&s, 0), RULE_REALIGNED, 0, 8);
    s.program[3] = 0x79; /* rbp - 7 */
    expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
    s.program[3] = 0x08; /* above rbp */
    expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
    PROGRAM(&s, 0x0f, 3, 0x76, 0x78, 0x06, 0x86, 2);
    expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
}

static void test_rule_of_signal(void **state)
{
    struct spec s = USUAL;
    (void)state;
    s.augmentation = "zRS";
    expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
    PROGRAM(&s, 0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0x00, 0x10, 16, 3, 0x77, 0xa8, 0x01);
    expect_rule(rule_at(&s, 0), RULE_SIGNAL, 0, 0);
    s.program[3] = 0xa1;
    expect_rule(rule_at(&s, 0), RULE_RICH, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advance),
        cmocka_unit_test(test_set_loc),
        cmocka_unit_test(test_cfa),
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_remember),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rule_of_plt),
        cmocka_unit_test(test_rule_of_realigned),
        cmocka_unit_test(test_rule_of_signal),
    };
    return cmocka_run_group_tests(tests, image_set_up, NULL);
}
