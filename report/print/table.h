/*
 * table.h: the columns of a report, and a table of them for people: as wide as their contents, fitted to the terminal
 * by shortening names, never numbers. Cells are copied and cleaned (text.h).
 */
#ifndef MEMPROF_TABLE_H
#define MEMPROF_TABLE_H

#include "../../common/text.h"
#include "out.h"

#include <stdint.h>

/* Those from COLUMN_NUMBER on stand to the right. */
enum column_unit {
    COLUMN_TEXT,
    COLUMN_PATH,
    COLUMN_SOURCE,      /* a path, with the line that is the next column: "src/net.c:42" */
    COLUMN_NUMBER,      /* "12345" */
    COLUMN_COUNT,       /* "12,345" */
    COLUMN_BYTES,       /* "40.00 KiB" */
    COLUMN_BYTES_SHORT, /* "40.00K" */
    COLUMN_NS,          /* "1.25 ms" */
    COLUMN_PERCENT      /* "12.3 %" */
};

enum {
    COLUMN_OPTIONAL = 1, /* left out where cutting names does not make the table fit */
    COLUMN_JSON = 2,     /* JSON alone has it, CSV does not */
    COLUMN_WINDOW = 4    /* programs get it of a window of the run alone (out.h) */
};

/* What people are shown and what programs get is one table: see listing.h. */
struct column {
    const char *key;   /* for programs, in the order of the columns; NULL: for people alone */
    const char *title; /* for people; a newline makes it two rows; NULL: for programs alone */
    int place;         /* where people see it: those with lower ones come first */
    enum column_unit unit;
    enum text_cut cut; /* how its cells give way where the terminal is narrow; TEXT_CUT_NONE: they never do */
    const char *none;  /* what people see where there is no value; NULL: nothing */
    int flags;
};
/* One of them: key, title, unit without COLUMN_, and of the others those that are not 0, by name. */
#define COLUMN(key_, title_, unit_, ...)                                                                               \
    {                                                                                                                  \
        .key = key_, .title = title_, .unit = COLUMN_##unit_, __VA_ARGS__                                              \
    }
#define COLUMN_COUNT_OF(columns) (sizeof(columns) / sizeof *(columns))

enum table_style { TABLE_PLAIN, TABLE_DIM, TABLE_STRONG };

#define TABLE_COLUMNS_MAX 32

struct table;

/* The array is copied, the columns are borrowed until table_close. */
struct table *table_open(const struct column *const columns[], int count);
void table_close(struct table *table);
void table_cell(struct table *table, int column, const char *text); /* of the row being filled; NULL: empty */
void table_row_style(struct table *table, enum table_style style);  /* of the same */
void table_row_end(struct table *table);
int table_rows(const struct table *table);
/* Titles are left out where none has a word. */
void table_print(struct table *table, const struct report_out *out, int with_titles);

/* A line of cleaned text under one style, with a newline: headings and remarks. */
void table_line(const struct report_out *out, enum table_style style, const char *text);

/* The same of sentences: broken between words to the terminal's width, what follows a first "! " or "* " below it. */
void table_prose(const struct report_out *out, enum table_style style, const char *text);

/* An empty line and a heading: "TITLE (10 of 312)" */
void table_heading(const struct report_out *out, const char *title, int64_t shown, int64_t all);

#endif
