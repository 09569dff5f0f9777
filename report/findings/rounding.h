/*
 * rounding.h: what allocators took at the peak beside the bytes that were asked for, by line: glibc's headers and steps
 * of 16 bytes, the pages of what it maps, PyTorch's steps of 512 bytes where a snapshot says what was asked for.
 */
#ifndef MEMPROF_FINDING_ROUNDING_H
#define MEMPROF_FINDING_ROUNDING_H

#include "rules.h"

#define ROUNDING_PERCENT    5      /* of the peak: less of a line is not said */
#define ROUNDING_TINY       64     /* bytes: such blocks are tiny, */
#define ROUNDING_TINY_COUNT 100000 /* and so many of a line are many */

struct rounding { /* of blocks that were live at the peak */
    const struct rule_line *line;
    int64_t site_id, site_bytes; /* of these the one that loses most */
    int64_t count, bytes, over_bytes;
    int64_t tiny_count, tiny_bytes, tiny_over_bytes;
};

/* Of the lines of r->device, those with most over_bytes first: count of them, which the caller frees. NULL: not known,
 * or no line has any. */
struct rounding *rounding_lines(struct rules *r, size_t *count);
/* What it comes to on r->device, of all lines; without events as if all blocks of a site were of one size. */
int64_t rounding_over(struct rules *r);
/* Whether its tiny blocks are a finding of their own. */
int rounding_is_tiny(const struct rules *r, const struct rounding *line);
/* 1: a line of Python, whose blocks are allocated otherwise where --python-allocators is not given. */
int rounding_is_python(struct rules *r, const struct rounding *line);

#endif
