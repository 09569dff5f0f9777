/*
 * table.h: a table for people: columns as wide as their contents, fitted to the terminal by shortening names, never
 * numbers. Cells are copied and cleaned (text.h).
 */
#ifndef MEMPROF_TABLE_H
#define MEMPROF_TABLE_H

#include "../../common/text.h"
#include "out.h"

#include <stdint.h>

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table_column {
    const char *title; /* a newline makes it two rows */
    enum table_align align;
    enum text_cut cut; /* how its cells give way where the terminal is narrow; TEXT_CUT_NONE: they never do */
    int is_optional;   /* left out where that does not suffice */
};

enum table_style { TABLE_PLAIN, TABLE_DIM, TABLE_STRONG };

#define TABLE_COLUMNS_MAX 32

struct table;

struct table *table_open(const struct table_column *columns, int count); /* columns are borrowed until table_close */
void table_close(struct table *table);
/* Cells fill rows from left to right; a row ends by itself after the last column. */
void table_text(struct table *table, const char *text);
void table_bytes(struct table *table, int64_t size_bytes);       /* "40.00 KiB" */
void table_bytes_short(struct table *table, int64_t size_bytes); /* "40.00K" */
void table_count(struct table *table, int64_t count);            /* "12,345" */
void table_ns(struct table *table, int64_t time_ns);
void table_share(struct table *table, int64_t part, int64_t whole); /* "12.3 %", empty without a whole */
void table_row_style(struct table *table, enum table_style style);  /* of the row being filled */
int table_rows(const struct table *table);
void table_print(const struct table *table, const struct report_out *out);
void table_print_rows(const struct table *table, const struct report_out *out); /* without titles */

/* A line of cleaned text under one style, with a newline: headings and remarks. */
void table_line(const struct report_out *out, enum table_style style, const char *text);

#endif
