/*
 * live_at_end.h: what lines have live at the end (LINE_END_... of rules.h), and what that is: of which process, and
 * whether of a program that gives nothing back as it ends. For find_leaks.c.
 */
#ifndef MEMPROF_FINDING_LIVE_AT_END_H
#define MEMPROF_FINDING_LIVE_AT_END_H

#include "../../common/buf.h"
#include "rules.h"

/* Adds to the lines of all devices what is live at the end, once, but what `memprof leaks` counts apart. Returns 0 or
 * the error in r->err. */
int live_at_end_load(struct rules *r);

/* Whether r->device's program ends without giving back what it holds, as runtimes and compilers do. bytes: live at the
 * end, of a peak of so many. is_torn: it took itself down, as Python does. */
int keeps_its_heap(struct rules *r, int64_t bytes, int64_t peak_bytes, int is_torn);

/* The process of r->device that may have had most in memory at its end, of the program, or (is_other) of the others
 * that it ran. */
struct largest_process {
    int64_t process_id;                        /* of its last image that left something */
    int64_t bytes, there_bytes, process_count; /* of those that left something; 0: not known */
    int64_t weighs_bytes; /* the most that any of them had in memory of lines' LINE_END_BYTES, as far as is known */
    double once_part;     /* of what all left, that of those that lived at the same time */
    int64_t all_count;    /* of all processes, as the head of the report counts them */
    int64_t peak_bytes;   /* no less than its peak: its threads' own ones; 0: not known */
    int has_beside;       /* bytes are with what libraries keep for themselves: the events do not tell these apart */
    int is_torn;          /* an interpreter took itself down in it */
    const struct rule_line *line; /* that had most of bytes, */
    int64_t line_bytes, line_count;
    struct buf name;
};

/* has_beside: whether lines leave out anything. The caller frees name. */
void largest_process(struct rules *r, int has_beside, int is_other, struct largest_process *largest);

#endif
