/*
 * session.h: the memory shared with the collector, from the library's side: mapped once, then a slot for each process
 * and a ring for each thread. session_map and session_slot_claim are called by the thread that attaches the process
 * alone.
 */
#ifndef MEMPROF_SESSION_H
#define MEMPROF_SESSION_H

#include "process.h"

/* Fills process.control and process.data from the file at path. 0: it leaves them as they are. */
int session_map(const char *path) HIDDEN;
/* Whether the limit of this process's address space is one beside which all that is mapped at the start is little. */
int session_has_space(void) HIDDEN;
/* Whether it leaves room for what must be mapped. */
int session_has_room(void) HIDDEN;
/* So much of the shared memory is mapped here. */
uint64_t session_addresses(void) HIDDEN;
/* Sets process.slot and process.slot_index. 0: none was free, which is counted. parent_slot: index + 1, 0: none. */
int session_slot_claim(uint32_t start_kind, uint32_t parent_slot, int parent_pid) HIDDEN;
/* Any thread. NULL: none is free. */
struct wire_ring *session_ring_pop(void) HIDDEN;
/* The desk, and where the thread of a ring is answered there. */
struct wire_desk *session_desk(void) HIDDEN;
struct wire_answer *session_answer(const struct wire_ring *ring) HIDDEN;
/* What the threads of a ring left out. */
struct wire_left *session_left(const struct wire_ring *ring) HIDDEN;
/* The data of a ring that the calling thread popped; NULL: no memory for it. Mapped for good. */
uint64_t *session_ring_words(const struct wire_ring *ring) HIDDEN;

#endif
