#include "pickle_write.h"

#include "../../common/text.h"
#include "pickle_ops.h"

#include <string.h>

#define GROUP 1000 /* items of a list that are added at once, as Python's pickler does */

static void put_op(struct pickle_writer *w, enum pickle_op op)
{
    putc((int)op, w->out);
}

static void put_op_number(struct pickle_writer *w, int op, uint64_t number, unsigned size)
{
    char data[9] = {(char)op};
    for (unsigned i = 0; i < size; i++)
        data[1 + i] = (char)(number >> (8 * i));
    fwrite(data, 1, size + 1, w->out);
}

static uint32_t put_memoize(struct pickle_writer *w)
{
    put_op(w, PICKLE_OP_MEMOIZE);
    return w->memo_count++;
}

void pickle_put_start(struct pickle_writer *w)
{
    put_op_number(w, PICKLE_OP_PROTO, 4, 1);
}

void pickle_put_stop(struct pickle_writer *w)
{
    put_op(w, PICKLE_OP_STOP);
}

uint32_t pickle_put_empty(struct pickle_writer *w, enum pickle_type type)
{
    put_op(w, type == PICKLE_LIST ? PICKLE_OP_EMPTY_LIST : PICKLE_OP_EMPTY_DICT);
    return put_memoize(w);
}

uint32_t pickle_put_begin(struct pickle_writer *w, enum pickle_type type)
{
    uint32_t memo = pickle_put_empty(w, type);
    put_op(w, PICKLE_OP_MARK);
    return memo;
}

void pickle_put_end(struct pickle_writer *w, enum pickle_type type)
{
    put_op(w, type == PICKLE_LIST ? PICKLE_OP_APPENDS : PICKLE_OP_SETITEMS);
}

/* The group is full: the next begins. */
void pickle_put_next(struct pickle_writer *w, int64_t count)
{
    if (count % GROUP == 0) {
        put_op(w, PICKLE_OP_APPENDS);
        put_op(w, PICKLE_OP_MARK);
    }
}

void pickle_put_number(struct pickle_writer *w, int64_t v)
{
    if (v >= 0 && v < 256) {
        put_op_number(w, PICKLE_OP_BININT1, (uint64_t)v, 1);
    } else if (v >= 0 && v < 65536) {
        put_op_number(w, PICKLE_OP_BININT2, (uint64_t)v, 2);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
        put_op_number(w, PICKLE_OP_BININT, (uint64_t)v, 4);
    } else {
        put_op(w, PICKLE_OP_LONG1);
        put_op_number(w, 8, (uint64_t)v, 8); /* its bytes, and how many */
    }
}

void pickle_put_float(struct pickle_writer *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_op_number(w, PICKLE_OP_BINFLOAT, __builtin_bswap64(bits), 8);
}

void pickle_put_bool(struct pickle_writer *w, int v)
{
    put_op(w, v ? PICKLE_OP_NEWTRUE : PICKLE_OP_NEWFALSE);
}

void pickle_put_pair(struct pickle_writer *w, int64_t a, int64_t b)
{
    pickle_put_number(w, a);
    pickle_put_number(w, b);
    put_op(w, PICKLE_OP_TUPLE2);
    put_memoize(w);
}

uint32_t pickle_put_text(struct pickle_writer *w, const char *text)
{
    buf_reset(&w->text);
    text_clean(&w->text, text);
    size_t length = w->text.length;
    if (length < 256)
        put_op_number(w, PICKLE_OP_SHORT_BINUNICODE, length, 1);
    else
        put_op_number(w, PICKLE_OP_BINUNICODE, length, 4);
    fwrite(w->text.data, 1, length, w->out);
    return put_memoize(w);
}

void pickle_put_again(struct pickle_writer *w, uint32_t memo)
{
    if (memo < 256)
        put_op_number(w, PICKLE_OP_BINGET, memo, 1);
    else
        put_op_number(w, PICKLE_OP_LONG_BINGET, memo, 4);
}
