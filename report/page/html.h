/*
 * html.h: the page: one static HTML file drawn from the database alone, with everything that it needs in itself.
 */
#ifndef MEMPROF_HTML_H
#define MEMPROF_HTML_H

#include "../../common/error.h"
#include "../query/device.h"

#include <sqlite3.h>
#include <stdint.h>

struct html_options {
    const char *database_path;
    const char *page_path;    /* NULL: beside the database, out.db becomes out.html */
    int to_stdout;            /* write the page to stdout; page_path and open are not looked at */
    int with_source;          /* embed source text: from the database, else from files unchanged since the run */
    const char *const *skips; /* functions that the lens of db skips, */
    int skip_count;
    int has_window;          /* the page opens with this range chosen, */
    int64_t from_ns, to_ns;  /* before to_ns; INT64_MAX: the end */
    const char *window_name; /* which is called so; NULL: it is two times */
    const char *device; /* the page opens with it, or with the one of its type that held most; NULL: its own choice */
    int open;           /* show it with xdg-open once it is written */
};

/* Writes the page and says on stdout where it is; an existing one is replaced whole or not at all. Returns 0 or -errno
 * with err. */
int html_write(sqlite3 *db, const struct html_options *options, struct error *err);

#endif
