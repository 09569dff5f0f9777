/*
 * python_join.h: native frames and Python's in one stack: those that one evaluation of the interpreter runs take the
 * place of its native frame.
 */
#ifndef MEMPROF_PYTHON_JOIN_H
#define MEMPROF_PYTHON_JOIN_H

#include "python.h"

#pragma GCC visibility push(hidden)

/* Innermost first. sps: the stack pointer in each native frame. */
struct python_parts {
    const uint64_t *pcs, *sps;
    unsigned native_count;
    const struct python_frame *frames;
    unsigned count;
};

/* What a thread's last joined stack was made of, outermost first, so that the next one is joined as far as it differs.
 * This thread only; a signal handler may leave a change of it by longjmp. */
struct python_seam {
    volatile uint32_t native_count; /* 0: nothing is known, or it is being changed */
    uint32_t count;
    struct {
        uint64_t pc, sp;
        uint32_t frames; /* of Python's that no frame inside this one took */
        uint32_t words;  /* of the joined stack, from here outwards */
    } native[WIRE_STACK_MAX];
    struct {
        uint64_t anchor;
        uint32_t id, offset;
    } frames[WIRE_STACK_MAX];
};

/* Joins them. Returns the number of words in out, innermost first, `most` at most (then *is_cut). */
unsigned python_join(const struct python_parts *parts, uint64_t *out, unsigned most, int *is_cut);

/* The same, of which out holds only what lies inside the *known outermost words: they are the last stack's. */
unsigned python_join_next(struct python_seam *last, const struct python_parts *parts, uint64_t *out, unsigned most,
                          unsigned *known, int *is_cut);

#pragma GCC visibility pop

#endif
