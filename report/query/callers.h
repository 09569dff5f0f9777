/*
 * callers.h: who calls a line that allocates: what each caller's blocks held at the peak. For lines of wrappers
 * (xmalloc), which say little by themselves.
 */
#ifndef MEMPROF_CALLERS_H
#define MEMPROF_CALLERS_H

#include "rows.h"

struct caller {
    struct row row; /* the names of the calling line; strings owned */
    int64_t bytes, blocks;
};

struct callers {
    struct caller *item; /* most bytes first */
    int count, capacity;
    int function_count; /* distinct functions among them */
    int64_t site_count;
    int is_of_carver; /* of a wrapper (wrapper_callers): its blocks look as if it gave its callers parts of them */
};

struct walk;
struct callers_line;

enum callers_of {
    CALLERS_OF_PEAK,
    CALLERS_OF_KIND_PEAK,
    CALLERS_OF_END,
    CALLERS_OF_END_RECORDED, /* of the line as it was recorded, whatever a lens (lens.h) shows as its stacks */
    CALLERS_OF_RUN,          /* all that it allocated */
};

/* The stacks of the line of a row (by ROW_LINE) whose blocks were live at the peak of its device, at that of the kind,
 * or at the end, or all. 0 or -errno with err; close in any case. walk and row must outlive it. */
int callers_open(sqlite3 *db, struct walk *walk, const struct row *row, enum callers_of of, const char *kind,
                 struct callers_line **line, struct error *err);
/* The line's callers; further 1: what calls those, and so on. 0 or -errno with err; free in any case. */
int callers_load(const struct callers_line *line, int further, struct callers *callers, struct error *err);
/* Whether all of these stacks run through one place of the line's code: what stands for a line where none is known. */
int callers_leave_one_place(const struct callers_line *line);
/* Whether in all of these stacks the line itself calls an allocator: none through code whose lines are not shown. */
int callers_line_is_direct(const struct callers_line *line);
void callers_close(struct callers_line *line);
void callers_free(struct callers *callers);

#endif
