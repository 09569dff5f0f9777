/*
 * focus_private.h: what the files of focus.h share: the wanted lines and the sites below them (focus.c), and what the
 * window's events did to these (focus_events.c).
 */
#ifndef MEMPROF_FOCUS_PRIVATE_H
#define MEMPROF_FOCUS_PRIVATE_H

#include "../../common/map.h"
#include "focus.h"
#include "lens_private.h"

enum {
    FOCUS_LEVELS = 64,      /* devices, and kinds of them */
    FOCUS_IDS_MAX = 1 << 28 /* of what is an index here */
};

struct focus_site {
    int64_t id;
    uint32_t stack_id;
    uint8_t levels[2];
    uint32_t seen; /* ranges that had been entered when it changed last */
    int64_t start_bytes, start_count, bytes, count, own_peak_bytes;
    struct stat_row stats;
};

struct focus_level { /* of a device (KIND_all), or of a kind of it: changes since the window began */
    uint8_t device, kind;
    uint8_t has_peak;
    int64_t active_bytes, peak_bytes, stop_event; /* the peak is before stop_event */
};

struct focus_levels { /* where the level of a device and that of a kind there are */
    int is_known;
    int64_t device, kind;
    uint8_t place[2];
};

struct focus_change { /* of a site, since the window began */
    uint32_t site;
    int64_t event, bytes, count;
};

/* The stacks with a wanted line on them. A bit for each stack says whether it is one, so that of millions only those
 * few are kept. */
struct focus_stacks {
    uint64_t *bits;                /* of stacks below limit */
    uint32_t *before;              /* by word of bits: how many there are before it */
    uint32_t *parents, *addresses; /* of them, in the order of their ids */
    uint32_t count, room[2], limit;
};

static inline int focus_is_below(const struct focus_stacks *s, uint64_t stack)
{
    return stack < s->limit && (s->bits[stack / 64] >> stack % 64 & 1);
}

/* Its place in parents and addresses. */
static inline uint32_t focus_stack_place(const struct focus_stacks *s, uint32_t stack)
{
    const uint64_t before = s->bits[stack / 64] & ((UINT64_C(1) << stack % 64) - 1);
    return s->before[stack / 64] + (uint32_t)__builtin_popcountll(before);
}

struct focus_work {
    struct lens lens;
    const struct focus *focus;
    uint32_t *line_of; /* by address_id: index of the wanted line in lens.tree; 0: not wanted */
    uint32_t address_limit, wanted_count, wanted_low, wanted_high; /* low, high: of the wanted addresses */
    struct map line_at; /* (function_id, file and line) -> index of the line */
    struct focus_stacks stacks;
    uint32_t *site_of; /* by site_id: index in sites + 1; 0: not below a wanted line */
    uint8_t (*levels_of)[2];
    uint32_t site_limit;
    struct focus_site *sites;
    uint32_t site_count, site_capacity;
    struct focus_level levels[FOCUS_LEVELS];
    int level_count, is_inside;
    size_t range; /* that is open, or the next one */
    uint32_t entered;
    struct focus_change *changes;
    size_t change_count, change_capacity;
};

/* focus_stacks.c: those below the wanted lines. -EAGAIN: not as a recording has them. */
int focus_stacks_load(struct focus_work *w, struct error *err);
void focus_stacks_free(struct focus_stacks *s);
/* What the window's events did to the sites, whose stats get it. -EAGAIN: events are not kept, or too many. */
int focus_events(struct focus_work *w, struct error *err);

#endif
