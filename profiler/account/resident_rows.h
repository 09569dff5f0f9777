/*
 * resident_rows.h: the looks that are kept, until they are written: what each saw is thousands of rows, and of many
 * looks only the newest at the peak and each process's last one stay.
 */
#ifndef MEMPROF_RESIDENT_ROWS_H
#define MEMPROF_RESIDENT_ROWS_H

#include "resident.h"
#include "seen.h"

struct resident_scan { /* a row of the table */
    uint32_t scan_id;
    uint16_t process_id;
    uint64_t time_ns, duration_ns, rss_bytes;
};

struct store;
struct resident_rows;

/* The store is borrowed. What was not written when it is closed is lost. */
struct resident_rows *resident_rows_open(struct store *store);
void resident_rows_close(struct resident_rows *r);
/* The scan is its process's last from now on. What is neither a peak nor a last one goes. Takes the result's sites and
 * shared. */
void resident_rows_add(struct resident_rows *r, const struct resident_scan *scan, const struct resident_pages *pages,
                       struct resident_result *result);
/* Scan ids from first_id on, none of which was written, are the round at the highest sum: the one before is none any
 * more. */
void resident_rows_peak(struct resident_rows *r, uint32_t first_id);
/* All processes were looked at in scan ids from first_id on, none of which was written: what blocks in shared memory
 * have on no page of any of them is known. */
void resident_rows_touched(struct resident_rows *r, uint32_t first_id, const struct seen *touched);
/* How many events came in scan ids from first_id on. */
void resident_rows_moved(struct resident_rows *r, uint32_t first_id, uint64_t moved_count);
/* How many rows wait, nearly. */
uint64_t resident_rows_waiting(const struct resident_rows *r);
/* Writes what waits, and deletes what it replaces. */
void resident_rows_write(struct resident_rows *r);

#endif
