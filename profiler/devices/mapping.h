/*
 * mapping.h: the memory that a process maps itself, as blocks of kind 'map'. Turns mmap, munmap, mremap, mprotect and
 * the program's moves of its break into births and deaths of blocks, segments where an allocator asked.
 *
 * What counts is accessible memory without a place on a disk: anonymous, or shared by a memfd, a tmpfs or shmat:
 * - a map is a block; one made with PROT_NONE is address space, until mprotect makes some of it accessible: that part
 * is a block, born at the mprotect's stack. Made inaccessible again, it leaves.
 * - another map of a file is not counted, but ends what it covers, as every map does.
 * - a block that loses a part (munmap, a map over it, mprotect) is one block still, with fewer bytes, until its last
 *   part is gone: EVENT_SPLIT so that the part begins and ends where what leaves does, then EVENT_PART_FREE.
 * - mremap is a realloc; of a part of a block, the block loses it, and it is a block at its new place. With
 *   MREMAP_DONTUNMAP the old block stays.
 * - each growth of the break is a block; a shrinking break ends or cuts the blocks that it passes.
 * - an arena that Python takes for its small objects is a segment of kind 'arena': what is in it nobody sees.
 * - shmdt ends what is left of what shmat mapped at its address.
 * - unmapping what is not known says nothing.
 */
#ifndef MEMPROF_MAPPING_H
#define MEMPROF_MAPPING_H

#include "../account/event.h"

#include <stddef.h>
#include <stdint.h>

struct mapping; /* of one process */

struct mapping_op {
    unsigned op;    /* WIRE_MAP, WIRE_UNMAP, WIRE_REMAP, WIRE_PROTECT, WIRE_BREAK */
    uint32_t flags; /* WIRE_MAP_* */
    uint32_t stack_id;
    uint64_t address;     /* BREAK: the new break */
    uint64_t length;      /* bytes, rounded up to pages here; REMAP: the old length; BREAK: the old break */
    uint64_t new_address; /* REMAP */
    uint64_t new_length;
};

struct mapping *mapping_open(void);
void mapping_close(struct mapping *m);
/* Calls emit for each event: op, address, size, kind, and the stack of allocations are set; the rest is the caller's to
 * fill. Returns 0, or -EINVAL for a range that no process can have (nothing was done). */
int mapping_apply(struct mapping *m, const struct mapping_op *op, void (*emit)(void *arg, const struct event *event),
                  void *arg);
/* The start of the block that holds the address; 0: none. */
uint64_t mapping_block_at(struct mapping *m, uint64_t address);

#endif
