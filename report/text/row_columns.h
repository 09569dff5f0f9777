/*
 * row_columns.h: the rows of rows.h, and their statistics, as columns of a listing. Programs get all that a row has;
 * which of them people are shown, and in which order, each report says.
 */
#ifndef MEMPROF_ROW_COLUMNS_H
#define MEMPROF_ROW_COLUMNS_H

#include "../print/listing.h"
#include "../query/rows.h"

enum row_column {
    ROW_COLUMN_device,
    ROW_COLUMN_kind,
    ROW_COLUMN_inclusive,
    ROW_COLUMN_key_id,
    ROW_COLUMN_function,
    ROW_COLUMN_file,
    ROW_COLUMN_line,
    ROW_COLUMN_module,
    ROW_COLUMN_offset,
    ROW_COLUMN_thread,
    ROW_COLUMN_tid,
    ROW_COLUMN_pid,
    ROW_COLUMN_process_id,
    ROW_COLUMN_command,
    ROW_COLUMN_title, /* that a process gave itself */
    ROW_COLUMN_recording,
    ROW_COLUMN_rank,
    ROW_COLUMN_op,
    ROW_COLUMN_phase,
    ROW_COLUMN_live_bytes,
    ROW_COLUMN_live_count,
    ROW_COLUMN_stats,                                         /* STAT_SHOWN_COUNT of them */
    ROW_COLUMN_errors = ROW_COLUMN_stats + STAT_SHOWN_COUNT,  /* of estimates: as many; for programs */
    ROW_COLUMN_caller = ROW_COLUMN_errors + STAT_SHOWN_COUNT, /* of code without a symbol; by line and by function */
    ROW_COLUMN_other_callers,
    ROW_COLUMN_json,
    ROW_COLUMN_share, /* of a whole; for people, as those below */
    ROW_COLUMN_name,  /* row_function_text() */
    ROW_COLUMN_place, /* row_source_text() */
    ROW_COLUMN_COUNT
};

struct row_columns {
    struct column columns[ROW_COLUMN_COUNT];
    int shown; /* to people, so far */
};

/* is_instant: of the statistics live_bytes and live_count alone. json: key of a JSON value of each row; NULL: none. */
void row_columns_init(struct row_columns *c, enum row_key by, int is_instant, const char *json);
/* The recording is sampled: with the errors. */
void row_columns_estimates(struct row_columns *c);
/* The next column that people see. */
void row_columns_show(struct row_columns *c, int column, const char *title, enum text_cut cut, int flags);
/* whole: of which stat is a share; 0: none. base: the directory that paths are shown from. */
void row_list(struct listing *l, const struct row *row, int inclusive, int stat, int64_t whole, const char *base,
              const char *json);

/* A statistic by its name in the database; without a title. */
struct column stat_column(int stat);
void stat_values(struct listing *l, const struct stat_row *row); /* of STAT_SHOWN_COUNT columns */
/* The same of their errors; for programs. */
struct column stat_error_column(int stat, int is_sampled);
void stat_errors(struct listing *l, const struct stat_row *row);
/* Names and texts of the statistics below end: STAT_SHOWN_COUNT, or STAT_LINES_COUNT. */
void stat_list(const struct report_out *out, int end);

#endif
