/*
 * kind.h: the kinds of memory within a device, in the order of their numbers in event chunks; and 'all', their sum.
 */
#ifndef MEMPROF_KIND_H
#define MEMPROF_KIND_H

enum kind {
#define X(name, text) KIND_##name,
#include "kind.def"
#undef X
    KIND_COUNT,
    KIND_all = KIND_COUNT
};

/* Rows of the table segment that each kind of a device gets: with as many, some of its segments may have none. */
enum { SEGMENT_ROWS_MAX = 65536 };

const char *kind_name(unsigned kind); /* "heap", ..., "all"; "?" outside */

#endif
