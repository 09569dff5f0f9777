/*
 * command.h: commands that a report offers as the next step.
 */
#ifndef MEMPROF_COMMAND_H
#define MEMPROF_COMMAND_H

#include "../../common/buf.h"

/* Appends " FILE" of a recording, quoted for a shell; nothing for NULL and for out.db, which commands take without. */
void command_add_file(struct buf *command, const char *file);

#endif
