/*
 * survivors.h: what was allocated in a window and still live at its end, by site: what the window leaves behind.
 */
#ifndef MEMPROF_SURVIVORS_H
#define MEMPROF_SURVIVORS_H

#include "window.h"

/* Fills the temporary table temp.survivor(site_id, live_bytes, live_count), sites with nothing left out, from what
 * replay says of the window, and from the events of the sites that this leaves open. images NULL: all processes. Blocks
 * that their process still had when it ended in the window count. */
int survivors_load(sqlite3 *db, const struct replay_images *images, const struct window_range *ranges, size_t count,
                   const struct replay *replay, struct error *err);

#endif
