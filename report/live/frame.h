/*
 * frame.h: what of a recording that is looked at goes on a terminal: devices with bars, active bytes of late, the rows.
 * And the same once, for a pipe or for programs.
 */
#ifndef MEMPROF_LIVE_FRAME_H
#define MEMPROF_LIVE_FRAME_H

#include "../../common/buf.h"
#include "../print/out.h"
#include "running.h"

struct frame {
    struct report_out out; /* width: of the terminal; file: ignored */
    int height;
    struct running_view view;
    size_t first; /* row that is shown first; frame_draw lowers it where there are not so many */
    int is_paused, has_help;
    const char *message; /* NULL: none */
    size_t page;         /* frame_draw: rows that fitted */
};

/* Appends at most height lines, none wider than the terminal, with a newline between two. */
void frame_draw(const struct running *live, struct frame *frame, struct buf *out);
/* Everything once; top: rows, 0: all. */
void frame_once(const struct running *live, const struct running_view *view, const char *file, int64_t top,
                const struct report_out *out);

#endif
