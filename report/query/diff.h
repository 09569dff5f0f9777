/*
 * diff.h: what changed between recordings: the rows of one key (by line, function, ...) of an old side and a new one,
 * each of one or more recordings, matched through renamed paths, shifted lines and compilers' clones. docs/diff.md says
 * what counts as the same row; what is not certain stays a new row and a row that is gone.
 */
#ifndef MEMPROF_DIFF_H
#define MEMPROF_DIFF_H

#include "../../common/error.h"
#include "rows.h"

#include <sqlite3.h>

enum { DIFF_OLD, DIFF_NEW, DIFF_SIDES };

enum diff_match {
    DIFF_SAME,
    DIFF_MOVED,   /* the line has another number */
    DIFF_RENAMED, /* the file, or the module, has another path */
    DIFF_CLONE,   /* the compiler made another clone of the function */
    DIFF_MODULE,  /* code without symbols in a module that was built anew: all of it is one row */
    DIFF_ADDED,   /* on the new side alone */
    DIFF_GONE     /* on the old side alone */
};

extern const char *const diff_match_names[]; /* "same", ... */

struct diff_item {  /* what a row is on one side; strings are owned by the diff, NULL: unknown */
    char *function; /* as the recording has it */
    char *name;     /* without what compilers add to clones */
    char *file, *module, *op, *phase;
    char *caller; /* the nearest function with a name, of code that has none */
    int other_callers;
    int64_t line, offset, stack_id, key_id;
    int64_t declared, file_id; /* for matching: the function's line, of the recording */
    int64_t alloc_count;       /* over all devices, of the recording */
    const void *key;           /* equal where items are; borrowed */
    size_t key_length;
    uint32_t function_number; /* by line and by function: functions of the side */
    uint32_t recording;       /* of its side: that the ids are of */
    uint32_t first_value;     /* of the side: on one of the devices */
    uint32_t other;           /* of the other side: its number + 1; 0: none */
    enum diff_match match;    /* of its function or file: whether a line moved, its numbers tell */
    int is_rest;              /* what is in no row: by op, what no operator allocated */
};

struct diff_range {
    int64_t least, most;
};

struct diff_row {
    const char *device;
    const struct diff_item *item[DIFF_SIDES]; /* NULL: not there */
    struct stat_row stats[DIFF_SIDES];        /* the medians */
    struct diff_range range[DIFF_SIDES];      /* of the statistic that is sorted by */
    enum diff_match match;
    int is_by_number; /* a closure of a program that was built anew: its number may be another one's now */
    int is_noise;  /* of several recordings of a side: the ranges overlap; of estimates: they differ within the error */
    int is_hidden; /* only what nobody is shown beside it changed: own peaks, temporary blocks */
};

struct diff_options {
    enum row_key by;    /* line, function, file, module, device, stack, op */
    int sort;           /* enum stat_id */
    int is_sorted;      /* 0: the larger of what changed in it and live at the end comes first */
    const char *device; /* NULL: all */
};

struct diff {
    struct diff_row *rows; /* those that differ: largest difference first, then noise, the hidden ones last */
    int count, hidden_count;
    int64_t same_count;      /* rows that do not differ */
    struct diff_row *totals; /* by device */
    int total_count;
    struct diff_state *state;
};

/* The statistics whose change makes a row differ, beside the one that is sorted by; ends with -1. */
extern const int diff_stats[];

/* The recordings stay open until diff_close. 0 or -errno with err; diff_close in both cases. */
int diff_load(sqlite3 *const *const dbs[DIFF_SIDES], const int counts[DIFF_SIDES], const struct diff_options *options,
              struct diff *diff, struct error *err);
void diff_close(struct diff *diff);
/* An item of the old side, by its number; NULL: there are no more. now: what it is on the new side; NULL: gone. */
const struct diff_item *diff_old_item(const struct diff *diff, uint32_t number, const struct diff_item **now);
/* Fills caller of the first rows, by line and by function; of a thousand at most. */
int diff_name_callers(struct diff *diff, int rows, struct error *err);

/* Appends a function's name without ".constprop.0", ".cold", " [clone .isra.0]" and their like. */
void diff_bare_name(const char *name, struct buf *out);

/* Whether the row is of one line, or function, whose number is another one on each side; 0 is none. */
int diff_line_differs(const struct diff_row *row);

/* Of the difference of two estimates (estimate.h): as of the sum of both; 0: it is exact; below: not known. */
double diff_error(const struct diff_row *row, int stat);

/* New less old; *known 0 where either is not known. Saturates. */
int64_t diff_of(const struct diff_row *row, int stat, int *known);

#endif
