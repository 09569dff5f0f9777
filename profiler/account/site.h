/*
 * site.h: the sites (allocating stack, device, kind): found by stack id, numbered from 1, and their rows.
 */
#ifndef MEMPROF_SITE_H
#define MEMPROF_SITE_H

#include "../../common/map.h"
#include "../../common/rows.h"
#include "../store/packer.h"
#include "ahead.h"
#include "tally.h"

#include <stddef.h>
#include <stdint.h>

#define SITE_PAGE_BITS 9
#define SITE_PAGE      (1u << SITE_PAGE_BITS)

/* Two lines of the cache for most events, three in all: there may be a million. */
struct site {
    _Alignas(64) uint64_t chunk_high_bytes; /* highest live bytes within the chunk */
    uint32_t next;                          /* site of the same stack; 0: none */
    uint16_t process_id;
    uint8_t device;
    uint8_t kind;
    struct tally tally;
    uint32_t chunk_id; /* the chunk that touched it last */
    uint32_t stack_id;
    uint32_t dirty; /* is among those to write */
};
_Static_assert(sizeof(struct site) == 192,
               "a site is three lines of the cache: what few sites have goes into struct tally_rare");

#define SITE_RARES 1023u
struct site_rares { /* of the sites that have any */
    struct site_rares *next;
    uint32_t used;
    struct tally_rare rare[SITE_RARES];
};

struct site_table {
    struct site **pages; /* of SITE_PAGE sites, never moved */
    uint32_t count;      /* ids 1..count */
    uint32_t page_capacity;
    int huge_is_slow;
    struct worker *worker;    /* NULL: no memory is asked for ahead */
    struct ahead next_slab;   /* of pages */
    struct site_rares *rares; /* the newest */
    uint32_t *by_stack;       /* newest site of a stack; 0: none */
    uint32_t stack_capacity;
    /* A bit an id: those that changed since they were written; those whose values at the peak a new peak changes. */
    uint64_t *dirty, *loose;
    uint32_t *writing; /* ids */
    uint32_t writing_capacity;
    struct rows rows;
    struct map kept;            /* by site: blocks that processes had left which took their interpreter down */
    struct packer *packer;      /* NULL: they are plain rows */
    uint32_t parts, part_sites; /* newer values that were written since all were: how often, and of how many sites */
};

static inline struct site *site_at(const struct site_table *t, uint32_t id)
{
    return &t->pages[id >> SITE_PAGE_BITS][id & (SITE_PAGE - 1)];
}

uint32_t site_add(struct site_table *t, uint32_t stack_id, uint16_t process_id, uint8_t device, uint8_t kind);

/* The site's id, created where it is new. */
static inline uint32_t site_find(struct site_table *t, uint32_t stack_id, uint16_t process_id, uint8_t device,
                                 uint8_t kind)
{
    if (__builtin_expect(stack_id < t->stack_capacity, 1))
        for (uint32_t id = t->by_stack[stack_id]; id;) {
            const struct site *s = site_at(t, id);
            if (__builtin_expect(s->kind == kind && s->device == device, 1))
                return id;
            id = s->next;
        }
    return site_add(t, stack_id, process_id, device, kind);
}

void site_mark_dirty(struct site_table *t, struct site *s, uint32_t id);

struct tally_rare *site_add_rare(struct site_table *t, struct site *s);

static inline struct tally_rare *site_rare(struct site_table *t, struct site *s)
{
    return s->tally.rare ? s->tally.rare : site_add_rare(t, s);
}

struct store;
/* Writes the sites that changed, and with peaks_moved those whose values at the peak did; the devices' and kinds' tops
 * follow. All levels must be sealed. last: nothing comes after that. */
void sites_write(struct site_table *t, struct store *store, struct device_account *const *devices,
                 unsigned device_count, int peaks_moved, int last);
/* All begin anew: the next writing is of all of them. */
void sites_all_anew(struct site_table *t);
void sites_close(struct site_table *t);

#endif
