/*
 * left_out.h: what programs left out for its size (run --min-size): the table left_out.
 */
#ifndef MEMPROF_LEFT_OUT_H
#define MEMPROF_LEFT_OUT_H

#include "../store/store.h"
#include "session.h"

/* As counted so far. */
void left_out_write(struct session *session, struct store *store);

#endif
