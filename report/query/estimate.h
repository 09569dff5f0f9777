/*
 * estimate.h: the errors of a sampled recording's estimates: half the width of the interval that the true value lies in
 * for 95 of 100 recordings, 1.96 times the square root of the sum of w (w - 1) s^2 over the sampled blocks.
 */
#ifndef MEMPROF_ESTIMATE_H
#define MEMPROF_ESTIMATE_H

#include "rows.h"

/* Bytes from one sample to the next in the mean; 0: the recording is not sampled. */
int64_t estimate_mean_bytes(sqlite3 *db);

/* 0, or -ENOTSUP with err where the recording is sampled and why is a reason to want all blocks: "check holds exact
 * numbers to bounds". */
int estimate_refuse(sqlite3 *db, const char *path, const char *why, struct error *err);

/* Fills the errors of a row of an account. What is not known of bytes is bounded: no sum of B bytes has a variance
 * above B times the mean. */
struct estimates;
/* NULL: the recording is not sampled. */
struct estimates *estimates_open(sqlite3 *db);
void estimates_close(struct estimates *e);
void estimates_fill(struct estimates *e, enum row_key by, int inclusive, const char *kind, const char *device,
                    int64_t key_id, struct stat_row *stats);

/* The same with bounds alone, for rows of any key: those of counts are not known. */
void estimates_fill_bounds(const struct estimates *e, const char *device, struct stat_row *stats);

/* The same of a sum of bytes of whatever blocks of a device; the bound. */
double estimates_bound(const struct estimates *e, const char *device, int64_t bytes);
/* Of a sum with this variance. */
double estimate_error(double variance);

#endif
