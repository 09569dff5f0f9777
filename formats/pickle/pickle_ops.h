/*
 * pickle_ops.h: the opcodes of Python pickles: which are read, with how many bytes of argument; which are refused
 * (pickle_ops.def). For pickle.c and its tests.
 */
#ifndef MEMPROF_PICKLE_OPS_H
#define MEMPROF_PICKLE_OPS_H

#include <stdint.h>

enum pickle_op {
#define X(name, byte, sort, bytes) PICKLE_OP_##name = byte,
#include "pickle_ops.def"
#undef X
};

enum pickle_sort { PICKLE_UNKNOWN, PICKLE_READ, PICKLE_CALLS, PICKLE_OLD };

static const struct {
    const char *name; /* NULL: no opcode */
    uint8_t sort;     /* enum pickle_sort */
    uint8_t argument_bytes;
} pickle_ops[256] = {
#define X(name, byte, sort, bytes) [byte] = {#name, PICKLE_##sort, bytes},
#include "pickle_ops.def"
#undef X
};

#endif
