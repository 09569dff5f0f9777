/* Call frame information from hand-made bytes: each instruction, each class of rule, each operation, and hostile input.
 * The bytes lie against pages that cannot be read on both sides, so that a read out of bounds ends the test. */
#include "../../profiler/preload/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- making an image --- */

#define ROOM       8192u
#define CODE_BYTES 0x10000u

static uint8_t *room; /* ROOM bytes between two guard pages */
static struct cfi_work work;

struct maker {
    uint8_t bytes[4096];
    unsigned count;
};

static void put(struct maker *m, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        m->bytes[m->count++] = (uint8_t)(value >> (8 * i));
}

static void put_bytes(struct maker *m, const void *bytes, unsigned count)
{
    memcpy(m->bytes + m->count, bytes, count);
    m->count += count;
}

struct spec {
    const char *augmentation; /* "zR" */
    unsigned version, ra;
    uint8_t initial[32];
    unsigned initial_bytes;
    uint8_t program[256];
    unsigned program_bytes;
};

/* def_cfa rsp + 8; the return address at CFA - 8 */
#define USUAL                                                                                                          \
    {                                                                                                                  \
        .augmentation = "zR", .version = 1, .ra = 16, .initial = {0x0c, 7, 8, 0x90, 1}, .initial_bytes = 5             \
    }

static uint64_t code; /* where the function begins, of the last image */

static struct cfi_image make(const struct spec *spec)
{
    struct maker m = {.count = 0};
    unsigned augmentation_bytes = (unsigned)strlen(spec->augmentation) + 1;
    put(&m, 0x3b031b01, 4); /* version 1; pcrel sdata4, udata4, datarel sdata4 */
    put(&m, 0, 4);          /* .eh_frame, below */
    put(&m, 1, 4);          /* entries */
    unsigned table = m.count;
    put(&m, 0, 8);
    unsigned frames = m.count;
    put(&m, 0, 4); /* CIE */
    put(&m, 0, 4);
    put(&m, spec->version, 1);
    put_bytes(&m, spec->augmentation, augmentation_bytes);
    if (spec->version == 4)
        put(&m, 8, 2); /* address size, segment size */
    put(&m, 1, 1);     /* code factor */
    put(&m, 0x78, 1);  /* data factor -8 */
    put(&m, spec->ra, 1);
    if (spec->augmentation[0] == 'z') {
        put(&m, (uint64_t)(augmentation_bytes - 2), 1);
        for (const char *a = spec->augmentation + 1; *a; a++)
            put(&m, *a == 'R' ? 0x1b : 0, *a == 'R' ? 1 : *a == 'L' ? 1 : 0);
        m.bytes[m.count] = 0;
        while (m.count <
               frames + 8 + 1 + augmentation_bytes + (spec->version == 4 ? 2 : 0) + 3 + 1 + augmentation_bytes - 2)
            put(&m, 0, 1);
    }
    put_bytes(&m, spec->initial, spec->initial_bytes);
    unsigned fde = m.count;
    put(&m, 0, 4);
    put(&m, fde + 4 - frames, 4);
    put(&m, 0, 4); /* start */
    put(&m, CODE_BYTES, 4);
    if (spec->augmentation[0] == 'z')
        put(&m, 0, 1);
    put_bytes(&m, spec->program, spec->program_bytes);
    unsigned count = m.count;
    uint8_t *base = room + ROOM - count;
    code = ((uint64_t)base & ~15ull) + 0x100000;
    struct {
        unsigned at;
        uint64_t value;
    } fix[] = {
        {4, frames - 4},        {table, code - (uint64_t)base},
        {table + 4, fde},       {frames, fde - frames - 4},
        {fde, count - fde - 4}, {fde + 8, code - ((uint64_t)base + fde + 8)},
    };
    if (!strchr(spec->augmentation, 'R'))
        fix[5].value = 0; /* absolute: not used in a test that needs it */
    for (unsigned i = 0; i < sizeof fix / sizeof fix[0]; i++) {
        m.count = fix[i].at;
        put(&m, fix[i].value, 4);
    }
    memset(room, 0, ROOM - count);
    memcpy(base, m.bytes, count);
    return (struct cfi_image){base, base + count, base};
}

#define PROGRAM(s, ...)                                                                                                \
    do {                                                                                                               \
        static const uint8_t bytes_[] = {__VA_ARGS__};                                                                 \
        memcpy((s)->program, bytes_, sizeof bytes_);                                                                   \
        (s)->program_bytes = sizeof bytes_;                                                                            \
    } while (0)

/* --- rows --- */

static void expect_cfa(const struct cfi_image *image, uint64_t offset, unsigned reg, int64_t cfa)
{
    assert_int_equal(cfi_find_row(image, code + offset, &work), 0);
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
    struct cfi_image image = make(&s);
    expect_cfa(&image, 0, 7, 8);
    expect_cfa(&image, 1, 7, 16);
    expect_cfa(&image, 127, 7, 16);
    expect_cfa(&image, 128, 7, 24);
    expect_cfa(&image, 383, 7, 24);
    expect_cfa(&image, 384, 7, 32);
    expect_cfa(&image, 384 + 4095, 7, 32);
    expect_cfa(&image, 384 + 4096, 7, 48);
    expect_cfa(&image, CODE_BYTES - 1, 7, 48);
    assert_int_equal(cfi_find_row(&image, code + CODE_BYTES, &work), -1);
    assert_int_equal(cfi_find_row(&image, code - 1, &work), -1);
    assert_int_equal(cfi_find_row(&image, 0, &work), -1);
    assert_int_equal(cfi_find_row(&image, ~0ull, &work), -1);
}

static void test_set_loc(void **state)
{
    struct spec s = USUAL;
    (void)state;
    PROGRAM(&s, 0x01, 0, 0, 0, 0, 0x0e, 64);
    struct cfi_image image = make(&s);
    uint8_t *operand = (uint8_t *)image.end - 6;
    int32_t to = (int32_t)(code + 0x500 - (uint64_t)operand);
    memcpy(operand, &to, 4);
    expect_cfa(&image, 0x4ff, 7, 8);
    expect_cfa(&image, 0x500, 7, 64);
    to = (int32_t)(code - 1 - (uint64_t)operand); /* backwards */
    memcpy(operand, &to, 4);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
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
    struct cfi_image image = make(&s);
    expect_cfa(&image, 1, 6, 256);
    expect_cfa(&image, 2, 3, 256);
    expect_cfa(&image, 3, 7, 16);
    expect_cfa(&image, 4, 7, 24);
    assert_int_equal(cfi_find_row(&image, code + 5, &work), 0);
    assert_true(work.row.cfa_is_expression);
    expect_cfa(&image, 6, 7, 8);
    PROGRAM(&s, 0x0f, 1, 0x50, 0x0e, 16); /* an offset for what is an expression */
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
    PROGRAM(&s, 0x0d, 17); /* no such register */
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
}

static void expect_register(const struct cfi_image *image, uint64_t offset, unsigned reg, unsigned how, int64_t value)
{
    assert_int_equal(cfi_find_row(image, code + offset, &work), 0);
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
    struct cfi_image image = make(&s);
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
    struct cfi_image image = make(&s);
    expect_cfa(&image, 2, 6, 32);
    expect_register(&image, 3, 6, CFI_OFFSET, -40);
    expect_register(&image, 4, 6, CFI_OFFSET, -16);
    expect_cfa(&image, 4, 6, 32);
    expect_cfa(&image, 5, 7, 16);
    PROGRAM(&s, 0x0b); /* nothing to restore */
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
    PROGRAM(&s, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a);
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), 0);
    PROGRAM(&s, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a);
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
}

static void test_refused(void **state)
{
    static const uint8_t unknown[] = {0x17, 0x1d, 0x2d, 0x30, 0x3f};
    struct spec s = USUAL;
    (void)state;
    for (unsigned i = 0; i < sizeof unknown; i++) {
        s.program[0] = unknown[i], s.program_bytes = 1;
        struct cfi_image image = make(&s);
        assert_int_equal(cfi_find_row(&image, code, &work), -1);
    }
    PROGRAM(&s, 0x0e); /* the operand is missing */
    struct cfi_image image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
    PROGRAM(&s, 0x10, 6, 0x7f); /* a block longer than the program */
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
    s = (struct spec)USUAL;
    s.initial_bytes = 0; /* no CFA at all */
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
    s = (struct spec)USUAL;
    s.ra = 15;
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
    s = (struct spec)USUAL;
    s.version = 2;
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
    static const unsigned versions[] = {1, 3, 4};
    for (unsigned i = 0; i < 3; i++) {
        s.version = versions[i];
        image = make(&s);
        assert_int_equal(cfi_find_row(&image, code, &work), 0);
    }
    s.augmentation = "zRS";
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), 0);
    assert_true(work.row.is_signal);
    s.augmentation = "eh";
    image = make(&s);
    assert_int_equal(cfi_find_row(&image, code, &work), -1);
}

/* --- rules --- */

static uint64_t rule_at(const struct spec *s, uint64_t offset)
{
    struct cfi_image image = make(s);
    assert_int_equal(cfi_find_row(&image, code + offset, &work), 0);
    return cfi_rule(&image, &work.row, code + offset);
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
        {2, 0x0e, 0},                      /* no room for a return address */
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

/* --- full evaluation --- */

static uint64_t memory[64]; /* the program's memory, from MEMORY on */
#define MEMORY 0x10000u

static int read_memory(void *context, uint64_t address, uint64_t *value)
{
    (void)context;
    if (address < MEMORY || address + 8 > MEMORY + sizeof memory || address + 8 < address)
        return -1;
    memcpy(value, (char *)memory + (address - MEMORY), 8);
    return 0;
}

static struct cfi_registers some_registers(void)
{
    struct cfi_registers r = {.known = (1u << CFI_REGISTERS) - 1};
    for (unsigned i = 0; i < CFI_REGISTERS; i++)
        r.value[i] = 1000 + i;
    r.value[CFI_RSP] = MEMORY + 64;
    r.value[CFI_RBP] = MEMORY + 128;
    return r;
}

static int step(const struct spec *s, struct cfi_registers *r)
{
    struct cfi_image image = make(s);
    assert_int_equal(cfi_find_row(&image, code, &work), 0);
    return cfi_step(&image, &work, r, read_memory, NULL);
}

static void test_step(void **state)
{
    struct spec s = USUAL;
    (void)state;
    for (unsigned i = 0; i < 64; i++)
        memory[i] = 5000 + i;
    struct cfi_registers r = some_registers();
    PROGRAM(&s, 0x0e, 32,         /* CFA = rsp + 32 = MEMORY + 96 */
            0x83, 2,              /* rbx at CFA - 16: word 10 */
            0x09, 12, 13,         /* r12 = r13 */
            0x14, 14, 3,          /* r14 = CFA - 24 */
            0x16, 15, 2, 0x23, 5, /* r15 = CFA + 5 */
            0x10, 6, 2, 0x23, 8,  /* rbp at CFA + 8: word 13 */
            0x07, 0);             /* rax unknown */
    assert_int_equal(step(&s, &r), 0);
    assert_int_equal(r.value[CFI_RSP], MEMORY + 96);
    assert_int_equal(r.value[CFI_RA], 5011);
    assert_int_equal(r.value[3], 5010);
    assert_int_equal(r.value[12], 1013);
    assert_int_equal(r.value[13], 1013);
    assert_int_equal(r.value[14], MEMORY + 72);
    assert_int_equal(r.value[15], MEMORY + 101);
    assert_int_equal(r.value[CFI_RBP], 5013);
    assert_false(r.known & 1);
    assert_int_equal(r.known, ((1u << CFI_REGISTERS) - 1) & ~1u);

    PROGRAM(&s, 0x0c, 0, 8); /* by rax, which is not known now */
    assert_int_equal(step(&s, &r), -1);
    r = some_registers();
    PROGRAM(&s, 0x0c, 3, 8); /* by rbx, which points nowhere */
    assert_int_equal(step(&s, &r), -1);
    PROGRAM(&s, 0x07, 16);
    assert_int_equal(step(&s, &r), 1);
    PROGRAM(&s, 0x08, 16); /* the return address unchanged: no such thing */
    assert_int_equal(step(&s, &r), -1);
    PROGRAM(&s, 0x09, 16, 12); /* in r12 */
    r = some_registers();
    assert_int_equal(step(&s, &r), 0);
    assert_int_equal(r.value[CFI_RA], 1012);
    PROGRAM(&s, 0x87, 2); /* the caller's rsp from memory */
    r = some_registers();
    assert_int_equal(step(&s, &r), 0);
    assert_int_equal(r.value[CFI_RSP], 5007);
}

#define FAILS 0xdeadbeefcafef00dull

static void test_operations(void **state)
{
    (void)state;
    static const struct {
        uint8_t count, bytes[24];
        uint64_t result;
    } rows[] = {
        {1, {0x30}, 0},
        {1, {0x4f}, 31},
        {9, {0x03, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201},
        {2, {0x08, 0xff}, 255},
        {2, {0x09, 0xff}, ~0ull},
        {3, {0x0a, 0xff, 0xff}, 65535},
        {3, {0x0b, 0xfe, 0xff}, ~1ull},
        {5, {0x0c, 0xff, 0xff, 0xff, 0xff}, 0xffffffff},
        {5, {0x0d, 0xff, 0xff, 0xff, 0xff}, ~0ull},
        {9, {0x0e, 8, 7, 6, 5, 4, 3, 2, 1}, 0x0102030405060708},
        {9, {0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, ~0ull},
        {3, {0x10, 0x80, 0x01}, 128},
        {3, {0x11, 0x80, 0x7f}, (uint64_t)-128},
        {3, {0x31, 0x12, 0x22}, 2},                        /* dup, plus */
        {3, {0x31, 0x32, 0x13}, 1},                        /* drop */
        {4, {0x31, 0x32, 0x14, 0x1c}, 1},                  /* over: 2 - 1 */
        {6, {0x35, 0x36, 0x37, 0x15, 2, 0x96}, 5},         /* pick; nop */
        {4, {0x31, 0x39, 0x16, 0x1c}, 8},                  /* swap: 9 - 1 */
        {5, {0x31, 0x32, 0x33, 0x17, 0x1c}, (uint64_t)-1}, /* rot: 3 1 2: 1 - 2 */
        {3, {0x09, 0xf0, 0x19}, 16},                       /* abs */
        {3, {0x3f, 0x36, 0x1a}, 6},                        /* and */
        {4, {0x09, 0xf7, 0x32, 0x1b}, (uint64_t)-4},       /* div */
        {3, {0x31, 0x30, 0x1b}, FAILS},
        {3, {0x31, 0x30, 0x1d}, FAILS},
        {12, {0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b}, FAILS},
        {3, {0x39, 0x34, 0x1d}, 1},         /* mod */
        {3, {0x35, 0x36, 0x1e}, 30},        /* mul */
        {2, {0x31, 0x1f}, ~0ull},           /* neg */
        {2, {0x30, 0x20}, ~0ull},           /* not */
        {3, {0x31, 0x36, 0x21}, 7},         /* or */
        {4, {0x31, 0x23, 0x80, 0x01}, 129}, /* plus_uconst */
        {3, {0x31, 0x33, 0x24}, 8},         /* shl */
        {4, {0x31, 0x08, 64, 0x24}, 0},
        {4, {0x09, 0xff, 0x3c, 0x25}, (1ull << 52) - 1}, /* shr by 12 */
        {4, {0x09, 0xf0, 0x34, 0x26}, ~0ull},            /* shra */
        {5, {0x09, 0xf0, 0x08, 70, 0x26}, ~0ull},
        {3, {0x3f, 0x36, 0x27}, 9}, /* xor */
        {3, {0x31, 0x31, 0x29}, 1},
        {3, {0x31, 0x32, 0x2a}, 0},
        {4, {0x31, 0x09, 0xff, 0x2b}, 1}, /* signed: 1 > -1 */
        {3, {0x31, 0x32, 0x2c}, 1},
        {4, {0x31, 0x09, 0xff, 0x2d}, 0},
        {3, {0x31, 0x32, 0x2e}, 1},
        {8, {0x37, 0x31, 0x28, 1, 0, 0x13, 0x35, 0x22}, 12},       /* bra over the drop */
        {9, {0x37, 0x38, 0x30, 0x28, 1, 0, 0x13, 0x35, 0x22}, 12}, /* not taken */
        {6, {0x37, 0x2f, 1, 0, 0x13, 0x96}, 7},                    /* skip over the drop */
        {4, {0x30, 0x28, 0, 0}, FAILS},                            /* bra takes the only value */
        {4, {0x31, 0x2f, 0xfd, 0xff}, FAILS},                      /* for ever */
        {4, {0x31, 0x2f, 0x01, 0x00}, FAILS},                      /* past the end */
        {4, {0x31, 0x2f, 0x00, 0x80}, FAILS},                      /* before the beginning */
        {1, {0x5c}, 1012},                                         /* reg12 */
        {2, {0x7c, 0x7f}, 1011},                                   /* breg12 -1 */
        {2, {0x90, 13}, 1013},
        {3, {0x92, 13, 2}, 1015},
        {2, {0x90, 17}, FAILS},
        {3, {0x92, 40, 0}, FAILS},
        {1, {0x6f}, FAILS},         /* reg31 */
        {3, {0x77, 0, 0x06}, 5008}, /* deref at rsp */
        {4, {0x77, 0, 0x94, 1}, 5008 & 255},
        {4, {0x77, 0, 0x94, 9}, FAILS},
        {4, {0x77, 0, 0x94, 0}, FAILS},
        {2, {0x30, 0x06}, FAILS}, /* no such memory */
        {1, {0x06}, FAILS},
        {1, {0x22}, FAILS},
        {2, {0x31, 0x22}, FAILS},
        {2, {0x31, 0x16}, FAILS},
        {2, {0x15, 0}, FAILS},
        {1, {0x08}, FAILS}, /* operand missing */
        {1, {0x97}, FAILS},
        {1, {0x9c}, FAILS},
        {1, {0x00}, FAILS},
        {1, {0xff}, FAILS},
        {0, {0}, FAILS},
    };
    for (unsigned i = 0; i < 64; i++)
        memory[i] = 5000 + i;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spec s = USUAL;
        struct cfi_registers r = some_registers();
        /* the CFA is the result; the return address is r12 */
        s.program[0] = 0x09, s.program[1] = 16, s.program[2] = 12;
        s.program[3] = 0x0f, s.program[4] = rows[i].count;
        memcpy(s.program + 5, rows[i].bytes, rows[i].count);
        s.program_bytes = 5u + rows[i].count;
        int result = step(&s, &r);
        if (rows[i].result == FAILS ? result != -1 : result != 0 || r.value[CFI_RSP] != rows[i].result)
            fail_msg("row %u: %d, %lx", i, result, (unsigned long)r.value[CFI_RSP]);
    }
    struct spec s = USUAL; /* more operands than there is room for */
    s.program[0] = 0x0f, s.program[1] = CFI_OPERANDS + 1;
    memset(s.program + 2, 0x31, CFI_OPERANDS + 1);
    s.program_bytes = CFI_OPERANDS + 3;
    struct cfi_registers r = some_registers();
    assert_int_equal(step(&s, &r), -1);
}

/* --- hostile bytes --- */

static uint64_t random_state = 0x2545f4914f6cdd1dull;

static uint64_t random_next(void)
{
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return random_state;
}

static void use(const struct cfi_image *image, uint64_t address)
{
    struct cfi_registers r = some_registers();
    if (cfi_find_row(image, address, &work) < 0)
        return;
    cfi_rule(image, &work.row, address);
    cfi_step(image, &work, &r, read_memory, NULL);
}

static void test_hostile(void **state)
{
    struct spec s = USUAL;
    (void)state;
    s.augmentation = "zRS";
    PROGRAM(&s, 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x02, 9, 0x0c, 6, 16, 0x0b, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b,
            0x2a, 0x33, 0x24, 0x22, 0x10, 6, 2, 0x76, 0, 0x16, 3, 3, 0x77, 8, 0x06, 0x41, 0x09, 12, 13, 0x14, 3, 2);
    struct cfi_image good = make(&s);
    unsigned bytes = (unsigned)(good.end - good.begin);
    uint8_t copy[512];
    assert_true(bytes < sizeof copy);
    memcpy(copy, good.begin, bytes);
    for (int i = 0; i < 200000; i++) {
        uint8_t *at = (uint8_t *)good.begin;
        memcpy(at, copy, bytes);
        for (uint64_t n = random_next() % 6; n-- > 0;) {
            static const uint8_t edge[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe};
            uint64_t r = random_next();
            at[r % bytes] = r >> 40 & 1 ? edge[(r >> 32) % 6] : (uint8_t)(r >> 32);
        }
        for (int k = 0; k < 4; k++)
            use(&good, code + (random_next() & 31));
    }
    /* cut at every length, at the guard page */
    for (unsigned cut = 0; cut <= bytes; cut++) {
        struct cfi_image image = {room + ROOM - cut, room + ROOM, room + ROOM - cut};
        memcpy(room + ROOM - cut, copy, cut);
        use(&image, code + 3);
    }
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *out)
{
    struct cfi_image *image = out;
    (void)size;
    if (!strstr(info->dlpi_name, "libc.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            image->header = (const uint8_t *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *p = &info->dlpi_phdr[i];
        const uint8_t *begin = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);
        if (p->p_type == PT_LOAD && image->header >= begin && image->header < begin + p->p_memsz) {
            image->begin = begin;
            image->end = begin + p->p_memsz;
        }
    }
    return 1;
}

/* libc's own, copied and damaged. */
static void test_hostile_libc(void **state)
{
    struct cfi_image libc = {0};
    (void)state;
    dl_iterate_phdr(find_libc, &libc);
    assert_non_null(libc.begin);
    size_t bytes = (size_t)(libc.end - libc.header);
    size_t whole = (bytes + 4095) & ~4095ull;
    uint8_t *map = mmap(NULL, whole + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + 4096, whole, PROT_READ | PROT_WRITE), 0);
    uint8_t *at = map + 4096 + whole - bytes;
    memcpy(at, libc.header, bytes);
    struct cfi_image copy = {at, at + bytes, at};
    uint64_t text = (uint64_t)at - (uint64_t)libc.header + (uint64_t)dlsym(RTLD_DEFAULT, "qsort");
    unsigned found = 0;
    for (int i = 0; i < 20000; i++)
        found += cfi_find_row(&copy, text + random_next() % 65536, &work) == 0;
    assert_true(found > 15000); /* it is sound before it is damaged */
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 200; i++)
            at[random_next() % (round & 1 ? bytes : 4096)] = (uint8_t)random_next();
        for (int i = 0; i < 200; i++)
            use(&copy, text + random_next() % (1u << 20) - (1u << 19));
        if (round % 20 == 19)
            memcpy(at, libc.header, bytes);
    }
    munmap(map, whole + 8192);
}

static int set_up(void **state)
{
    (void)state;
    uint8_t *map = mmap(NULL, ROOM + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + 4096, ROOM, PROT_READ | PROT_WRITE))
        return -1;
    room = map + 4096;
    return 0;
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
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_hostile_libc),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
