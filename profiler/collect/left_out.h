/*
 * left_out.h: what programs left out for its size (run --min-size): the table left_out.
 */
#ifndef MEMPROF_LEFT_OUT_H
#define MEMPROF_LEFT_OUT_H

#include "../store/store.h"
#include "session.h"

/* As counted so far, by the rings below this number. */
void left_out_write(const struct session *session, uint32_t ring_end, struct store *store);

#endif
