/*
 * many.h: the report of several recordings: a row for each file and device, what they sum up to, and their common peak.
 */
#ifndef MEMPROF_TEXT_MANY_H
#define MEMPROF_TEXT_MANY_H

#include "../print/out.h"
#include "../query/many.h"

/* --sort of several files. */
enum many_sort {
#define X(id, name, text) MANY_SORT_##id,
#include "many_sort.def"
#undef X
    MANY_SORT_COUNT
};
extern const char *const many_sort_names[MANY_SORT_COUNT];
void many_sort_list(const struct report_out *out); /* the names, with what they sort by */

struct many_report {
    int sort;    /* enum many_sort; -1: by rank, or by peak where not all are shown */
    int64_t top; /* rows; 0: all; -1: the report's own default */
};

/* Of files that many_load has read. */
void many_print(struct many *many, const struct many_report *report, const struct report_out *out);

#endif
