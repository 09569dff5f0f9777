/*
 * slots.h: the slots through which loaded objects call the functions that this library has hooks for (GOT entries of
 * R_X86_64_JUMP_SLOT and GLOB_DAT), where it came too late to stand before them in the loader's order. Each is given
 * our hook, and what was in it is kept. One call at a time.
 */
#ifndef MEMPROF_SLOTS_H
#define MEMPROF_SLOTS_H

#include "compiler.h"

/* Under the loader's lock of its list. What is being loaded just now is left for a later look: 1: there is such. */
int slots_patch(void) HIDDEN;
/* Under the same lock. Returns how many still have our hook, as their memory refuses to be written. */
int slots_restore(void) HIDDEN;
/* In a forked child, which has one thread and may have that lock locked for ever. */
void slots_restore_in_child(void) HIDDEN;
/* Whether objects were loaded since the last slots_patch: a look without a lock. */
int slots_are_new(void) HIDDEN;

#endif
