/*
 * terminal.h: a terminal that is drawn on: keys one by one, the alternate screen, and all of it given back however this
 * process ends, but by SIGKILL. One at a time.
 */
#ifndef MEMPROF_LIVE_TERMINAL_H
#define MEMPROF_LIVE_TERMINAL_H

#include "../../common/buf.h"
#include "../../common/error.h"

/* What a wait gives: a key's character, or one of these. */
enum terminal_key {
    TERMINAL_NOTHING = 0, /* the time is over */
    TERMINAL_UP = 256,
    TERMINAL_DOWN,
    TERMINAL_PAGE_UP,
    TERMINAL_PAGE_DOWN,
    TERMINAL_HOME,
    TERMINAL_END,
    TERMINAL_OTHER,  /* a key that is none of these */
    TERMINAL_REDRAW, /* another size, or back from being stopped */
    TERMINAL_READY,  /* the descriptor that was waited for */
    TERMINAL_QUIT,   /* SIGINT */
    TERMINAL_CLOSED  /* nobody is there any more */
};

/* Standard output, and for keys standard input or the terminal that controls this process. 0: there is none, or it is
 * too dumb to be drawn on. */
int terminal_is_there(void);
/* Begins to draw. -errno with err. */
int terminal_open(struct error *err);
void terminal_close(void);
void terminal_size(int *width, int *height);
/* Lines from the top. 0, or -1: it is gone. */
int terminal_show(const struct buf *lines);
/* Waits for a key, or until fd (-1: none) can be read, but no longer than timeout_ns (negative: as long as it takes). A
 * signal that ends this process does so here, after the terminal was given back. */
int terminal_wait(int fd, long long timeout_ns);

#endif
