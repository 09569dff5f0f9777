/*
 * program_name.h: what people call a program by its command line: the script, where an interpreter runs one (job.py,
 * not python3); else the program as it was called, without its directory. And a process that has named itself.
 */
#ifndef MEMPROF_PROGRAM_NAME_H
#define MEMPROF_PROGRAM_NAME_H

#include "../../common/buf.h"

/* Appends the name of a command line whose words are quoted as in a shell; nothing for an empty one. Returns
 * whether it is that of a script, module or class, or of what a dynamic loader was told to run. */
int program_name(struct buf *name, const char *command);
/* Appends the script, module or class as the command line has it, with its directory; 0 where there is none. */
int program_script(struct buf *path, const char *command);

/* SQL: what a process called itself; NULL: nothing. Files of older versions lack the column: there it is the outer
 * query's. */
#define PROGRAM_TITLE(process_id)                                                                                      \
    "(SELECT (SELECT title FROM process named WHERE named.process_id = " process_id ") FROM (SELECT NULL AS title))"

/* Appends "[postgres: checkpointer] postgres -D data": the title, if it has one, beside what it was started as. */
void program_process(struct buf *text, const char *title, const char *command);
/* SQL: the same of columns title and command; and cut for a pipe, where tables cut nothing: a server's command may have
 * thousands of characters. */
#define PROGRAM_PROCESS "coalesce('[' || nullif(title, '') || '] ', '') || command"
#define PROGRAM_PROCESS_CUT                                                                                            \
    "iif(length(" PROGRAM_PROCESS ") > 500, substr(" PROGRAM_PROCESS ", 1, 497) || '...', " PROGRAM_PROCESS ")"

#endif
