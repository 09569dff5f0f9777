/*
 * page_raw.h: addresses, frames, stacks and sites as the database has them, whole, before the page chooses.
 */
#ifndef MEMPROF_PAGE_RAW_H
#define MEMPROF_PAGE_RAW_H

#include "page_data.h"

#define WALK_MAX 8192 /* frames of a stack; a longer one is a loop in a damaged file */

struct raw_address {
    int64_t id;
    int64_t module_id; /* 0: none */
    uint64_t offset;
    uint32_t first_frame, frame_count; /* innermost first */
};

struct raw_frame {
    int64_t function_id, file_id; /* 0: none */
    int32_t line;
    uint8_t language, is_inline;
};

struct raw_stack {
    int64_t id;
    int64_t parent_id; /* 0: none */
    uint32_t parent, address;
    uint32_t node; /* in the page, MAP_NONE: not there */
};

struct raw_site {
    int64_t id, line_id;
    uint32_t stack;
    int32_t line, module;
    uint16_t device;
    uint8_t kind;
    double score; /* the largest share that it has of anything shown */
    int64_t stats[STAT_SCANNED_END];
};

struct raw {
    struct raw_address *addresses;
    uint32_t address_count, address_capacity;
    struct raw_frame *frames;
    uint32_t frame_count, frame_capacity;
    struct raw_stack *stacks;
    uint32_t stack_count, stack_capacity;
    struct raw_site *sites;
    uint32_t site_count, site_capacity;
};

int page_raw_load(struct page *page, struct raw *raw); /* 0, or -errno with page->err */
void page_raw_free(struct raw *raw);

#endif
