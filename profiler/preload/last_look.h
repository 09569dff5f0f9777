/*
 * last_look.h: the process is about to end, and the collector wants to see which of its pages are present before they
 * are gone.
 */
#ifndef MEMPROF_LAST_LOOK_H
#define MEMPROF_LAST_LOOK_H

#include "compiler.h"

/* Behind the EXIT record, outside any hook's work; where it waits, the process ends later than that record said.
 * Returns 0 at once where the collector does not want to look, else 1 when it has looked, and after WIRE_LAST_LOOK_NS
 * at the latest. Any thread, in a signal handler too. */
int last_look_wait(void) HIDDEN;

#endif
