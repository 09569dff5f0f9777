/*
 * resident.h: when to look at which pages of the program are present: at each new maximum of resident memory, when much
 * of it has gone, and when a process is about to end; as far as looking costs a small part of the time.
 */
#ifndef MEMPROF_COLLECT_RESIDENT_H
#define MEMPROF_COLLECT_RESIDENT_H

#include "../account/account.h"
#include "clock.h"
#include "drain.h"
#include "process.h"

/* Looks at new maxima cost at most this part of the run, and what a short one has to begin with; so do all others, and,
 * as long as memory grows fast, some times as much. */
#define RESIDENT_SHARE        64u
#define RESIDENT_ALLOWANCE_NS 20000000u

static inline int resident_may(uint64_t cost_ns, uint64_t run_ns)
{
    return cost_ns <= run_ns / RESIDENT_SHARE + RESIDENT_ALLOWANCE_NS;
}

struct resident;

/* All is borrowed. follow: children are processes of the recording, so that one without any shares no page. */
struct resident *resident_open(int follow, struct store *store, struct account *account, struct drain *drain,
                               struct processes *processes, const struct clock *clock);
void resident_close(struct resident *r);
/* Every event goes through here to the accounts. */
void resident_events(struct resident *r, const struct event *events, size_t count);
/* After a round of the drain, and a sample of each process's RSS. Returns the words that the drain read meanwhile. */
uint64_t resident_look(struct resident *r);
/* After each round: how far the accounts were behind at the last look. */
void resident_settle(struct resident *r);
/* What was not looked at, and what looking took. */
void resident_end(struct resident *r);

#endif
