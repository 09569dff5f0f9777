/*
 * growth.h: what grows from one execution of a range to the next, by line, from what every site held at the end of each
 * (executions.h). A series that only moves up and down, or rises once, is none that grows: the medians of the eight
 * parts of the executions must rise from each to the next (or fall, for what shrinks), and it must lie near a straight
 * line. Of what fills and empties at random, however slowly, one in a thousand or less does that. Growth is then the
 * median of the slopes of all pairs (theil_sen.h).
 *
 * A site that does not grow throughout may do so from some execution on: where a level and a line that leaves it fit
 * the series, what comes behind that corner is looked at in the same way.
 *
 * What is measured is the sum over the sites that grow, which is exact where others are loud, and what all the other
 * sites together grow by: where there are many, each may be too loud to tell.
 */
#ifndef MEMPROF_GROWTH_H
#define MEMPROF_GROWTH_H

#include "executions.h"
#include "suppress.h"
#include "tree.h"

#define GROWTH_WARMUP     3   /* executions that do not count, unless the user says otherwise */
#define GROWTH_LEAST      5   /* executions behind them, to tell what grows */
#define GROWTH_LATE_LEAST 20  /* executions behind the one from which on something grows; and a third of all */
#define GROWTH_SAMPLES    200 /* of more executions as many are looked at, evenly */

struct growth; /* what each site held at the end of each of the executions that are looked at */

/* *rest: how many executions there are that have ended, without those that warm up. NULL where these are fewer than
 * GROWTH_LEAST. The executions are borrowed. */
struct growth *growth_open(const struct executions *executions, int64_t warmup, int64_t *rest);
void growth_close(struct growth *g);
/* The executions without those that warm up, in the order of their ends; borrowed. */
const uint32_t *growth_ends(const struct growth *g, size_t *count);
/* To be given to executions_measure. */
void growth_samples(struct growth *g, struct executions_samples *samples);

struct growth_line {
    double slope;                    /* bytes an execution, */
    int64_t from, count;             /* from about this one on, of so many; 0: throughout */
    int64_t site_id, stack_id, line; /* of the site that grew most */
    char *device, *function, *file;  /* owned; NULL: unknown */
};

struct growth_result {
    double slope;             /* of all of it, bytes an execution */
    struct growth_line *line; /* those that grow, most first */
    int line_count, line_capacity;
};

struct growth_filter {
    const char *device, *kind;               /* NULL: all */
    const struct suppressions *suppressions; /* stacks to leave out; NULL: none */
    enum tree_language language;
};

/* The slope alone; and, behind it, the lines. Free with growth_result_free in any case. */
int growth_sum_up(struct growth *g, sqlite3 *db, const struct growth_filter *filter, int with_lines,
                  struct growth_result *result, struct error *err);
void growth_result_free(struct growth_result *result);

#endif
