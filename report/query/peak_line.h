/*
 * peak_line.h: the line that a device's peak is named by.
 */
#ifndef MEMPROF_QUERY_PEAK_LINE_H
#define MEMPROF_QUERY_PEAK_LINE_H

#include <sqlite3.h>
#include <stdint.h>

/* Of the line that held most at the peak, the first row of the table by line, the site that held most of it; -1 where
 * nothing was summed by line. Not table peak's site, which may be the largest and of a line that holds less. */
int64_t peak_line_site(sqlite3 *db, int64_t device_id);

#endif
