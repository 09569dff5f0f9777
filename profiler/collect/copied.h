/*
 * copied.h: pages that processes have from before a fork, and copy when they write to them. Their resident bytes are
 * the same before and after; what tells is that they took faults and did not grow.
 */
#ifndef MEMPROF_COPIED_H
#define MEMPROF_COPIED_H

#include "process.h"

#include <stdint.h>

#define COPIED_LEAST (256u << 10) /* less is not looked for */

struct copied {          /* all zero: nothing was seen yet */
    uint64_t next_ns;    /* when faults may be asked for again; monotonic */
    uint64_t cost_ns;    /* of the processor, so far */
    uint64_t bytes;      /* of all processes: what each may have copied since its last look; */
    unsigned rest_count; /* so many samples before it said the same */
};

/* Asks the processes that may share pages for their faults, where it is time. Of each, copying.bytes is then what it
 * may have copied since its last look. */
void copied_see(struct copied *c, const struct processes *processes);
/* It was looked at, and had so much that no other process has. */
void copied_looked(struct process *p, uint64_t own_bytes);

#endif
