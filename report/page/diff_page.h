/*
 * diff_page.h: the page of two recordings: their timelines over each other, the rows that differ, and a flame graph of
 * both. One static HTML file, as the report's page is (html.h).
 */
#ifndef MEMPROF_DIFF_PAGE_H
#define MEMPROF_DIFF_PAGE_H

#include "../query/diff.h"

struct diff_page_options {
    const char *database_paths[DIFF_SIDES]; /* as the user named them */
    const char *page_path;                  /* NULL: beside the new one, out.db becomes out-diff.html */
    int to_stdout;                          /* page_path and open are not looked at */
    int open;                               /* show it with xdg-open once it is written */
    const char *const *skips;               /* functions that the lens of both skips, */
    int skip_count;
    const char *device; /* that it opens on; NULL: the one whose peak changed most */
};

/* Writes the page and says on stdout where it is; an existing one is replaced whole or not at all. Returns 0 or -errno
 * with err; -EINVAL: there is no such device. */
int diff_page_write(sqlite3 *const dbs[DIFF_SIDES], const struct diff_page_options *options, struct error *err);

#endif
