#include "unwind_image.h"

#include <string.h>
#include <sys/mman.h>

uint8_t *image_room;
uint64_t image_code;

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

struct cfi_image image_make(const struct spec *spec)
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
    put(&m, IMAGE_CODE_BYTES, 4);
    if (spec->augmentation[0] == 'z')
        put(&m, 0, 1);
    put_bytes(&m, spec->program, spec->program_bytes);
    unsigned count = m.count;
    uint8_t *base = image_room + IMAGE_ROOM - count;
    image_code = ((uint64_t)base & ~15ull) + 0x100000;
    struct {
        unsigned at;
        uint64_t value;
    } fix[] = {
        {4, frames - 4},        {table, image_code - (uint64_t)base},
        {table + 4, fde},       {frames, fde - frames - 4},
        {fde, count - fde - 4}, {fde + 8, image_code - ((uint64_t)base + fde + 8)},
    };
    if (!strchr(spec->augmentation, 'R'))
        fix[5].value = 0; /* absolute: not used in a test that needs it */
    for (unsigned i = 0; i < sizeof fix / sizeof fix[0]; i++) {
        m.count = fix[i].at;
        put(&m, fix[i].value, 4);
    }
    memset(image_room, 0, IMAGE_ROOM - count);
    memcpy(base, m.bytes, count);
    return (struct cfi_image){base, base + count, base};
}

int image_set_up(void **state)
{
    (void)state;
    uint8_t *map = mmap(NULL, IMAGE_ROOM + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + 4096, IMAGE_ROOM, PROT_READ | PROT_WRITE))
        return -1;
    image_room = map + 4096;
    return 0;
}
