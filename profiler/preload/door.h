/*
 * door.h: the recording's memory for a process that may not open it by its path, as it is another user's: it makes a
 * pair of sockets, who attaches fetches one of them (pidfd_getfd, with the right to trace) and sends the descriptor.
 * Needs no path, no name and no network in common. Called under the claim of attach.c alone.
 */
#ifndef MEMPROF_DOOR_H
#define MEMPROF_DOOR_H

/* The descriptor to be fetched, or a negative errno. Called once more, it closes what was made before. */
int door_open(void);

/* The descriptor that was sent, the caller's, or a negative errno. Nothing stays open of the pair. Does not wait. */
int door_take(void);

#endif
