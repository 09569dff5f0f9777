/*
 * record_module.h: the record of a module of which the unwinder does not tell (unwind.h has the others). Only between
 * thread_enter and thread_leave.
 */
#ifndef MEMPROF_RECORD_MODULE_H
#define MEMPROF_RECORD_MODULE_H

#include "thread.h"

/* One whose calls go past this library, by the loader's name of it. */
void record_module_unhooked(struct thread *t, const char *path) HIDDEN;

#endif
