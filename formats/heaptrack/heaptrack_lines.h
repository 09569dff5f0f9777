/* heaptrack_lines.h: the lines of a file, and the numbers in one. Of heaptrack*.c alone. */
#ifndef MEMPROF_HEAPTRACK_LINES_H
#define MEMPROF_HEAPTRACK_LINES_H

#include "../../common/unpack.h"

#include <stddef.h>
#include <stdint.h>

#define LINES_MOST (16u << 20) /* bytes of a line; the rest of a longer one is dropped */

struct heaptrack_lines;
struct heaptrack_lines *lines_open(struct unpack *source);
void lines_close(struct heaptrack_lines *l); /* NULL does nothing */

struct line { /* the rest of it; without its newline */
    const char *at, *end;
};

/* The next one, valid until the next call. 1; 0 at the end; -errno. is_cut: it was longer. */
int lines_next(struct heaptrack_lines *l, struct line *line, int *is_cut);

/* Takes a number and the space after it. 0: there is none, or it has more than 64 bits. */
int line_hex(struct line *line, uint64_t *value);
int line_hex32(struct line *line, uint32_t *value);

#endif
