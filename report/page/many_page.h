/*
 * many_page.h: the page of several recordings: a small timeline of each on one axis, a table by file, and the lines of
 * the one that is chosen. One static HTML file, as the report's page is (html.h).
 */
#ifndef MEMPROF_MANY_PAGE_H
#define MEMPROF_MANY_PAGE_H

#include "../query/many.h"

struct many_page_options {
    const char *page_path; /* NULL: many.html beside the first recording */
    int to_stdout;         /* page_path and open are not looked at */
    int open;              /* show it with xdg-open once it is written */
};

/* How many lines of each recording and device the page shows: for many_options.lines. */
int many_page_lines(int files);

/* Of files that many_load has read. Writes the page and says on stdout where it is; an existing one is replaced whole
 * or not at all. Returns 0 or -errno with err. */
int many_page_write(struct many *many, const struct many_page_options *options, struct error *err);

#endif
