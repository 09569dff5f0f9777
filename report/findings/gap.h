/*
 * gap.h: reserved memory of a device that was never in use.
 */
#ifndef MEMPROF_FINDING_GAP_H
#define MEMPROF_FINDING_GAP_H

#include "rules.h"

struct gap {
    int64_t reserved, idle;
    int64_t arenas; /* beside these: of Python's, in which nobody sees the objects */
    int64_t over;   /* of the others: what allocators take beside the bytes that were asked for, which is no hole */
    int64_t absent; /* of idle: was on no page, and so is no memory that is lost; 0: little, or not known */
    int is_looked;  /* absent is by looks at present pages; else by RSS: what of it is in blocks is not known */
    int is_mapped;  /* by another allocator than the C library's: it takes addresses at once, memory when touched */
};

/* Whether there is one: at least a quarter above what was ever in use, and enough to care. */
int gap_of(struct rules *r, struct gap *gap);

#endif
