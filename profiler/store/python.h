/*
 * python.h: the code objects that one process has defined, and what a position in one of them is called: a function's
 * qualified name, file, line and column, as a named address.
 */
#ifndef MEMPROF_PYTHON_H
#define MEMPROF_PYTHON_H

#include "named.h"

#include <stddef.h>
#include <stdint.h>

struct python;

/* pid: whose current directory completes relative file names; 0: nobody's. */
struct python *python_open(struct named *named, int pid);
void python_close(struct python *python);

/* A part of a definition (WIRE_CODE): `count` words at word `before` of `total`. Parts come in order; one that is there
 * already changes nothing. 0, or -EINVAL for what no honest program sends. */
int python_define(struct python *python, uint32_t id, uint32_t before, uint32_t total, const uint64_t *words,
                  size_t count);

/* The address of a WIRE_PYTHON_WORD. */
uint32_t python_address(struct python *python, uint64_t word);

struct python_position {
    uint32_t line;   /* 0: the instruction has none */
    uint32_t column; /* from 1; 0: not known */
};
/* Where the instruction at an offset is, by the line table of Python 3.minor. */
struct python_position python_position(unsigned minor, uint32_t first_line, const uint8_t *table, size_t bytes,
                                       uint32_t offset);

#endif
