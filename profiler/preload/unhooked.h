/*
 * unhooked.h: loaded objects whose calls of free or realloc go past this library, into the C library: those that were
 * opened with RTLD_DEEPBIND. The collector is told which (WIRE_UNHOOKED). Only between thread_enter and thread_leave.
 */
#ifndef MEMPROF_UNHOOKED_H
#define MEMPROF_UNHOOKED_H

#include "thread.h"

/* Before a real dlclose of the handle, which may be NULL. */
void unhooked_look_at(struct thread *t, const void *handle) HIDDEN;
/* As the program ends: all that are loaded then. */
void unhooked_look(struct thread *t) HIDDEN;

#endif
