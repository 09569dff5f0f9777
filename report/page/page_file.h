/*
 * page_file.h: a page as a file: a template with parts in their places, the style and the scripts that it takes, and
 * the place where it is put. What the pages are made of is theirs.
 */
#ifndef MEMPROF_PAGE_FILE_H
#define MEMPROF_PAGE_FILE_H

#include "../../common/buf.h"
#include "../../common/error.h"

#include <stdio.h>

enum page_template {
#define X(name) PAGE_##name,
#include "templates.def"
#undef X
    PAGE_TEMPLATE_COUNT
};

struct page_part {
    const char *name; /* "{{name}}" in the template */
    int (*write)(void *of, FILE *out);
};

struct page_form {
    enum page_template html;
    const char *what;                  /* it is, behind the title of the window */
    const enum page_template *scripts; /* in the order in which they are written */
    int script_count;
    const struct page_part *parts; /* beside those of every page: what page_file.c knows */
    int part_count;
};

/* For parts: writes and frees it. 0. */
int page_write_html(struct buf *b, FILE *out);
/* Writes a page; of is given to its parts. Returns 0 or -errno with err; that of a part, which has filled err then. */
int page_file_write(const struct page_form *form, void *of, FILE *out, struct error *err);

struct page_place {
    const char *path;             /* NULL: stdout */
    const char *const *originals; /* recordings that the page must not replace; ends with NULL */
    int open;                     /* show it with xdg-open once it is written */
};

/* Lets write fill the place and says on stdout where it is; an existing file is replaced whole or not at all. 0 or
 * -errno with err. */
int page_file_put(const struct page_place *place, int (*write)(void *of, FILE *out, struct error *err), void *of,
                  struct error *err);

#endif
