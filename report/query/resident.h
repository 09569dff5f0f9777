/*
 * resident.h: the looks at which pages of the program were present: the round at the highest resident memory.
 */
#ifndef MEMPROF_QUERY_RESIDENT_H
#define MEMPROF_QUERY_RESIDENT_H

#include "../../common/buf.h"
#include "../../common/error.h"

#include "rows.h"

#include <sqlite3.h>
#include <stdint.h>

struct resident_part {
    int64_t bytes;
    const char *text; /* static: of resident_rest.def */
    int is_anonymous; /* it is the row of that name */
};

struct resident_peak {
    int64_t time_ns, duration_ns; /* from the first process's look to the end of the last one's */
    int64_t process_count;        /* 0: nothing was looked at, and all else is 0 */
    int64_t moved_count;          /* events meanwhile; -1: not known */
    int64_t rss_bytes, present_bytes, shared_bytes, swapped_bytes;
    int64_t huge_bytes;  /* -1: not known */
    int64_t live_bytes;  /* of live blocks, */
    int64_t block_bytes; /* and on present pages of these; the others, but those swapped out: */
    int64_t untouched_bytes;
    int64_t untracked_bytes; /* on pages that no hooked call asked for (resident_untracked), */
    struct resident_part untracked_most;
    int64_t peak_rss_bytes;   /* of the program, as the kernel says; 0: not known */
    int peak_rss_is_least;    /* of a process that was killed only the last sample is known */
    int64_t ends_ns, last_ns; /* of the last looks at each process, when the first one was and the last one */
};

int resident_peak_load(sqlite3 *db, struct resident_peak *peak, struct error *err);
/* What of the look with this id, or of the round at the peak (0), was on pages that no hooked call asked for: files,
 * stacks and the like; and the largest part of it. What forks inherit, and shared memory where several processes were
 * looked at, may have been asked for in another one: it is not in this sum. */
int64_t resident_untracked(sqlite3 *db, int64_t scan_id, struct resident_part *most);
/* Whether what blocks have on present pages says something else than their sizes do. */
int resident_peak_differs(const struct resident_peak *peak);
/* How much more the program's resident memory was at another instant than this look saw; 0: no more, or hardly. */
int64_t resident_peak_later(const struct resident_peak *peak);
/* Whether most of the peak of what was live, of so many bytes, was live at this look. */
int resident_peak_has_most(const struct resident_peak *peak, int64_t active_bytes);
/* Whether it is as good as a look at that peak, and nothing to speak of was touched after it: the program's resident
 * memory was never much more. */
int resident_peak_is_near(const struct resident_peak *peak, int64_t active_bytes);
/* Whether the last looks, shortly before the end, saw all that was ever resident: else more may have been written after
 * them. */
int resident_last_is_whole(sqlite3 *db);
/* The highest RSS, all processes together: of a sample, or of one of them as the kernel says; 0: none is known. */
int64_t resident_peak_rss(sqlite3 *db);
/* 1: it is the kernel's own figure of the one process that there was; 0: sampled. */
int resident_peak_rss_is_exact(sqlite3 *db);
/* 1: of a process that was killed, or not seen to end, only samples are known: the peak RSS is at least theirs. */
int resident_peak_rss_is_least(sqlite3 *db);
/* That figure as "48.29 MiB" or ">= 48.29 MiB (sampled; 12 MiB counted again: shared by processes)"; nothing where none
 * is known. Of one process it is the kernel's own, which each of its images told as it ended; that of several at once
 * is the highest sum of their samples. Where one was killed, its last sample is the least that it was. */
void resident_peak_rss_text(sqlite3 *db, struct buf *out);
/* Of several processes at the peak of the sum of all their RSS: "at least 48 MiB counted again: shared by processes",
 * which is that sum's; nothing is added where it is little. */
void resident_again_text(sqlite3 *db, struct buf *out);
/* Bytes of the looks at that peak on pages that another process had, too; 0 where that is not known. */
int64_t resident_again_bytes(sqlite3 *db);
/* "Resident at 23 ms, ...": the instant, what the look took, and how far it is from the peak. */
void resident_peak_text(const struct resident_peak *peak, struct buf *out);
/* Of blocks in shared memory whose pages their own process lacks, and another one may have, nobody knows what is on no
 * page: nor of rows that have nothing else there. Elsewhere the figure is that of their other blocks. */
void resident_forget_unknown(sqlite3 *db, enum row_key by, struct rows *rows);
/* What a row of v_resident is; where it is none of ours, what itself. */
const char *resident_what_text(const char *what);

#endif
