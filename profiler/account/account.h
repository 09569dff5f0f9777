/*
 * account.h: exact streaming accounts over ordered events: live blocks, sites, totals, peaks, timeline, histograms,
 * largest blocks, chunks of events and key frames. Knows nothing of rings, symbols or processes; writes through
 * store.h. One thread calls it, a second one encodes meanwhile (worker.h). Memory grows with live blocks (at most 64
 * bytes each) and sites, not with events.
 */
#ifndef MEMPROF_ACCOUNT_H
#define MEMPROF_ACCOUNT_H

#include "event.h"

#include <stddef.h>

struct store;
struct account;

struct account_options {
    int aggregate;         /* keep no events */
    uint64_t max_events;   /* keep the last N (whole chunks); 0: all */
    uint64_t sample_bytes; /* blocks of the host's heap are samples, one for so many bytes; 0: all are there */
    int is_snapshot;       /* what is live at the end goes on living: the timeline does not fall there */
};

struct account *account_open(struct store *store, const struct account_options *options);
/* Events in time order; batches of a few hundred let it prefetch. Never fails: a full disk is the store's to report. */
void account_events(struct account *a, const struct event *events, size_t count);
/* Writes what is due (accounts, timeline, finished chunks) into the current transaction; called about once a second. */
void account_flush(struct account *a, uint64_t now_ns);
/* Last flush: the partial chunk, final accounts, end key frame. now_ns: end of the run. */
void account_finish(struct account *a, uint64_t now_ns);
/* What is live so far was not seen to be born: none of it is temporary, however it goes. */
void account_forget_last(struct account *a);
/* What each site holds now is kept (a key frame), as a policy wants it; the first 256 times. */
void account_keyframe(struct account *a);
void account_close(struct account *a);

/* The chunk ends here, and the next one begins with a key frame: returns its number. */
uint32_t account_cut(struct account *a);
/* What is otherwise written at the end of the run, as of now: a file that ends here has it. */
void account_part_end(struct account *a);
/* Totals, peaks and the timeline begin here, with what is live as inherited. Right after a cut and the rows of that. */
void account_anew(struct account *a);
uint64_t account_started_event(const struct account *a); /* the number of the first event since; 0: never */
/* Chunks before that one, and key frames that lead to them, leave the file. They are not told of any more. */
void account_drop_before(struct account *a, uint32_t chunk_id);

struct account_counts {
    uint64_t events;          /* that have a number, as in v_event: without samples, and frees that are none */
    uint64_t unmatched_frees; /* of addresses that are not live blocks (double or foreign frees) */
    uint64_t inherited_frees; /* the same in a fork's child: blocks of its parent */
    uint64_t unseen_frees;    /* the same after a pause: blocks that were born in it */
    uint64_t unseen_bytes;    /* the most that glibc's heap had in use, by its own figures, beside all blocks */
    uint64_t unfreed_bytes;   /* what counts as live, and glibc's heap had not in use: at least */
    uint64_t replaced_blocks; /* an allocation at the address of a live block: its free was not seen */
    uint64_t replaced_bytes;  /* of these; at no time was more counted that was not live */
    uint64_t replaced_most;   /* the largest of them, */
    uint32_t replaced_site;   /* and where it came from; 0: none */
    uint64_t live_blocks;
    uint64_t missing_segments;  /* segments without a row */
    uint64_t names_left_out;    /* names without one, */
    uint64_t unlisted_failures; /* allocations that failed and have none */
};
void account_counts(const struct account *a, struct account_counts *counts);

#endif
