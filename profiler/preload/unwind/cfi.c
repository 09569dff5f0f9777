#include "cfi.h"

#include "cfi_read.h"

/* --- pointers and entries --- */

enum { ENCODING_OMIT = 0xff, ENCODING_PC = 0x10, ENCODING_DATA = 0x30, ENCODING_INDIRECT = 0x80 };

/* A pointer in one of the encodings of .eh_frame. `data` is what data-relative ones count from. */
static uint64_t take_pointer(struct cursor *c, uint8_t encoding, uint64_t data)
{
    const uint8_t *here = c->at;
    uint64_t value;
    switch (encoding & 15) {
    case 0:
    case 4:
    case 12:
        value = take(c, 8);
        break;
    case 1:
        value = take_uleb(c);
        break;
    case 2:
        value = take(c, 2);
        break;
    case 3:
        value = take(c, 4);
        break;
    case 9:
        value = (uint64_t)take_sleb(c);
        break;
    case 10:
        value = (uint64_t)take_signed(c, 2);
        break;
    case 11:
        value = (uint64_t)take_signed(c, 4);
        break;
    default:
        c->failed = 1;
        return 0;
    }
    if (value == 0)
        return 0;
    switch (encoding & 0x70) {
    case 0:
        return value;
    case ENCODING_PC:
        return value + (uint64_t)here;
    case ENCODING_DATA:
        return value + data;
    default:
        c->failed = 1;
        return 0;
    }
}

/* The content of the entry (CIE or FDE) at `entry`, from its id word on. -1 at the terminator and outside the image. */
static int entry_open(const struct cfi_image *image, uint64_t entry, struct cursor *c)
{
    if (entry < (uint64_t)image->begin || entry >= (uint64_t)image->end)
        return -1;
    *c = (struct cursor){image->begin + (entry - (uint64_t)image->begin), image->end, 0};
    uint64_t bytes = take(c, 4);
    if (bytes == 0xffffffff)
        bytes = take(c, 8);
    if (c->failed || bytes < 4 || bytes > (uint64_t)(c->end - c->at))
        return -1;
    c->end = c->at + bytes;
    return 0;
}

/* --- CIE and FDE --- */

struct entry {
    struct cursor initial, program; /* the instructions of the CIE, of the FDE */
    uint64_t start, end;            /* addresses covered */
    uint64_t code_factor;
    int64_t data_factor;
    uint8_t pointer_encoding;
    uint8_t has_augmentation;
    uint8_t is_signal;
};

static int parse_augmentation(struct entry *e, struct cursor *c, const char *letters)
{
    uint64_t bytes = take_uleb(c);
    if (c->failed || bytes > (uint64_t)(c->end - c->at))
        return -1;
    struct cursor a = {c->at, c->at + bytes, 0};
    c->at = a.end;
    for (; *letters; letters++) {
        switch (*letters) {
        case 'R':
            e->pointer_encoding = (uint8_t)take(&a, 1);
            break;
        case 'L':
            take(&a, 1);
            break;
        case 'P':
            take_pointer(&a, (uint8_t)take(&a, 1) & 0x7f, 0);
            break;
        case 'S':
            e->is_signal = 1;
            break;
        default: /* what is behind an unknown letter is lost; instructions are not, thanks to the length */
            return a.failed ? -1 : 0;
        }
    }
    return a.failed ? -1 : 0;
}

static __attribute__((noinline)) int parse_cie(const struct cfi_image *image, uint64_t at, struct entry *e)
{
    struct cursor c;
    if (entry_open(image, at, &c) < 0 || take(&c, 4) != 0)
        return -1;
    unsigned version = (unsigned)take(&c, 1);
    if (version != 1 && version != 3 && version != 4)
        return -1;
    const char *augmentation = (const char *)c.at;
    while (take(&c, 1) != 0)
        ;
    if (c.failed || (*augmentation && *augmentation != 'z'))
        return -1;
    if (version == 4 && (take(&c, 1) != 8 || take(&c, 1) != 0))
        return -1;
    e->code_factor = take_uleb(&c);
    e->data_factor = take_sleb(&c);
    if ((version == 1 ? take(&c, 1) : take_uleb(&c)) != CFI_RA)
        return -1;
    e->has_augmentation = *augmentation == 'z';
    if (e->has_augmentation && parse_augmentation(e, &c, augmentation + 1) < 0)
        return -1;
    e->initial = c;
    return c.failed ? -1 : 0;
}

static int parse_fde(const struct cfi_image *image, uint64_t at, struct entry *e)
{
    struct cursor c;
    *e = (struct entry){0};
    if (entry_open(image, at, &c) < 0)
        return -1;
    uint64_t id_at = (uint64_t)c.at, distance = take(&c, 4);
    if (distance == 0 || parse_cie(image, id_at - distance, e) < 0)
        return -1;
    if (e->pointer_encoding & ENCODING_INDIRECT || e->pointer_encoding == ENCODING_OMIT)
        return -1;
    e->start = take_pointer(&c, e->pointer_encoding, 0);
    if (__builtin_add_overflow(e->start, take_pointer(&c, e->pointer_encoding & 15, 0), &e->end))
        return -1;
    if (e->has_augmentation)
        skip(&c, take_uleb(&c));
    e->program = c;
    return c.failed ? -1 : 0;
}

/* Where the header has no sorted table (no linker in use today omits it): entry by entry. */
static uint64_t search_all(const struct cfi_image *image, uint64_t frames, uint64_t address, struct entry *e)
{
    struct cursor c;
    for (uint64_t at = frames; entry_open(image, at, &c) == 0; at = (uint64_t)c.end)
        if (parse_fde(image, at, e) == 0 && address >= e->start && address < e->end)
            return at;
    return 0;
}

/* Where the FDE lies that covers an address, if any does; 0: none does. Not inlined: its frame is gone when that is
 * parsed. */
static __attribute__((noinline)) uint64_t find_fde(const struct cfi_image *image, uint64_t address, struct entry *e)
{
    uint64_t header = (uint64_t)image->header;
    if (header < (uint64_t)image->begin || header >= (uint64_t)image->end)
        return 0;
    struct cursor c = {image->header, image->end, 0};
    uint8_t version = (uint8_t)take(&c, 1), frames_encoding = (uint8_t)take(&c, 1);
    uint8_t count_encoding = (uint8_t)take(&c, 1), table_encoding = (uint8_t)take(&c, 1);
    if (version != 1)
        return 0;
    uint64_t frames = frames_encoding == ENCODING_OMIT ? 0 : take_pointer(&c, frames_encoding, header);
    uint64_t count = count_encoding == ENCODING_OMIT ? 0 : take_pointer(&c, count_encoding, header);
    if (c.failed)
        return 0;
    if (count_encoding == ENCODING_OMIT || table_encoding != (ENCODING_DATA | 11))
        return search_all(image, frames, address, e);
    if (count > (uint64_t)(c.end - c.at) / 8)
        return 0;
    uint64_t low = 0, high = count; /* entries before low start at or before address, those from high on after it */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct cursor row = {c.at + middle * 8, c.end, 0};
        if (header + (uint64_t)take_signed(&row, 4) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    struct cursor row = {c.at + (low - 1) * 8 + 4, c.end, 0};
    return header + (uint64_t)take_signed(&row, 4);
}

/* --- instructions --- */

struct machine {
    struct cfi_work *work;
    const struct entry *entry;
    uint64_t location, address;
    unsigned saved;
    int done; /* the row of `address` is complete */
};

/* Registers that we do not follow (xmm and the like) are read past. */
static void set(struct machine *m, uint64_t reg, enum cfi_how how, int64_t value)
{
    if (reg >= CFI_REGISTERS)
        return;
    m->work->row.how[reg] = (uint8_t)how;
    m->work->row.value[reg] = value;
}

static void restore(struct machine *m, uint64_t reg)
{
    if (reg < CFI_REGISTERS)
        set(m, reg, m->work->initial.how[reg], m->work->initial.value[reg]);
}

static void advance(struct machine *m, uint64_t delta)
{
    if (m->address - m->location < delta)
        m->done = 1;
    else
        m->location += delta;
}

static int64_t scaled(const struct machine *m, uint64_t factored)
{
    return (int64_t)(factored * (uint64_t)m->entry->data_factor);
}

static int64_t take_block(struct cursor *c)
{
    const uint8_t *block = c->at;
    skip(c, take_uleb(c));
    return (int64_t)(uintptr_t)block;
}

static int set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
    struct cfi_row *row = &m->work->row;
    if (reg >= CFI_REGISTERS)
        return -1;
    row->cfa_is_expression = 0;
    row->cfa_register = (uint8_t)reg;
    row->cfa = offset;
    return 0;
}

static int execute_advance(struct machine *m, struct cursor *c, unsigned op)
{
    if (op == 0x01) { /* set_loc */
        uint64_t to = take_pointer(c, m->entry->pointer_encoding, 0);
        if (to < m->location)
            return -1;
        advance(m, to - m->location);
        return 0;
    }
    uint64_t delta = take(c, op == 0x02 ? 1 : op == 0x03 ? 2 : 4);
    if (__builtin_mul_overflow(delta, m->entry->code_factor, &delta))
        return -1;
    advance(m, delta);
    return 0;
}

static int execute_state(struct machine *m, unsigned op)
{
    struct cfi_work *w = m->work;
    if (op == 0x0a) { /* remember_state */
        if (m->saved == CFI_SAVED_ROWS)
            return -1;
        w->saved[m->saved++] = w->row;
    } else { /* restore_state */
        if (m->saved == 0)
            return -1;
        w->row = w->saved[--m->saved];
    }
    return 0;
}

static int execute_cfa(struct machine *m, struct cursor *c, unsigned op)
{
    struct cfi_row *row = &m->work->row;
    uint64_t reg;
    switch (op) {
    case 0x0c: /* def_cfa */
        reg = take_uleb(c);
        return set_cfa(m, reg, (int64_t)take_uleb(c));
    case 0x12: /* def_cfa_sf */
        reg = take_uleb(c);
        return set_cfa(m, reg, scaled(m, (uint64_t)take_sleb(c)));
    case 0x0d: /* def_cfa_register: only where the CFA is a register and an offset */
        return row->cfa_is_expression ? -1 : set_cfa(m, take_uleb(c), row->cfa);
    case 0x0e: /* def_cfa_offset */
        return row->cfa_is_expression ? -1 : set_cfa(m, row->cfa_register, (int64_t)take_uleb(c));
    case 0x13: /* def_cfa_offset_sf */
        return row->cfa_is_expression ? -1 : set_cfa(m, row->cfa_register, scaled(m, (uint64_t)take_sleb(c)));
    default: /* def_cfa_expression */
        row->cfa_is_expression = 1;
        row->cfa = take_block(c);
        return 0;
    }
}

static int execute_register(struct machine *m, struct cursor *c, unsigned op)
{
    uint64_t reg = take_uleb(c);
    switch (op) {
    case 0x05: /* offset_extended */
        set(m, reg, CFI_OFFSET, scaled(m, take_uleb(c)));
        return 0;
    case 0x06: /* restore_extended */
        restore(m, reg);
        return 0;
    case 0x07:
        set(m, reg, CFI_UNDEFINED, 0);
        return 0;
    case 0x08:
        set(m, reg, CFI_SAME, 0);
        return 0;
    case 0x09: /* register */
        set(m, reg, CFI_REGISTER, (int64_t)take_uleb(c));
        return 0;
    case 0x10:
        set(m, reg, CFI_EXPRESSION, take_block(c));
        return 0;
    case 0x11: /* offset_extended_sf */
        set(m, reg, CFI_OFFSET, scaled(m, (uint64_t)take_sleb(c)));
        return 0;
    case 0x14:
        set(m, reg, CFI_VAL_OFFSET, scaled(m, take_uleb(c)));
        return 0;
    case 0x15: /* val_offset_sf */
        set(m, reg, CFI_VAL_OFFSET, scaled(m, (uint64_t)take_sleb(c)));
        return 0;
    case 0x16:
        set(m, reg, CFI_VAL_EXPRESSION, take_block(c));
        return 0;
    default: /* 0x2f, GNU_negative_offset_extended */
        set(m, reg, CFI_OFFSET, (int64_t)(0 - (uint64_t)scaled(m, take_uleb(c))));
        return 0;
    }
}

static int execute(struct machine *m, struct cursor c)
{
    while (c.at < c.end && !m->done && !c.failed) {
        unsigned op = (unsigned)take(&c, 1), low = op & 0x3f;
        int bad = 0;
        uint64_t delta;
        switch (op >> 6) {
        case 1: /* advance_loc */
            if (__builtin_mul_overflow(low, m->entry->code_factor, &delta))
                return -1;
            advance(m, delta);
            continue;
        case 2:
            set(m, low, CFI_OFFSET, scaled(m, take_uleb(&c)));
            continue;
        case 3:
            restore(m, low);
            continue;
        }
        switch (op) {
        case 0x00: /* nop */
            break;
        case 0x01 ... 0x04:
            bad = execute_advance(m, &c, op);
            break;
        case 0x05 ... 0x09:
        case 0x10:
        case 0x11:
        case 0x14 ... 0x16:
        case 0x2f:
            bad = execute_register(m, &c, op);
            break;
        case 0x0a:
        case 0x0b:
            bad = execute_state(m, op);
            break;
        case 0x0c ... 0x0f:
        case 0x12:
        case 0x13:
            bad = execute_cfa(m, &c, op);
            break;
        case 0x2e: /* GNU_args_size: for landing pads only */
            take_uleb(&c);
            break;
        default: /* among them 0x2d, which means SPARC's register windows or AArch64's signed addresses */
            return -1;
        }
        if (bad)
            return -1;
    }
    return c.failed ? -1 : 0;
}

/* What a look-up needs at a time, in its working memory. */
struct search {
    struct entry entry;
    struct machine machine;
};
_Static_assert(sizeof(struct search) <= sizeof((struct cfi_work *)0)->search, "a look-up's room");

int cfi_find_row(const struct cfi_image *image, uint64_t address, struct cfi_work *work)
{
    struct search *s = (struct search *)work->search;
    struct entry *e = &s->entry;
    struct machine *m = &s->machine;
    uint64_t fde = find_fde(image, address, e);
    if (!fde || parse_fde(image, fde, e) < 0 || address < e->start || address >= e->end)
        return -1;
    *m = (struct machine){work, e, e->start, address, 0, 0};
    work->row = (struct cfi_row){0};
    work->row.cfa_register = CFI_REGISTERS; /* none yet */
    work->row.is_signal = e->is_signal;
    work->initial = work->row;
    if (execute(m, e->initial) < 0)
        return -1;
    m->done = 0; /* a CIE has no location to advance */
    m->location = e->start;
    work->initial = work->row;
    if (execute(m, e->program) < 0)
        return -1;
    return work->row.cfa_is_expression || work->row.cfa_register < CFI_REGISTERS ? 0 : -1;
}

uint64_t cfi_function(const struct cfi_image *image, uint64_t address, struct cfi_work *work)
{
    struct entry *e = &((struct search *)work->search)->entry;
    uint64_t fde = find_fde(image, address, e);
    return fde && parse_fde(image, fde, e) == 0 && address >= e->start && address < e->end ? e->start : 0;
}

/* --- rules --- */

/* Whether a block is "register + offset", or that and a deref. */
static int block_is(const struct cfi_image *image, int64_t block, unsigned reg, int deref, int64_t *offset)
{
    struct cursor c;
    if (block_open(image, block, &c) < 0 || take(&c, 1) != 0x70 + reg)
        return 0;
    *offset = take_sleb(&c);
    if (deref && take(&c, 1) != 0x06)
        return 0;
    return !c.failed && c.at == c.end;
}

/* The linkers' PLT stubs: CFA = rsp + 8 + (((rip & 15) >= N) << 3). Gives N, or -1. */
static int block_plt_limit(const struct cfi_image *image, int64_t block)
{
    static const uint8_t want[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
    struct cursor c;
    int limit = -1;
    if (block_open(image, block, &c) < 0 || c.end - c.at != sizeof want)
        return -1;
    for (unsigned i = 0; i < sizeof want; i++) {
        if (i == 6 && c.at[i] >= 0x30 && c.at[i] < 0x40)
            limit = c.at[i] - 0x30;
        else if (c.at[i] != want[i])
            return -1;
    }
    return limit;
}

static int row_is_kernel_signal_frame(const struct cfi_image *image, const struct cfi_row *row)
{
    int64_t sp, bp, ip;
    return row->cfa_is_expression && block_is(image, row->cfa, CFI_RSP, 1, &sp) && sp == SIGNAL_RSP &&
           row->how[CFI_RBP] == CFI_EXPRESSION && block_is(image, row->value[CFI_RBP], CFI_RSP, 0, &bp) &&
           bp == SIGNAL_RBP && row->how[CFI_RA] == CFI_EXPRESSION &&
           block_is(image, row->value[CFI_RA], CFI_RSP, 0, &ip) && ip == SIGNAL_RIP;
}

static uint64_t rule_of_expression(const struct cfi_image *image, const struct cfi_row *row, uint64_t address)
{
    int64_t offset, saved;
    if (block_is(image, row->cfa, CFI_RBP, 1, &offset) && offset % 8 == 0 && offset < 0 && offset >= -4096 &&
        row->how[CFI_RBP] == CFI_EXPRESSION && block_is(image, row->value[CFI_RBP], CFI_RBP, 0, &saved) && saved == 0)
        return RULE(RULE_REALIGNED, 0, -offset / 8);
    int limit = block_plt_limit(image, row->cfa);
    if (limit >= 0 && row->how[CFI_RBP] == CFI_SAME)
        return RULE(RULE_RSP, 0, (address & 15) >= (unsigned)limit ? 2 : 1);
    return RULE(RULE_RICH, 0, 0);
}

uint64_t cfi_rule(const struct cfi_image *image, const struct cfi_row *row, uint64_t address)
{
    const uint64_t rich = RULE(RULE_RICH, 0, 0);
    if (row->how[CFI_RA] == CFI_UNDEFINED)
        return RULE(RULE_END, 0, 0);
    if (row->is_signal)
        return row_is_kernel_signal_frame(image, row) ? RULE(RULE_SIGNAL, 0, 0) : rich;
    if (row->how[CFI_RA] != CFI_OFFSET || row->value[CFI_RA] != -8 || row->how[CFI_RSP] != CFI_SAME)
        return rich;
    if (row->cfa_is_expression)
        return rule_of_expression(image, row, address);
    if (row->cfa_register != CFI_RSP && row->cfa_register != CFI_RBP)
        return rich;
    if (row->cfa % 8 != 0 || row->cfa < 8 || row->cfa >= 8 << 16)
        return rich;
    int64_t slot = 0;
    if (row->how[CFI_RBP] == CFI_OFFSET) {
        int64_t offset = row->value[CFI_RBP];
        if (offset % 8 != 0 || offset > -16 || offset < -127 * 8 || -offset > row->cfa)
            return rich;
        slot = -offset / 8;
    } else if (row->how[CFI_RBP] != CFI_SAME && row->how[CFI_RBP] != CFI_UNDEFINED) {
        return rich;
    }
    /* A slot far below rbp's frame would let a wild rbp reach below the stack pointer (unwind.h relies on this). */
    if (row->cfa_register == CFI_RBP && slot > 6)
        return rich;
    return RULE(row->cfa_register == CFI_RSP ? RULE_RSP : RULE_RBP, slot, row->cfa / 8);
}
