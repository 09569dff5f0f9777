/*
 * next_steps.h: the commands that `memprof report` offers below its tables.
 */
#ifndef MEMPROF_NEXT_STEPS_H
#define MEMPROF_NEXT_STEPS_H

#include "summary.h"

void next_steps_print(const struct summary *s);

#endif
