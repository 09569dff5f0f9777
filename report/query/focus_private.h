/*
 * focus_private.h: what the files of focus.h share: the wanted lines and the sites below them (focus.c), and what the
 * window's events did to these (focus_events.c).
 */
#ifndef MEMPROF_FOCUS_PRIVATE_H
#define MEMPROF_FOCUS_PRIVATE_H

#include "../../common/map.h"
#include "focus.h"
#include "lens_private.h"

enum { FOCUS_LEVELS = 64 }; /* devices, and kinds of them */

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

struct focus_change { /* of a site, since the window began */
    uint32_t site;
    int64_t event, bytes, count;
};

struct focus_work {
    struct lens lens;
    const struct focus *focus;
    uint32_t *line_of; /* by address_id: index of the wanted line in lens.tree; 0: not wanted */
    uint32_t address_limit, wanted_count;
    struct map line_at;            /* (function_id, file and line) -> index of the line */
    uint32_t *parents, *addresses; /* by stack_id, to free; or the packed columns' */
    const struct packed_values *packed[2];
    struct packed *shared; /* held */
    uint8_t *is_below;     /* by stack_id: a wanted line is on the stack */
    uint32_t stack_limit;
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

/* What the window's events did to the sites, whose stats get it. -EAGAIN: events are not kept, or too many. */
int focus_events(struct focus_work *w, struct error *err);

#endif
