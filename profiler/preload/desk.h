/*
 * desk.h: the program's side of the desk of wire.h: figures as the collector counted them last, which anybody may read
 * at any time, and questions that it answers in the order of all events. No hook comes here: only calls of memprof.h.
 * A question waits, at most a second; never where the collector cannot answer: it is dead, or this thread is in the
 * middle of a record.
 */
#ifndef MEMPROF_DESK_H
#define MEMPROF_DESK_H

#include "thread.h"

enum desk_status { /* as memprof.h has them */
                   DESK_OK = 0,
                   DESK_NOT_RECORDED = -1,
                   DESK_NO_DEVICE = -2,
                   DESK_NO_ANSWER = -3,
                   DESK_NOT_HERE = -4,
                   DESK_REFUSED = -5,
};

/* A device's name as rows and records have it. 0: it is too long to be one. */
int desk_name(const char *device, char name[WIRE_NAME_BYTES]) HIDDEN;
/* As last counted. Needs process.control alone. */
enum desk_status desk_read(const char name[WIRE_NAME_BYTES], struct wire_figures *figures) HIDDEN;
/* Up to here. flags: WIRE_SYNC_*. Between thread_enter and thread_leave, in the thread's outermost hook. */
enum desk_status desk_ask(struct thread *t, const char name[WIRE_NAME_BYTES], unsigned flags,
                          struct wire_figures *figures) HIDDEN;

#endif
