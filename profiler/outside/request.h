/*
 * request.h: asking something of a recording that goes on, by a slot of its desk. Never waits for more than some
 * seconds, and leaves nothing behind that another asker would have to wait for, however it ends.
 */
#ifndef MEMPROF_REQUEST_H
#define MEMPROF_REQUEST_H

#include "outside.h"

#include <stddef.h>

/* pid: as the collector sees it, 0: nobody's. text: cut at WIRE_TEXT_MAX bytes. Returns 0 with *reply, or with err
 * (what: what it names): -ESRCH the recording ended, -ETIMEDOUT its collector does not answer, -EBUSY all slots are
 * taken. After the last two it may yet be done. */
int request_ask(const struct outside *o, const char *what, enum wire_wish wish, int pid, const char *text,
                enum wire_reply *reply, struct error *err);

/* What a process has of GPUs, with all that it did before this call; names end with NUL. *count <= WIRE_HOLDINGS.
 * Errors as above; -ENOENT: the recording has no such process, -E2BIG: there are more devices. */
int request_holdings(const struct outside *o, const char *what, int pid, struct wire_holding holdings[WIRE_HOLDINGS],
                     uint32_t *count, struct error *err);
/* It gave its GPUs back: so many bytes of each. */
int request_yielded(const struct outside *o, const char *what, int pid, const struct wire_given *given, size_t count,
                    struct error *err);

#endif
