/*
 * report.h: the reports on a terminal. Each reads an open database (db_open_read, views_own) and writes to out; 0 or
 * -errno with err.
 */
#ifndef MEMPROF_REPORT_H
#define MEMPROF_REPORT_H

#include "../../common/error.h"
#include "../print/out.h"
#include "../query/lens.h"
#include "../query/rows.h"

#include <sqlite3.h>

/* Rows of --json and --csv by stack where --top says nothing: each has all its frames. */
enum { REPORT_STACK_ROWS = 1000 };

enum report_at { REPORT_AT_ALL, REPORT_AT_PEAK, REPORT_AT_END, REPORT_AT_TIME };

enum report_heaps { REPORT_HEAPS_BESIDE, REPORT_HEAPS_BY_LINE, REPORT_HEAPS_EACH };

enum report_names { REPORT_NAMES_ALL, REPORT_NAMES_BY_NAME, REPORT_NAMES_BY_CATEGORY };

struct report_options {
    const char *file;          /* as the user named it, for hints; NULL: the default name */
    const char *device, *kind; /* NULL: all */
    int64_t top;               /* rows; 0: all; -1: the report's own default */
    int64_t frames;            /* of a stack; 0: all */
    enum row_key by;           /* report_by and leaks_report */
    int is_by_size;            /* report_sizes instead */
    enum report_heaps heaps;   /* report_segments: these alone */
    int with_names;            /* report_names: */
    enum report_names names;
    int with_plan; /* the same: what a copy of what is named would take */
    int inclusive;
    int sort; /* stat_id; -1: the report's own */
    enum report_at at;
    int64_t at_ns;
    int64_t callers;                 /* report_summary: under a line of the peak; -1: the report's own */
    const struct lens_options *lens; /* that was applied; NULL: none */
};

static inline enum tree_language report_language(const struct report_options *options)
{
    return options->lens ? options->lens->language : TREE_BOTH;
}

/* One process, or a window of the run: what is about the whole recording does not go with it. */
static inline int report_is_part(const struct report_options *options)
{
    return options->lens && (options->lens->pid || options->lens->window);
}
/* The window that is shown; NULL: the whole run. */
static inline const struct lens_window *report_window(const struct report_options *options)
{
    return options->lens ? options->lens->window : NULL;
}

int report_summary(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err);
int report_by(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err);

/* The histogram of the sizes requested; of all processes together. */
int report_sizes(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err);
/* Who frees, and whose blocks (run --free-stacks). */
int report_frees(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err);
int report_transfers(sqlite3 *db, const struct report_options *options, const struct report_out *out,
                     struct error *err);
/* The segments that are live at options->at (the end, or each device's peak): how full each is, its largest hole, and
 * the line of the block that pins it. */
int report_segments(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err);

/* What programs call the blocks that are live at options->at (the end, or each device's peak), what shares a block, and
 * by line what has no name. */
int report_names(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err);

/* What the bands of a policy had done, and what that gave back. */
int report_policy(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err);

/* Whether rows have to say which device they are of. */
int report_has_devices(sqlite3 *db, const char *device);

#endif
