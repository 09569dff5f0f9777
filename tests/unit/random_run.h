/* random_run.h: a recording of several processes, threads and devices that do everything that events can say. */
#ifndef MEMPROF_TEST_RANDOM_RUN_H
#define MEMPROF_TEST_RANDOM_RUN_H

#include "account_run.h"

extern uint64_t random_run_end_ns; /* of the newest one */

/* Close with account_run_close. */
void random_run(struct account_run *r, uint64_t seed, const struct account_options *options);

#endif
