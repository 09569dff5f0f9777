/*
 * pause.h: a paused recording, as this process sees it. Births of blocks by malloc and its like are not recorded then,
 * and cost neither a stack nor a record. Deaths are, as the block may have been born before: all that is recorded stays
 * exact, whatever becomes of an address in the pause. Addresses that cannot be a recorded block's are remembered, so
 * that most deaths in a pause cost no record either.
 *
 * No hook looks for the beginning of a pause: each thread does now and then on its slow paths, and the collector leaves
 * out what it recorded until then. For its end each hook looks while it is in the pause.
 */
#ifndef MEMPROF_PAUSE_H
#define MEMPROF_PAUSE_H

#include "process.h"

/* Whether the recording is paused now: shuts the gate, so far as a pause goes, where it is open. */
void pause_look(void) HIDDEN;
/* As the process starts, before its gate is open. Returns with which state it opens, open being how it would. */
uint32_t pause_start(uint32_t open) HIDDEN;

/* While gate.on is GATE_PAUSED: which pause it is; 0: it is over, and the gate is open. */
uint32_t pause_now(void) HIDDEN;
/* Whether no block that was recorded lives at p. 0 where that is not known. pause: not 0. */
int pause_is_unseen(uint32_t pause, const void *p) HIDDEN;
/* Nor will one until the pause is over: p is the caller's, born in it or about to be freed with a record of that. */
void pause_unseen(uint32_t pause, const void *p) HIDDEN;

#endif
