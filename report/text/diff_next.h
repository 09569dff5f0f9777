/*
 * diff_next.h: the commands that `memprof diff` offers below its table.
 */
#ifndef MEMPROF_TEXT_DIFF_NEXT_H
#define MEMPROF_TEXT_DIFF_NEXT_H

#include "diff.h"

/* Of two recordings that differ; nothing where a side has several. */
void diff_next_print(const struct diff_report *report, const struct diff *diff, const struct report_out *out);

#endif
