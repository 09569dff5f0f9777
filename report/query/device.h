/*
 * device.h: which devices a name means that --device takes: one ("cuda:0"), or all of a type ("cuda"); whether the
 * recording has it, and the kind that --kind takes.
 */
#ifndef MEMPROF_REPORT_DEVICE_H
#define MEMPROF_REPORT_DEVICE_H

#include "../../common/error.h"

#include <sqlite3.h>

/* In SQL, of a device's name and a parameter, both text: NULL means all. */
#define DEVICE_IS(name, parameter)                                                                                     \
    "(" parameter " IS NULL OR " name " = " parameter " OR substr(" name ", 1, length(" parameter ") + 1) = "          \
    "" parameter " || ':')"
/* ... and of a device's number */
#define DEVICE_ID_IS(id, parameter)                                                                                    \
    "(" parameter " IS NULL OR " id " IN (SELECT device_id FROM device WHERE " DEVICE_IS("name", parameter) "))"

/* The same; wanted NULL: all. */
int device_is(const char *name, const char *wanted);
/* How many devices of the recording it means that allocated something. */
int device_count(sqlite3 *db, const char *wanted);
/* -EINVAL with err when the recording has no such device or kind (NULL: any). */
int device_check(sqlite3 *db, const char *device, const char *kind, struct error *err);
/* "cuda:0, cuda:1" where a type was asked for; else "". Owned by the caller. */
char *device_list(sqlite3 *db, const char *wanted);

#endif
