/* Call frame information from hand-made bytes, evaluated in full: registers, each operation, and hostile input. */
#include "unwind_image.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

static struct cfi_work work;

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
    struct cfi_image image = image_make(s);
    assert_int_equal(cfi_find_row(&image, image_code, &work), 0);
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
    struct spec s = USUAL; /* more operands than there is image_room for */
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
    struct cfi_image good = image_make(&s);
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
            use(&good, image_code + (random_next() & 31));
    }
    /* cut at every length, at the guard page */
    for (unsigned cut = 0; cut <= bytes; cut++) {
        struct cfi_image image = {image_room + IMAGE_ROOM - cut, image_room + IMAGE_ROOM,
                                  image_room + IMAGE_ROOM - cut};
        memcpy(image_room + IMAGE_ROOM - cut, copy, cut);
        use(&image, image_code + 3);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_hostile_libc),
    };
    return cmocka_run_group_tests(tests, image_set_up, NULL);
}
