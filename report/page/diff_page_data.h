/* diff_page_data.h: what the page of two recordings is made of, between reading them and writing the file. */
#ifndef MEMPROF_DIFF_PAGE_DATA_H
#define MEMPROF_DIFF_PAGE_DATA_H

#include "../query/diff_tree.h"
#include "diff_page.h"
#include "page_data.h"

struct diff_page {
    sqlite3 *const *dbs;
    const struct diff_page_options *options;
    struct error *err;
    struct page sides[DIFF_SIDES]; /* their devices, for what is written as the report's page has it */
    struct diff_tree tree;
    uint32_t open_device; /* of the tree */
};

/* Each writes one JSON value. 0 or -errno with err. */
int diff_page_write_rows(void *of, struct page_pack *pack);
int diff_page_write_flame(void *of, struct page_pack *pack);

/* The device of a name; MAP_NONE: neither recording has it, or it is one of too many. */
uint32_t diff_page_device(const struct diff_page *d, const char *name);

#endif
