/*
 * cfi.h: call frame information (.eh_frame) of x86-64: which row of it covers an address, that row as a rule of one
 * word, and a full evaluation for rows that are too rich for a rule. No state of its own, no allocation; every read of
 * the image stays within bounds given by the caller, and every read of the program's memory goes through a callback.
 */
#ifndef MEMPROF_CFI_H
#define MEMPROF_CFI_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { CFI_RBP = 6, CFI_RSP = 7, CFI_RA = 16, CFI_REGISTERS = 17 }; /* DWARF register numbers */

/* Bytes that may be read (one loaded segment) and the .eh_frame_hdr in them. */
struct cfi_image {
    const uint8_t *begin, *end;
    const uint8_t *header;
};

/* How a register of the caller is found. */
enum cfi_how {
    CFI_SAME = 0,
    CFI_UNDEFINED,
    CFI_OFFSET,         /* saved at CFA + value */
    CFI_VAL_OFFSET,     /* is CFA + value */
    CFI_REGISTER,       /* is in register `value` */
    CFI_EXPRESSION,     /* saved at the address that the block at `value` computes */
    CFI_VAL_EXPRESSION, /* is what the block computes */
};

struct cfi_row {
    uint8_t how[CFI_REGISTERS];
    uint8_t cfa_is_expression;
    uint8_t cfa_register;
    uint8_t is_signal;
    int64_t value[CFI_REGISTERS]; /* offset, register, or address of a block (its length comes first) */
    int64_t cfa;                  /* offset, or address of a block */
};

struct cfi_registers {
    uint64_t value[CFI_REGISTERS];
    uint32_t known; /* one bit a register */
};

/* Working memory of one look-up or step: too large for the stacks that hooks run on. */
#define CFI_SAVED_ROWS 8
#define CFI_OPERANDS   64
struct cfi_work {
    struct cfi_row row, initial, saved[CFI_SAVED_ROWS];
    uint64_t operands[CFI_OPERANDS];
    struct cfi_registers caller;
    uint64_t search[24]; /* cfi.c's own */
};

/* 0: work->row holds what is true at `address`. -1: nothing is known of it, or the bytes are not valid. */
int cfi_find_row(const struct cfi_image *image, uint64_t address, struct cfi_work *work);
/* Where the function begins that an address is in; 0: not known. */
uint64_t cfi_function(const struct cfi_image *image, uint64_t address, struct cfi_work *work);

/*
 * Rules, in a word whose middle is left for its owner's use: bits 0..2 type, 3 whether rbp is saved, 4..10 where: 128 -
 * k for CFA - 8k (k = 1, the return address itself, where it is not saved, so that there is always something to
 * read), 48..63 offset / 8, so that two bytes of memory are the offset. For RSP and RBP: CFA = register + offset, at
 * least register + 8, and the slot is not below the register. The return address is at CFA - 8.
 */
enum cfi_rule_type {
    RULE_NONE = 0,
    RULE_RSP = 1,
    RULE_RBP = 2,
    RULE_REALIGNED = 3, /* CFA = *(rbp - offset), rbp saved at rbp: gcc's realigned stack frames */
    RULE_SIGNAL = 4,    /* the kernel's signal frame: rsp points to its ucontext */
    RULE_END = 5,       /* the outermost frame */
    RULE_RICH = 6,      /* needs cfi_step */
    RULE_UNKNOWN = 7,
};
#define RULE(type, slot, offset8)                                                                                      \
    ((uint64_t)(type) | ((slot) ? 8 : 0) | (128 - (uint64_t)((slot) ? (slot) : 1)) << 4 | (uint64_t)(offset8) << 48)
#define RULE_TYPE(rule)      ((unsigned)(rule)&7)
#define RULE_SAVES_RBP(rule) ((rule)&8)
#define RULE_WHERE(rule)     ((rule) >> 4 & 127)
#define RULE_SLOT(rule)      (RULE_SAVES_RBP(rule) ? 128 - RULE_WHERE(rule) : 0) /* k; 0: not saved */
#define RULE_OFFSET(rule)    ((rule) >> 48 << 3)
#define RULE_UNUSED          (((1ull << 37) - 1) << 11)

/* ucontext of a signal frame, from its rsp */
enum { SIGNAL_RBP = 120, SIGNAL_RSP = 160, SIGNAL_RIP = 168 };

/* The row as a rule; `address` as given to cfi_find_row (a PLT stub's CFA depends on it). */
uint64_t cfi_rule(const struct cfi_image *image, const struct cfi_row *row, uint64_t address);

/* Reads the 8 bytes at an address of the program: 0, or -1 where it cannot be read. */
typedef int cfi_read(void *context, uint64_t address, uint64_t *value);

/* From a frame's registers to its caller's by work->row. 0: done; 1: this frame is the outermost; -1: cannot be
 * computed. */
int cfi_step(const struct cfi_image *image, struct cfi_work *work, struct cfi_registers *registers, cfi_read *read,
             void *context);

#pragma GCC visibility pop

#endif
