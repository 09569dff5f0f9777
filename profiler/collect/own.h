/*
 * own.h: which private memory of a process is the recorder's own, as the recorder in it says. What it says is not to be
 * trusted: a range is at worst called memprof's that is the program's.
 */
#ifndef MEMPROF_COLLECT_OWN_H
#define MEMPROF_COLLECT_OWN_H

#include "../account/resident.h"
#include "../wire.h"

struct own {
    struct resident_own ranges[WIRE_OWN];
    size_t count;
};

void own_read(const struct wire_proc *slot, struct own *own);

#endif
