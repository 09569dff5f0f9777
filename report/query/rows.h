/*
 * rows.h: account rows (by line, function, file, module, thread, device, stack, process, operator) from the database,
 * sorted and limited. Only tables of totals are read, never events.
 */
#ifndef MEMPROF_ROWS_H
#define MEMPROF_ROWS_H

#include "../../common/error.h"
#include "stat.h"

#include <sqlite3.h>

enum row_key {
#define ROW_KEY(id, name) ROW_##id,
#include "row_keys.def"
    ROW_KEY_COUNT
};

extern const char *const row_key_names[ROW_KEY_COUNT]; /* "line", ... */

struct rows_query {
    enum row_key by;
    int inclusive;      /* with what a row calls; threads, devices and stacks have no such rows */
    const char *device; /* NULL: all */
    const char *kind;   /* NULL: "all" */
    int sort;           /* enum stat_id: descending */
    int64_t limit;      /* 0: all */
    int64_t at_least;   /* rows whose sort value is below are left out */
    int without_noise;  /* leave out functions outside of main() and of threads' own, and the allocator family */
};

struct row { /* strings are owned by the rows; NULL where unknown */
    char *device, *kind, *function, *plain_name, *file, *module, *thread, *command, *title, *op, *phase;
    char *recording; /* of a merged file: that the process is of */
    int64_t rank;    /* its rank; -1: unknown */
    char *caller;    /* nearest function with a name, where the row's own has none */
    int other_callers;
    int64_t line;   /* 0: unknown */
    int64_t offset; /* in module, where there is no function */
    int64_t key_id; /* line_id, function_id, ..., stack_id */
    int64_t process_id, pid, tid;
    struct stat_row stats;
};

struct rows {
    struct row *row;
    int count, capacity;
    int64_t total_count; /* rows there would be without the limit */
};

int rows_load(sqlite3 *db, const struct rows_query *query, struct rows *rows, struct error *err);
void rows_free(struct rows *rows);
/* Rows of one key (an array, one for each row), device and kind become one; then sorted by a statistic, and limited. */
void rows_merge(struct rows *rows, const uint64_t *keys, int sort, int64_t limit);
/* What rows by line or by function without a source position are shown with, of the first thousand: module, or caller
 * (named_caller.h). rows_load does both. */
void rows_find_modules(sqlite3 *db, enum row_key by, struct rows *rows);
int rows_name_callers(sqlite3 *db, enum row_key by, struct rows *rows, struct error *err);
/* Sorted anew by a statistic that was changed since, and limited; rows without any of it go. */
void rows_again(struct rows *rows, int sort, int64_t limit);
struct row *rows_add(struct rows *rows); /* an empty one at the end */

/* "forward", "libz.so.1+0x1234", "??" */
void row_function_text(const struct row *row, struct buf *out);
/* The same in SQL, of a line l, its function fn and module_key m; NULL: nothing is known of it. */
#define ROW_FUNCTION_SQL                                                                                               \
    "coalesce(fn.name, replace(m.path, rtrim(m.path, replace(m.path, '/', '')), '') || printf('+0x%x', l.offset))"
/* "src/net.c:42", "[libz.so.1]", "<- caller and 2 others", "": a path inside base (the directory of the run) is shown
 * from there. */
void row_source_text(const struct row *row, const char *base, struct buf *out);

#endif
