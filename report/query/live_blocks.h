/*
 * live_blocks.h: the blocks that are live at an instant, with their addresses, which are in the events alone: all of
 * them are replayed up to it.
 */
#ifndef MEMPROF_LIVE_BLOCKS_H
#define MEMPROF_LIVE_BLOCKS_H

#include "../../common/error.h"
#include "blocks.h"

#include <sqlite3.h>

enum { INSTANT_DEVICES = 256 };

/* The replay ends before this event of each device, and after this time. */
struct instant {
    int64_t end_event[INSTANT_DEVICES], end_ns[INSTANT_DEVICES]; /* INT64_MAX: each process's end */
    /* The end of a process whose interpreter (Python) took itself down is where that began, as in what was live at the
     * end (table teardown): what that freed, it would have kept. */
    int is_before_teardown;
};

void instant_at(struct instant *at, int64_t time_ns); /* INT64_MAX: the end, whatever was taken down before it */
void instant_end(struct instant *at);                 /* the end, before teardowns */
/* Each device's peak of active bytes; the end of one without. */
int instant_peak(sqlite3 *db, struct instant *at, struct error *err);

/* All but the program's own maps, sorted by space (process_id << 16 | device << 8 | kind) without its kind, then by
 * address; blocks->slots is an array of blocks->count, the caller's to free in any case. -EBADMSG or -ENODATA where
 * events are missing: what needs them is named. inherited: what forked children have of their parents, inherited_close
 * in any case; NULL: it is not asked for. */
struct inherited;
int live_blocks_load(sqlite3 *db, const struct instant *at, const char *what, struct blocks *blocks,
                     struct inherited **inherited, struct error *err);
/* The first block that is not before an address of a process and device (process_id << 8 | device). */
size_t live_blocks_find(const struct blocks *blocks, uint32_t place, uint64_t address);

#endif
