/*
 * control.h: what is asked of a recording that goes on: marks, pauses and what a process has of GPUs, from outside by
 * the slots of the desk, and pauses by the program itself with a SYNC. The collector's thread alone.
 */
#ifndef MEMPROF_CONTROL_H
#define MEMPROF_CONTROL_H

#include "../account/account.h"
#include "drain.h"
#include "session.h"

struct control;

/* All is borrowed. is_paused: from the beginning on. */
struct control *control_open(struct session *session, struct drain *drain, struct account *account,
                             struct processes *processes, const struct clock *clock, int is_paused);
/* From now on who asks for a rotation gets it. */
struct rotation;
void control_rotates(struct control *k, struct rotation *rotation);
void control_close(struct control *k);

/* Up to which stamp the next round may go: where a pause begins or ends. */
uint64_t control_bound(const struct control *k);
/* Whether a request waits for events that are not given out yet: come back soon. */
int control_waits(const struct control *k);
/* After a round. Returns how many requests were answered: there may be something to commit. */
unsigned control_look(struct control *k);
/* A SYNC with WIRE_SYNC_PAUSE or WIRE_SYNC_RESUME, all events before it being counted. */
void control_sync(struct control *k, unsigned flags, int64_t time_ns);
/* The recording ends: so does its pause. Into the file: how long it was paused. */
void control_end(struct control *k, struct store *store, int64_t end_ns);

#endif
