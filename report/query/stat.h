/*
 * stat.h: the statistics of common/stat.def as a table, and rows of their values.
 */
#ifndef MEMPROF_STAT_H
#define MEMPROF_STAT_H

#include "../../common/buf.h"

#include <sqlite3.h>
#include <stdint.h>

enum stat_id {
#define STAT(column, name, unit, combine, text) STAT_##column,
#include "../../common/stat.def"
#undef STAT
    STAT_COUNT, /* those of the events; scanned, windowed and derived ones follow */
    STAT_BEFORE_SCANNED = STAT_COUNT - 1,
#define STAT(...)
#define SCANNED(column, name, unit, text) STAT_##column,
#include "../../common/stat.def"
    STAT_SCANNED_END,
    STAT_BEFORE_WINDOWED = STAT_SCANNED_END - 1,
#define WINDOWED(column, name, unit, text) STAT_##column,
#include "../../common/stat.def"
    STAT_VALUE_COUNT, /* those of the views account_stat and site_stat */
    STAT_BEFORE_DERIVED = STAT_VALUE_COUNT - 1,
#define DERIVED(column, name, unit, a, how, b, text) STAT_##column,
#include "../../common/stat.def"
    STAT_SHOWN_COUNT, /* those of every report */
    STAT_BEFORE_LINES = STAT_SHOWN_COUNT - 1,
#define OF_LINES(column, name, unit, text) STAT_##column,
#include "../../common/stat.def"
#undef STAT
    STAT_LINES_COUNT /* those of lines */
};

enum stat_unit { STAT_UNIT_bytes, STAT_UNIT_count, STAT_UNIT_ns };
enum stat_combine { STAT_COMBINE_sum, STAT_COMBINE_max, STAT_COMBINE_exact };
enum stat_how { STAT_STORED, STAT_SCANNED, STAT_WINDOWED, STAT_MINUS, STAT_PER, STAT_OF_LINES };

struct stat_info {
    const char *column; /* in the database, in JSON and in CSV */
    const char *name;   /* on the command line */
    enum stat_unit unit;
    enum stat_combine combine; /* of those of the database */
    const char *text;
    enum stat_how how; /* derived from a and b */
    enum stat_id a, b;
};

extern const struct stat_info stat_infos[STAT_LINES_COUNT];

/* Whether the views account_stat and site_stat have it, or what it is derived from, and the tables behind them do not.
 */
int stat_is_of_view(int stat);

struct stat_row {
    int64_t value[STAT_VALUE_COUNT];
    uint32_t known;           /* bit i: value i is there (not NULL) */
    double error[STAT_COUNT]; /* of estimates (estimate.h): 0: exact; below: not known */
};

/* PyTorch's names (stat_torch.def), in the order of the listing that 'help' gives. */
struct stat_torch {
    const char *name;
    int stat;
};
extern const struct stat_torch stat_torch_names[];
extern const int stat_torch_count;

/* Index of a statistic by its name on the command line, its column, PyTorch's name, the title in a table, or the
 * beginning of one name only ("own"), one of lines alone included; -1: unknown. */
int stat_find(const char *name, size_t length);
/* "alloc_count, alloc_bytes, ..., resident_bytes, ...", for a SELECT from account_stat or site_stat; prefix: "a." or
 * "".
 */
void stat_columns(struct buf *sql, const char *prefix);
/* What an SQL query has for a statistic: its column, or the expression it is derived by. */
void stat_expression(int stat, struct buf *sql);
/* Reads STAT_VALUE_COUNT columns from the current row, beginning at column first. */
void stat_read(struct stat_row *row, sqlite3_stmt *statement, int first);
/* Adds what can be added; exact statistics stay known only while one row makes the sum. */
void stat_add(struct stat_row *sum, const struct stat_row *row, int is_first);
/* The error of a shown statistic; 0 where it has none. */
double stat_error(const struct stat_row *row, int stat);
/* Value of a shown statistic; 0 with *known 0 when it is not there. */
int64_t stat_value(const struct stat_row *row, int stat, int *known);

#endif
