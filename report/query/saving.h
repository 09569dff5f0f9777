/*
 * saving.h: what the peak of a device would have been, had some of its blocks been gone for a while, or smaller: the
 * series of its active bytes less what they had, from one event to another. It is searched from the highest bucket
 * (pass.h) down, whose chunk of events is then read again, so that the result is exact, and few chunks are read.
 */
#ifndef MEMPROF_SAVING_H
#define MEMPROF_SAVING_H

#include "pass.h"

struct saving { /* all zero: of no block yet */
    struct saving_change {
        int64_t event, bytes;
    } * changes;
    size_t change_count, change_capacity;
    int64_t left_out_bytes; /* of changes beyond what is kept */
};

struct saving_result {
    int64_t peak_bytes;  /* as it was */
    int64_t least_bytes; /* that it would have been lower by; */
    int64_t most_bytes;  /* the same, where is_exact */
    int is_exact;
};

/* From event number from on (of a block from its birth on: the birth's) until before event until (PASS_END: to the
 * end), so many bytes less; negative: more. During a pass or after it. */
void saving_add(struct saving *s, int64_t from, int64_t until, int64_t bytes);
/* The same of what is too much to be kept: only a bound is known then. */
void saving_leave_out(struct saving *s, int64_t bytes);
/* A block that is never allocated; of all that pass->gone has of it. */
static inline void saving_add_gone(struct saving *s, const struct pass_gone *gone)
{
    saving_add(s, (int64_t)gone->block.time_ns, gone->end_event, (int64_t)gone->block.size_bytes);
}

/* Behind the pass. -EBADMSG with err when a chunk cannot be read again. */
int saving_measure(struct saving *s, const struct pass *pass, int64_t device_id, struct saving_result *result,
                   struct error *err);
void saving_close(struct saving *s);

#endif
