/*
 * theil_sen.h: the median of the slopes between all pairs of points: what a series grows by, which a few odd points do
 * not move. Exact: of an even number of pairs the mean of the two in the middle.
 */
#ifndef MEMPROF_THEIL_SEN_H
#define MEMPROF_THEIL_SEN_H

#include <stddef.h>
#include <stdint.h>

/* Of more points as many are taken, evenly spread, the first and the last among them. */
#define THEIL_SEN_POINTS 100000

/* Of values at places that rise from each to the next; NULL: 0, 1, 2, ... Fewer than two points: 0. Of up to some
 * hundred points the slopes are sorted out; of more it is counted how many are below a value, in n log n steps. */
double theil_sen_slope(const int64_t *places, const int64_t *values, size_t count);

/* The value that would stand at a place if they were sorted; they are then parted there. count > 0. */
double theil_sen_select(double *values, size_t count, size_t place);

#endif
