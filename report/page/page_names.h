/* page_names.h: names that the page makes, for what has none in the database. */
#ifndef MEMPROF_PAGE_NAMES_H
#define MEMPROF_PAGE_NAMES_H

#include "page_data.h"

enum { PAGE_MODULE_ID = 1, PAGE_MODULE_PATH = 2, PAGE_MODULE_KEY = 3 }; /* what a key of module_of is */
int32_t page_module(struct page *page, const char *path, uint64_t key, unsigned space);
int32_t page_unknown_function(struct page *page, int32_t module, uint64_t offset); /* "libx.so+0x10" */
int32_t page_named_function(struct page *page, const char *name, unsigned number);

#endif
