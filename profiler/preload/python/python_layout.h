/*
 * python_layout.h: where CPython's structures have what we read, by version: from the headers
 * of 3.9.18, 3.10.13, 3.11.2 and 3.11.7, 3.12.1, and from what 3.13 and 3.14 publish about themselves. Offsets within a
 * second number of the version do not change but for the runtime's (tss), and what is read is checked before it is
 * believed (python.c).
 */
#ifndef MEMPROF_PYTHON_LAYOUT_H
#define MEMPROF_PYTHON_LAYOUT_H

#include "../unwind/rules.h"

#include <stdint.h>

#pragma GCC visibility push(hidden)

#define NOT_THERE  0xffffu
#define OWNED_BY_C 3u /* frame.owner from here on: no code's frame, but an evaluation's mark on the C stack */

struct python_layout {
    uint16_t minor;
    /* _PyRuntime */
    uint16_t tss; /* {int initialized; pthread_key_t key;}: the thread's state */
    uint16_t finalizing;
    uint16_t current, head, main; /* the state that holds the GIL, interpreters; 0: not needed */
    /* PyThreadState */
    uint16_t thread_id;
    uint16_t frame;  /* the frame, or in 3.11 and 3.12 the C frame that has it */
    uint16_t cframe; /* 3.10: the C frame */
    /* the C frame */
    uint16_t cframe_frame, cframe_previous;
    /* the frame */
    uint16_t code, instruction, previous, owner, is_entry, function;
    /* the function: its code, and the number that it gets when a call of it is specialized, no other one's and 0 again
     * when its code changes; 0: not told */
    uint16_t function_code, function_version;
    /* code */
    uint16_t filename, name, qualname, first_line, table, bytecode;
    uint16_t version; /* 0: it has none */
    /* objects */
    uint16_t ob_type, tp_name;
    uint16_t text_length, text_state, ascii_bytes, compact_more;
    uint16_t bytes_size, bytes_data;
};

/* Written when modules come and go, and by the first look at frames. */
struct python_state {
    uint64_t module_start;
    uint64_t runtime;              /* address of _PyRuntime */
    uint64_t eval_start, eval_end; /* of _PyEval_EvalFrameDefault */
    uint64_t run_start, run_end;   /* of Py_RunMain, and of Py_Exit: what they take down ends with the program */
    uint64_t exit_start, exit_end;
    uint64_t runtime_bytes;
    uint64_t arena_getter; /* PyObject_GetArenaAllocator; 0: the allocator is in the runtime */
    uint64_t arena_alloc;  /* the function that takes arenas; 0: none was taken yet */
    uint32_t may_go;       /* a dlclose may unload it */
    uint32_t closing;      /* dlcloses under way */
    uint32_t is_verified;  /* frames were found where the layout says */
    uint32_t failures, looks;
    uint32_t keeps_functions; /* a frame that is found holds its function: from 3.11.1 on */
    uint32_t key;             /* of the thread's state, + 1, where it is not in the runtime at l->tss; 0: it is */
    struct python_layout layout;
};
extern struct python_state python;

#define FAILURES_MOST 16u /* looks at frames that were not what the layout says, until none is taken any more */

/* Whether the kernel lets these bytes be read; a call for each page. */
int python_readable(uint64_t at, uint64_t bytes);
/* Whether the layout holds for what this thread runs; asked until one thread says yes. */
int python_verify(void);

/* An object or frame: not NULL, in user space, aligned. */
INLINE int is_object(uint64_t p)
{
    return ((p & 7) | p >> 47) == 0 && p >= 4096;
}

INLINE uint32_t half_at(uint64_t address)
{
    return *(const uint32_t *)address;
}

INLINE uint64_t this_thread(void)
{
    uint64_t id;
    __asm__("movq %%fs:16, %0" : "=r"(id));
    return id;
}

#pragma GCC visibility pop

#define OBJECTS(ascii, more)                                                                                           \
    .ob_type = 8, .tp_name = 24, .text_length = 16, .text_state = 32, .ascii_bytes = (ascii), .compact_more = (more),  \
    .bytes_size = 16, .bytes_data = 32

/* A paragraph for each version, to be compared with the one before. */
/* clang-format off */
static const struct python_layout python_layouts[] = {
    {.minor = 9, .tss = 584, .finalizing = 16, .current = 568, .head = 32, .main = 40, .thread_id = 176, .frame = 24,
     .cframe_frame = NOT_THERE, .code = 32, .instruction = 104, .previous = 24, .filename = 104, .name = 112,
     .first_line = 40, .table = 120, OBJECTS(48, 24)},
    {.minor = 10, .tss = 584, .finalizing = 16, .current = 568, .head = 32, .main = 40, .thread_id = 176, .frame = 24,
     .cframe = 48, .cframe_frame = NOT_THERE, .cframe_previous = 8, .code = 32, .instruction = 96, .previous = 24,
     .filename = 104, .name = 112, .first_line = 40, .table = 120, OBJECTS(48, 24)},
    {.minor = 11, .tss = 592, .finalizing = 24, .current = 576, .head = 40, .main = 48, .thread_id = 152, .frame = 56,
     .cframe_frame = 8, .cframe_previous = 16, .code = 32, .instruction = 56, .previous = 48, .owner = 69,
     .is_entry = 68, .function = 0, .function_code = 48, .function_version = 128, .filename = 112, .name = 120, .qualname = 128, .first_line = 72, .table = 136, .bytecode = 184,
     OBJECTS(48, 24)},
    {.minor = 12, .tss = 1544, .finalizing = 24, .thread_id = 136, .frame = 56, .cframe_frame = 0,
     .cframe_previous = 8, .code = 0, .instruction = 56, .previous = 8, .owner = 70, .filename = 112, .name = 120,
     .qualname = 128, .first_line = 68, .table = 136, .bytecode = 192, .version = 92, OBJECTS(40, 16)},
    {.minor = 13, .tss = 2160, .cframe_frame = NOT_THERE, .compact_more = 16}, /* the rest is published */
    {.minor = 14, .tss = 2160, .cframe_frame = NOT_THERE, .compact_more = 16},
};
/* clang-format on */

#endif
