/*
 * look.h: one look at a process: which of its pages are present, and whose they are. It is not stopped. The blocks are
 * those that were live when the last page had been read: the events up to that instant are waited for, and what came
 * after it is not counted before. What went while pages were read counts with what of it was still there.
 */
#ifndef MEMPROF_LOOK_H
#define MEMPROF_LOOK_H

#include "../account/account.h"
#include "../account/resident.h"
#include "../account/resident_gone.h"
#include "clock.h"
#include "drain.h"
#include "process.h"

struct look { /* account, drain and clock are borrowed */
    struct account *account;
    struct drain *drain;
    const struct clock *clock;
    struct resident_pages pages;     /* of the newest look */
    struct resident_gone gone;       /* what its process gave back while they were read */
    struct resident_result *waiting; /* for the blocks of process_id; NULL: no look is open */
    uint16_t process_id;
    int is_late;        /* some events of that time were not to be had, and the blocks are older than the pages */
    uint64_t drain_ns;  /* of the processor: what the drain took meanwhile, which is no cost of a look */
    uint64_t words;     /* that it read */
    uint64_t waited_ns; /* for events, in the looks of this round; the caller begins it at 0 */
};

void look_close(struct look *l);
/* Every event goes through here to the accounts. */
void look_events(struct look *l, const struct event *events, size_t count);
/* pages.begun, own, family, seen, touched and is_only are the caller's; so are the result's sites and shared. The
 * process may be gone after this. Returns 0, or as pages_read. */
int look_at(struct look *l, const struct process *p, int is_alone, struct resident_result *result);

#endif
