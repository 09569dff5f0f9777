/*
 * rights.h: whether the kernel would let this process's next image start the library and open the recording.
 */
#ifndef MEMPROF_RIGHTS_H
#define MEMPROF_RIGHTS_H

#include "../wire.h"
#include "compiler.h"

/* Any thread, and a vfork's child. What cannot be asked is taken to be no hindrance. */
enum wire_reach rights_of_next(void) HIDDEN;

#endif
