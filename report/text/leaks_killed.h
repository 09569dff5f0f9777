/*
 * leaks_killed.h: what of the leaks was live when a signal killed its process: it was in use then, and no leak is told
 * from it.
 */
#ifndef MEMPROF_LEAKS_KILLED_H
#define MEMPROF_LEAKS_KILLED_H

#include "leaks_read.h"

/* Whether what Python did not free is of such: there was no end of an interpreter. */
int leaks_are_of_killed(const struct leaks *l);
/* "1 of 2 processes was killed", appended, with what is not of these. */
void leaks_say_killed(const struct leaks *l, struct buf *line);
/* ", of which 3.00 MiB in 1 block live when processes were killed", appended for a stack that has some beside others.
 */
void leaks_say_stack_killed(const struct leaks *l, const struct leak *leak, struct buf *line);
/* What of all of it was, where no interpreter's end is said: a sentence, or nothing. */
void leaks_say_all_killed(const struct leaks *l, struct buf *line);
/* "3.00 MiB in 1 block", appended. */
void leaks_say_amount(struct buf *out, int64_t bytes, int64_t blocks);

#endif
