/*
 * unwind_image.h: call frame information of one function, made by hand. The bytes lie against pages that cannot be read
 * on both sides, so that a read out of bounds ends the test.
 */
#ifndef MEMPROF_UNWIND_IMAGE_H
#define MEMPROF_UNWIND_IMAGE_H

#include "../../profiler/preload/unwind/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_ROOM       8192u
#define IMAGE_CODE_BYTES 0x10000u

extern uint8_t *image_room; /* IMAGE_ROOM bytes between two guard pages; the image lies at their end */
extern uint64_t image_code; /* where the function begins, of the last image */

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

#define PROGRAM(s, ...)                                                                                                \
    do {                                                                                                               \
        static const uint8_t bytes_[] = {__VA_ARGS__};                                                                 \
        memcpy((s)->program, bytes_, sizeof bytes_);                                                                   \
        (s)->program_bytes = sizeof bytes_;                                                                            \
    } while (0)

/* For cmocka_run_group_tests: makes the room. */
int image_set_up(void **state);
/* Valid until the next one. */
struct cfi_image image_make(const struct spec *spec);

#endif
