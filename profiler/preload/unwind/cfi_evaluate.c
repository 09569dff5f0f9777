#include "cfi.h"

#include "cfi_read.h"

struct evaluation {
    struct cursor c;
    const struct cfi_registers *registers;
    cfi_read *read;
    void *context;
    uint64_t *stack; /* CFI_OPERANDS */
    unsigned depth;
    int failed;
};

static void push(struct evaluation *v, uint64_t value)
{
    if (v->depth == CFI_OPERANDS)
        v->failed = 1;
    else
        v->stack[v->depth++] = value;
}

static uint64_t pop(struct evaluation *v)
{
    if (v->depth == 0) {
        v->failed = 1;
        return 0;
    }
    return v->stack[--v->depth];
}

static void pick(struct evaluation *v, uint64_t from_top)
{
    if (from_top >= v->depth)
        v->failed = 1;
    else
        push(v, v->stack[v->depth - 1 - from_top]);
}

static void push_register(struct evaluation *v, uint64_t reg, uint64_t offset)
{
    if (reg >= CFI_REGISTERS || !(v->registers->known >> reg & 1))
        v->failed = 1;
    else
        push(v, v->registers->value[reg] + offset);
}

static void deref(struct evaluation *v, unsigned bytes)
{
    uint64_t value = 0, address = pop(v);
    if (v->failed || bytes == 0 || bytes > 8 || v->read(v->context, address, &value) < 0)
        v->failed = 1;
    push(v, bytes < 8 ? value & ((1ull << (8 * bytes)) - 1) : value);
}

static void jump(struct evaluation *v, const uint8_t *begin, int taken)
{
    int64_t by = take_signed(&v->c, 2);
    if (!taken || v->c.failed)
        return;
    if (by < begin - v->c.at || by > v->c.end - v->c.at)
        v->failed = 1;
    else
        v->c.at += by;
}

static void swap(struct evaluation *v, unsigned a, unsigned b)
{
    if (a >= v->depth || b >= v->depth) {
        v->failed = 1;
        return;
    }
    uint64_t *top = &v->stack[v->depth - 1], x = top[-(int)a];
    top[-(int)a] = top[-(int)b];
    top[-(int)b] = x;
}

static uint64_t shift(unsigned op, uint64_t a, uint64_t by)
{
    if (by >= 64)
        return op == 0x26 && (int64_t)a < 0 ? ~0ull : 0;
    return op == 0x24 ? a << by : op == 0x25 ? a >> by : (uint64_t)((int64_t)a >> by);
}

static void binary(struct evaluation *v, unsigned op)
{
    uint64_t b = pop(v), a = pop(v), r = 0;
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    switch (op) {
    case 0x1a: /* and */
        r = a & b;
        break;
    case 0x1b: /* div, signed */
        if (b == 0 || (sa == INT64_MIN && sb == -1))
            v->failed = 1;
        else
            r = (uint64_t)(sa / sb);
        break;
    case 0x1c: /* minus */
        r = a - b;
        break;
    case 0x1d: /* mod */
        if (b == 0)
            v->failed = 1;
        else
            r = a % b;
        break;
    case 0x1e: /* mul */
        r = a * b;
        break;
    case 0x21: /* or */
        r = a | b;
        break;
    case 0x22: /* plus */
        r = a + b;
        break;
    case 0x24: /* shl */
    case 0x25: /* shr */
    case 0x26: /* shra */
        r = shift(op, a, b);
        break;
    case 0x27: /* xor */
        r = a ^ b;
        break;
    case 0x29: /* eq */
        r = sa == sb;
        break;
    case 0x2a: /* ge */
        r = sa >= sb;
        break;
    case 0x2b: /* gt */
        r = sa > sb;
        break;
    case 0x2c: /* le */
        r = sa <= sb;
        break;
    case 0x2d: /* lt */
        r = sa < sb;
        break;
    default: /* 0x2e, ne */
        r = sa != sb;
        break;
    }
    push(v, r);
}

static void constant(struct evaluation *v, unsigned op)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8};
    if (op <= 0x0f) /* const1u, const1s, ... const8s */
        push(v, op & 1 ? (uint64_t)take_signed(&v->c, bytes[op - 0x08]) : take(&v->c, bytes[op - 0x08]));
    else
        push(v, op == 0x10 ? take_uleb(&v->c) : (uint64_t)take_sleb(&v->c));
}

static void operate(struct evaluation *v, unsigned op, const uint8_t *begin)
{
    uint64_t a;
    switch (op) {
    case 0x03: /* addr */
        push(v, take(&v->c, 8));
        break;
    case 0x06:
        deref(v, 8);
        break;
    case 0x94: /* deref_size */
        deref(v, (unsigned)take(&v->c, 1));
        break;
    case 0x08 ... 0x11:
        constant(v, op);
        break;
    case 0x12: /* dup */
        pick(v, 0);
        break;
    case 0x13: /* drop */
        pop(v);
        break;
    case 0x14: /* over */
        pick(v, 1);
        break;
    case 0x15:
        pick(v, take(&v->c, 1));
        break;
    case 0x16:
        swap(v, 0, 1);
        break;
    case 0x17: /* rot: the top goes below the next two */
        swap(v, 0, 1);
        swap(v, 1, 2);
        break;
    case 0x19: /* abs */
        a = pop(v);
        push(v, (int64_t)a < 0 ? 0 - a : a);
        break;
    case 0x1f: /* neg */
        push(v, 0 - pop(v));
        break;
    case 0x20: /* not */
        push(v, ~pop(v));
        break;
    case 0x23: /* plus_uconst */
        a = pop(v);
        push(v, a + take_uleb(&v->c));
        break;
    case 0x28: /* bra */
        jump(v, begin, pop(v) != 0);
        break;
    case 0x2f: /* skip */
        jump(v, begin, 1);
        break;
    case 0x1a ... 0x1e:
    case 0x21:
    case 0x22:
    case 0x24 ... 0x27:
    case 0x29 ... 0x2e:
        binary(v, op);
        break;
    case 0x30 ... 0x4f: /* lit */
        push(v, op - 0x30);
        break;
    case 0x50 ... 0x6f: /* reg: as libgcc reads it, its value */
        push_register(v, op - 0x50, 0);
        break;
    case 0x70 ... 0x8f: /* breg */
        push_register(v, op - 0x70, (uint64_t)take_sleb(&v->c));
        break;
    case 0x90: /* regx */
        push_register(v, take_uleb(&v->c), 0);
        break;
    case 0x92: /* bregx */
        a = take_uleb(&v->c);
        push_register(v, a, (uint64_t)take_sleb(&v->c));
        break;
    case 0x96: /* nop */
        break;
    default:
        v->failed = 1;
    }
}

#define OPERATIONS_MAX 4096 /* an expression may loop */

static int evaluate(struct evaluation *v, const struct cfi_image *image, int64_t block, const uint64_t *cfa,
                    uint64_t *result)
{
    if (block_open(image, block, &v->c) < 0)
        return -1;
    const uint8_t *begin = v->c.at;
    v->depth = 0;
    v->failed = 0;
    if (cfa)
        push(v, *cfa);
    for (unsigned n = 0; v->c.at < v->c.end; n++) {
        operate(v, (unsigned)take(&v->c, 1), begin);
        if (v->failed || v->c.failed || n > OPERATIONS_MAX)
            return -1;
    }
    *result = pop(v);
    return v->failed ? -1 : 0;
}

static int caller_value(struct evaluation *v, const struct cfi_image *image, const struct cfi_row *row, unsigned reg,
                        uint64_t cfa, uint64_t *value)
{
    const struct cfi_registers *old = v->registers;
    uint64_t given = (uint64_t)row->value[reg];
    switch (row->how[reg]) {
    case CFI_SAME:
        *value = old->value[reg];
        return old->known >> reg & 1 ? 0 : -1;
    case CFI_OFFSET:
        return v->read(v->context, cfa + given, value);
    case CFI_VAL_OFFSET:
        *value = cfa + given;
        return 0;
    case CFI_REGISTER:
        if (given >= CFI_REGISTERS || !(old->known >> given & 1))
            return -1;
        *value = old->value[given];
        return 0;
    case CFI_EXPRESSION:
        return evaluate(v, image, row->value[reg], &cfa, value) < 0 ? -1 : v->read(v->context, *value, value);
    case CFI_VAL_EXPRESSION:
        return evaluate(v, image, row->value[reg], &cfa, value);
    default:
        return -1;
    }
}

int cfi_step(const struct cfi_image *image, struct cfi_work *work, struct cfi_registers *registers, cfi_read *read,
             void *context)
{
    const struct cfi_row *row = &work->row;
    struct evaluation v = {.registers = registers, .read = read, .context = context, .stack = work->operands};
    struct cfi_registers *caller = &work->caller;
    uint64_t cfa;
    caller->known = 0;
    if (row->how[CFI_RA] == CFI_UNDEFINED)
        return 1;
    if (row->cfa_is_expression) {
        if (evaluate(&v, image, row->cfa, NULL, &cfa) < 0)
            return -1;
    } else {
        if (!(registers->known >> row->cfa_register & 1))
            return -1;
        cfa = registers->value[row->cfa_register] + (uint64_t)row->cfa;
    }
    for (unsigned reg = 0; reg < CFI_REGISTERS; reg++) {
        if (reg == CFI_RSP && row->how[reg] == CFI_SAME) {
            caller->value[reg] = cfa;
            caller->known |= 1u << reg;
        } else if (caller_value(&v, image, row, reg, cfa, &caller->value[reg]) == 0) {
            caller->known |= 1u << reg;
        }
    }
    if (row->how[CFI_RA] == CFI_SAME || !(caller->known >> CFI_RA & 1) || !(caller->known >> CFI_RSP & 1))
        return -1;
    *registers = *caller;
    return 0;
}
