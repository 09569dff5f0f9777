/*
 * resident.h: which bytes of the live blocks are on present pages. The pages come from outside (../collect); here they
 * are given to blocks, so that each byte of a page is somebody's: a block's, or one of the rests of resident_rest.def.
 */
#ifndef MEMPROF_RESIDENT_H
#define MEMPROF_RESIDENT_H

#include <stddef.h>
#include <stdint.h>

#define RESIDENT_PAGE 4096u

enum resident_flag {
    RESIDENT_PRESENT = 1,
    RESIDENT_SWAPPED = 2,
    RESIDENT_SHARED = 4,
    RESIDENT_HUGE = 8,
    RESIDENT_FILE = 16 /* of files and shared memory */
};

enum resident_rest {
#define X(name, text) REST_##name,
#include "../../common/resident_rest.def"
#undef X
    REST_COUNT
};

struct resident_range { /* of pages, ascending and disjoint; some may be neither present nor swapped */
    uint64_t start, end;
    size_t first; /* index of its first page */
};

struct resident_map { /* a mapping of the process, ascending and disjoint */
    uint64_t start, end;
    uint8_t rest;                   /* enum resident_rest: what its pages are without a block */
    uint8_t is_shared;              /* others, if there are any, may have written pages that this process lacks */
    uint64_t device, inode, offset; /* of its file; inode 0: none */
};

struct resident_own { /* what the recorder has in the process, ascending and disjoint */
    uint64_t start, end;
};

struct resident_pages {
    struct resident_range *ranges;
    size_t range_count, range_capacity;
    uint8_t *flags; /* of each page: enum resident_flag */
    size_t page_count, page_capacity;
    struct resident_map *maps;
    size_t map_count, map_capacity;
    const struct resident_own *own; /* private memory that is no program's; NULL: not known. Borrowed */
    size_t own_count;
    const struct resident_map *begun; /* a fork's child: the mappings that it began with; NULL: not known. Borrowed */
    size_t begun_count;
    struct seen *seen;   /* what the round has seen before of other processes; NULL: not asked for. Borrowed */
    uint32_t family;     /* that the process came from by forks alone: what these share lies at the same addresses */
    uint64_t zero_pages; /* of the kernel's zero page: not among them */
    unsigned mallocs;    /* bits by pages_mallocs: allocators whose libraries are mapped */
    struct seen
        *touched;  /* pages of shared memory that any look saw, of whatever process; NULL: not asked for. Borrowed */
    int is_only;   /* no other process was recorded: nobody else has pages of shared memory */
    int has_kinds; /* huge and zero pages are told apart */
};

struct resident_sum {
    uint64_t resident_bytes, shared_bytes, huge_bytes, swapped_bytes;
};

struct resident_site {
    uint32_t site;
    uint64_t live_count, live_bytes, untouched_bytes;
    struct resident_sum sum;
};

struct resident_shared { /* a block in shared memory, of whose pages its process lacks some that another one may have */
    uint32_t site, object; /* object: in pages->touched */
    uint64_t offset, size; /* in the object */
};

struct resident_fork {     /* the present pages of a fork's child; the sum is all of them */
    uint64_t shared_bytes; /* inherited, and another process has them, too */
    uint64_t copied_bytes; /* inherited, and its alone since one of the two wrote to them */
    uint64_t own_bytes;    /* of its own blocks, and of mappings that came after the fork */
    uint64_t file_bytes;   /* of files and shared memory */
};

struct resident_result {
    struct resident_site *sites; /* that have live blocks, by number; the caller frees */
    uint32_t site_count;
    struct resident_shared *shared; /* without untouched_bytes so far (resident_untouched); the caller frees */
    uint32_t shared_count, shared_capacity;
    struct resident_sum rest[REST_COUNT], all;
    uint64_t again_bytes;      /* present, and so in a process that the round saw before: where that was asked for */
    struct resident_fork fork; /* where the mappings that it began with are known */
};

struct account;
struct resident_gone;

/* The blocks that are live now, and those that went while the pages were read (NULL: none); of a process without an
 * event so far there are none. */
void resident_blocks(const struct account *a, uint16_t process_id, const struct resident_pages *pages,
                     const struct resident_gone *gone, struct resident_result *result);
/* The bytes of the block on pages that no look has seen. */
uint64_t resident_untouched(const struct resident_shared *block, const struct seen *touched);

#endif
