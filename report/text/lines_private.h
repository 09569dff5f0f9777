/* lines_private.h: what the files of lines.h share. */
#ifndef MEMPROF_LINES_PRIVATE_H
#define MEMPROF_LINES_PRIVATE_H

#include "../print/listing.h"
#include "../query/source.h"
#include "lines_load.h"

#define LINES_TAB 8

struct lines {
    sqlite3 *db;
    const struct lines_options *options;
    const struct report_out *out;
    char *cwd;
    struct source source; /* of source_file_id */
    int64_t source_file_id;
    int64_t warned_file_id;                                  /* whose change on disk was said */
    int is_missing_said[2];                                  /* that a source cannot be read, and [1] what helps */
    int is_device_said, is_sampled_said, is_unreserved_said; /* whose peaks the columns show */
    int is_end_said;                                         /* which end net growth is until */
    int is_own_said, is_instances_said;                      /* why one has none */
    int is_growth_said[LINE_RESERVED_UNKNOWN + 1];           /* why reserved growth is not all */
    struct listing *listing;
    int stats[STAT_LINES_COUNT]; /* those that the group's table shows */
    int stat_count;
    struct column columns[3 * STAT_LINES_COUNT + 9];
    char titles[STAT_LINES_COUNT][32];
};

/* lines_range.c: first and last line to show: from the declaration to a little after the last line with data, within
 * the function. */
void lines_range(const struct lines *l, const struct lines_group *g, int64_t *first, int64_t *last);

/* lines_table.c: the table of a group's lines; first which statistics it has for people. */
void lines_choose_stats(struct lines *l, const char *device);
void lines_open_listing(struct lines *l, struct record *document);
/* data NULL: a line that did nothing. */
void lines_list_line(struct lines *l, const struct lines_group *g, int64_t line, const struct lines_line *data,
                     int is_heaviest);
/* Its lines with those between them. */
void lines_list_group(struct lines *l, const struct lines_group *g);
/* Whether a statistic is of the whole device. */
static inline int lines_is_of_device(int stat)
{
    return stat == STAT_active_peak_bytes || stat == STAT_reserved_peak_bytes;
}

#endif
