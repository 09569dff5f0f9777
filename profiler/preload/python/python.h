/*
 * python.h: the Python frames of the calling thread, read from CPython's own structures: no Python API, no GIL, no
 * reference counts, no allocation. Frames are innermost first; those that one evaluation of the interpreter runs are a
 * group, and take the place of its native frame in the stack.
 */
#ifndef MEMPROF_PYTHON_H
#define MEMPROF_PYTHON_H

#include "../../wire.h"

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* 1: an interpreter is loaded. All that a program without one pays. */
extern uint32_t python_loaded;

/* The interpreter's word that is not 0 from where it begins to take itself down; NULL: none is known. */
extern const uint64_t *python_finalizing;
static inline int python_is_ending(void)
{
    const uint64_t *word = __atomic_load_n(&python_finalizing, __ATOMIC_RELAXED);
    return word && __atomic_load_n(word, __ATOMIC_RELAXED);
}
/* Whether this thread is the one that takes it down. */
int python_ends_here(void);
/* Whether the program ends with it, which is not so where some other program has embedded it. pcs: that thread's. */
int python_ends_program(const uint64_t *pcs, unsigned count);

/* Around a real dlclose, which may take the interpreter away from under the other threads. */
int python_before_dlclose(void);
void python_after_dlclose(int from_before);

/* What the last frames of a thread were, the outermost first; zeroed memory at first. Only this thread uses it. */
#define PYTHON_FRAMES WIRE_STACK_MAX
#define PYTHON_SEARCH 4 /* remembered frames that a frame is looked for among; outer codes that it may run */
struct python_link {    /* a frame's words that are looked at each time; one more leads to the link before */
    uint64_t frame;     /* 0: none */
    uint64_t instruction, code;
};
struct python_seen { /* what follows from the frame and all outside it */
    uint64_t print;  /* of its code; 0: it runs none */
    uint64_t sum;    /* hash of them */
    uint32_t frames; /* that run code */
    uint32_t codes;  /* that they run: the first so many */
};
struct python_contents { /* what a code object is told by from another one that got its memory; a cache line */
    uint64_t code;
    uint32_t kind; /* enum python_told_by */
    uint32_t first_line;
    union {
        struct {
            uint64_t name, file, table;
            uint64_t name_hash, table_length, table_begin;
        };
        struct {
            uint64_t version;         /* its own, or its function's, */
            uint64_t frame, function; /* which a frame that runs it has */
        };
    };
} __attribute__((aligned(64)));
enum python_told_by {
    PYTHON_BY_CONTENTS,
    PYTHON_BY_CONTENTS_AND_FILE, /* the name of whose file is not that of the code before */
    PYTHON_BY_FUNCTION,
    PYTHON_BY_VERSION,
};
struct python_file { /* the name of a code's file, as far as it is looked at */
    uint64_t length, end_at, end;
    uint32_t kind;
};
struct python_memory {
    uint32_t count;
    uint32_t pause;                                          /* walks without memory, before it is tried again */
    struct python_link links[PYTHON_SEARCH + PYTHON_FRAMES]; /* the first are none */
    struct python_seen seen[PYTHON_SEARCH + PYTHON_FRAMES];  /* of the same number */
    struct python_contents codes[PYTHON_FRAMES];
    struct python_file files[PYTHON_FRAMES];     /* of the codes */
    uint64_t prints[PYTHON_FRAMES];              /* of the codes */
    uint64_t steps[PYTHON_FRAMES];               /* innermost first */
    uint32_t ids[PYTHON_SEARCH + PYTHON_FRAMES]; /* the caller's, of the code that a link's frame runs; 0: none yet */
};

/* The hash of this thread's Python frames, `most` of them at most; 0: none. The hot path. m: NULL: nothing is
 * remembered; the hash is the same. */
uint64_t python_hash(struct python_memory *m, unsigned most);

struct python_frame {
    uint64_t print; /* of the code: equal for the same code, another one when its memory became another code */
    uint64_t code;
    uint64_t anchor; /* an address within the C frame of the evaluation; 0: the next frame is in the same one */
    uint32_t offset; /* of the instruction, as the interpreter counts; 0xffffffff: not begun */
    uint32_t id;     /* the caller's: a wire code id; PYTHON_NO_CODE: not to be shown; 0: none yet, and: */
    uint32_t *kept;  /* where the memory keeps it for the next stack; NULL: nowhere */
};
#define PYTHON_NO_CODE 0xffffffffu

/* The frames that python_hash has just seen with this memory. Returns how many; *is_cut: there are more. */
unsigned python_frames(struct python_memory *m, struct python_frame *frames, unsigned most, int *is_cut);
/* No id is known any more. */
void python_forget_ids(struct python_memory *m);

/* What names a code object, for its definition. Parts point into the interpreter's memory. */
struct python_text {
    const void *data;
    uint32_t kind; /* bytes a character: 1, 2 or 4 */
    uint32_t count;
};
struct python_code {
    uint32_t minor; /* of the interpreter's version: how to read the table */
    uint32_t first_line;
    struct python_text name, qualified_name, file, table;
};
/* 0: not a code object that names itself. */
int python_code_read(uint64_t code, struct python_code *out);

/* Whether an mmap with this return address and length is the interpreter's, for an arena of small objects. Its module
 * must be known already: after the stack was taken. */
struct cfi_work;
int python_takes_arena(uint64_t pc, uint64_t length, struct cfi_work *work);

#pragma GCC visibility pop

#endif
