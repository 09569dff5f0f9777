/*
 * pickle_ops.h: the opcodes of Python pickles: which are read, with how many bytes of argument; which are refused because they could
 * call, import or fetch something; which belong to protocols 0 and 1 or are of no use in plain data. For pickle.c and its
 * tests; numbers and names are those of Python's pickletools.
 */
#ifndef MEMPROF_PICKLE_OPS_H
#define MEMPROF_PICKLE_OPS_H

#include <stdint.h>

/* X(name, byte, sort, bytes of the argument) */
#define PICKLE_OPS(X) \
    X(MEMOIZE, 0x94, READ, 0)          \
    X(BINPUT, 0x71, READ, 1)           \
    X(LONG_BINPUT, 0x72, READ, 4)      \
    X(BINGET, 0x68, READ, 1)           \
    X(LONG_BINGET, 0x6a, READ, 4)      \
    X(MARK, 0x28, READ, 0)             \
    X(EMPTY_DICT, 0x7d, READ, 0)       \
    X(EMPTY_LIST, 0x5d, READ, 0)       \
    X(SETITEMS, 0x75, READ, 0)         \
    X(APPENDS, 0x65, READ, 0)          \
    X(SETITEM, 0x73, READ, 0)          \
    X(APPEND, 0x61, READ, 0)           \
    X(TUPLE, 0x74, READ, 0)            \
    X(EMPTY_TUPLE, 0x29, READ, 0)      \
    X(TUPLE1, 0x85, READ, 0)           \
    X(TUPLE2, 0x86, READ, 0)           \
    X(TUPLE3, 0x87, READ, 0)           \
    X(BININT, 0x4a, READ, 4)           \
    X(BININT1, 0x4b, READ, 1)          \
    X(BININT2, 0x4d, READ, 2)          \
    X(LONG1, 0x8a, READ, 1)            \
    X(LONG4, 0x8b, READ, 4)            \
    X(BINFLOAT, 0x47, READ, 8)         \
    X(NONE, 0x4e, READ, 0)             \
    X(NEWTRUE, 0x88, READ, 0)          \
    X(NEWFALSE, 0x89, READ, 0)         \
    X(SHORT_BINUNICODE, 0x8c, READ, 1) \
    X(BINUNICODE, 0x58, READ, 4)       \
    X(BINUNICODE8, 0x8d, READ, 8)      \
    X(SHORT_BINSTRING, 0x55, READ, 1)  \
    X(BINSTRING, 0x54, READ, 4)        \
    X(SHORT_BINBYTES, 0x43, READ, 1)   \
    X(BINBYTES, 0x42, READ, 4)         \
    X(BINBYTES8, 0x8e, READ, 8)        \
    X(BYTEARRAY8, 0x96, READ, 8)       \
    X(EMPTY_SET, 0x8f, READ, 0)        \
    X(ADDITEMS, 0x90, READ, 0)         \
    X(FROZENSET, 0x91, READ, 0)        \
    X(FRAME, 0x95, READ, 8)            \
    X(STOP, 0x2e, READ, 0)             \
    X(GLOBAL, 0x63, CALLS, 0)          \
    X(STACK_GLOBAL, 0x93, CALLS, 0)    \
    X(REDUCE, 0x52, CALLS, 0)          \
    X(BUILD, 0x62, CALLS, 0)           \
    X(INST, 0x69, CALLS, 0)            \
    X(OBJ, 0x6f, CALLS, 0)             \
    X(NEWOBJ, 0x81, CALLS, 0)          \
    X(NEWOBJ_EX, 0x92, CALLS, 0)       \
    X(EXT1, 0x82, CALLS, 0)            \
    X(EXT2, 0x83, CALLS, 0)            \
    X(EXT4, 0x84, CALLS, 0)            \
    X(PERSID, 0x50, CALLS, 0)          \
    X(BINPERSID, 0x51, CALLS, 0)       \
    X(NEXT_BUFFER, 0x97, CALLS, 0)     \
    X(READONLY_BUFFER, 0x98, CALLS, 0) \
    X(INT, 0x49, OLD, 0)               \
    X(LONG, 0x4c, OLD, 0)              \
    X(STRING, 0x53, OLD, 0)            \
    X(UNICODE, 0x56, OLD, 0)           \
    X(FLOAT, 0x46, OLD, 0)             \
    X(LIST, 0x6c, OLD, 0)              \
    X(DICT, 0x64, OLD, 0)              \
    X(POP, 0x30, OLD, 0)               \
    X(DUP, 0x32, OLD, 0)               \
    X(POP_MARK, 0x31, OLD, 0)          \
    X(GET, 0x67, OLD, 0)               \
    X(PUT, 0x70, OLD, 0)               \
    X(PROTO, 0x80, OLD, 0)

enum pickle_op {
#define X(name, byte, sort, bytes) PICKLE_OP_##name = byte,
    PICKLE_OPS(X)
#undef X
};

enum pickle_sort { PICKLE_UNKNOWN, PICKLE_READ, PICKLE_CALLS, PICKLE_OLD };

static const struct {
    const char *name; /* NULL: no opcode */
    uint8_t sort;     /* enum pickle_sort */
    uint8_t argument_bytes;
} pickle_ops[256] = {
#define X(name, byte, sort, bytes) [byte] = {#name, PICKLE_##sort, bytes},
    PICKLE_OPS(X)
#undef X
};

#endif
